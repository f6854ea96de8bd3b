"""A server with TLS and HTTP/2 for asyncio, as push services have. It answers each request with a function."""

import asyncio
import contextlib
import itertools
import ssl
import threading
import time
from typing import NamedTuple

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings


class Request(NamedTuple):
    """A request as it arrived."""

    method: str
    path: str
    headers: dict
    body: bytes
    # Numbers the connections of a server.
    connection: int
    # Seconds of the monotonic clock.
    at: float


# What leaves the client waiting.
HOLDING = ("silence", "freeze", "unread", "window")


class Reply(NamedTuple):
    """An answer. `fate` names what a server does instead of answering: "reset" ends the stream, "close" the connection,
    "silence" leaves the client waiting. The others hold up the whole connection: "freeze" receives all further requests
    and does nothing, "unread" receives nothing more (the window of TCP closes), and "window" takes no more bodies (the
    window of HTTP/2 is 0)."""

    status: int = 200
    headers: dict = {}
    body: bytes = b""
    fate: str = ""

    @property
    def is_ambiguous(self):
        """Whether the client cannot know if its request took effect."""
        return bool(self.fate)


class Server:
    """Accepts connections on a free port of 127.0.0.1.

    - answer: returns the reply to a request. It may also return an awaitable.
    """

    def __init__(self, answer, certificate, streams_max=1000):
        self.answer = answer
        self.streams_max = streams_max
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(*certificate)
        self.context.set_alpn_protocols(["h2"])
        self.numbers = itertools.count(1)
        self.connections = set()
        # When a connection ended, by its number.
        self.ended = {}
        self.server = None
        self.port = None

    async def start(self):
        """Starts to listen. A second start uses the same port."""
        loop = asyncio.get_running_loop()
        self.server = await loop.create_server(lambda: Connection(self), "127.0.0.1", self.port or 0, ssl=self.context)
        self.port = self.server.sockets[0].getsockname()[1]

    async def stop(self):
        """Stops to listen and closes all connections."""
        self.server.close()
        for connection in list(self.connections):
            connection.transport.abort()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self.server.wait_closed(), 5)

    def retire(self):
        """Asks all clients to open new connections: GOAWAY, as push services send it when they restart."""
        for connection in list(self.connections):
            connection.retire()

    @property
    def url(self):
        return f"https://127.0.0.1:{self.port}"


class Connection(asyncio.Protocol):
    """One connection of a client."""

    def __init__(self, server):
        self.server = server
        self.number = next(server.numbers)
        self.http = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        self.requests = {}
        self.tasks = set()
        self.transport = None
        self.is_closing = False
        self.is_frozen = False

    def connection_made(self, transport):
        self.transport = transport
        if transport.get_extra_info("ssl_object").selected_alpn_protocol() != "h2":
            transport.abort()
            return
        self.server.connections.add(self)
        self.http.update_settings({h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: self.server.streams_max})
        self.http.initiate_connection()
        self.flush()

    def connection_lost(self, _):
        self.server.connections.discard(self)
        self.server.ended.setdefault(self.number, time.monotonic())
        for task in self.tasks:
            task.cancel()

    def data_received(self, data):
        if self.is_frozen:
            return
        try:
            for event in self.http.receive_data(data):
                if not self.is_closing:
                    self.handle(event)
        except h2.exceptions.ProtocolError:
            self.flush()
            self.transport.close()
            return
        self.flush()

    def handle(self, event):
        if isinstance(event, h2.events.RequestReceived):
            self.requests[event.stream_id] = (dict(event.headers), bytearray())
        elif isinstance(event, h2.events.DataReceived):
            if event.stream_id in self.requests:
                self.requests[event.stream_id][1].extend(event.data)
            self.http.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamReset):
            self.requests.pop(event.stream_id, None)
        elif isinstance(event, h2.events.StreamEnded):
            self.complete(event.stream_id)

    def complete(self, stream):
        headers, body = self.requests.pop(stream)
        request = Request(headers.pop(":method"), headers.pop(":path"), headers, bytes(body), self.number, time.monotonic())
        reply = self.server.answer(request)
        if isinstance(reply, Reply):
            self.send(stream, reply)
            return
        task = asyncio.ensure_future(self.send_later(stream, reply))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def send_later(self, stream, reply):
        self.send(stream, await reply)
        self.flush()

    def send(self, stream, reply):
        if reply.fate in HOLDING:
            self.hold(reply.fate)
            return
        if reply.fate == "close":
            # Earlier answers still arrive. Later requests of the same bytes are not read.
            self.is_closing = True
            self.flush()
            self.transport.close()
            return
        # A client that has given up has reset its stream.
        with contextlib.suppress(h2.exceptions.ProtocolError):
            if reply.fate == "reset":
                self.http.reset_stream(stream, h2.errors.ErrorCodes.INTERNAL_ERROR)
                return
            headers = [(":status", str(reply.status)), *reply.headers.items()]
            self.http.send_headers(stream, headers, end_stream=not reply.body)
            if reply.body:
                self.http.send_data(stream, reply.body, end_stream=True)

    def hold(self, fate):
        if fate == "freeze":
            self.is_frozen = True
        elif fate == "unread":
            self.transport.pause_reading()
            # Nothing more is seen of the connection, not even its end.
            self.server.ended[self.number] = time.monotonic()
        elif fate == "window":
            self.http.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 0})

    def retire(self):
        self.http.close_connection(h2.errors.ErrorCodes.NO_ERROR)
        self.flush()
        # The client may still wait for answers to requests that were received.
        asyncio.get_running_loop().call_later(0.2, self.transport.close)

    def flush(self):
        if (data := self.http.data_to_send()) and not self.transport.is_closing():
            self.transport.write(data)


class Loop:
    """An event loop on a thread of its own, for scripts that are not asynchronous."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def run(self, coroutine):
        """Runs a coroutine on the loop; returns its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    def call(self, function):
        """Calls a function on the loop; returns its result."""

        async def called():
            return function()

        return self.run(called())

    def stop(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()
