"""A proxy between the kit and the service that breaks one sentence of the specification.

Each request has its own connection to the service. A mutant can change the request, the answer, and each block of a stream.
"""

import asyncio
import json
import threading
import urllib.parse

import jwt

from .sse import Parser
from .wire import HEAD_END, Address, Head

STREAM = "text/event-stream"
WITHOUT_BODY = {204, 304}


class Request:
    """A request of the kit. A mutant may set `answer`, and the service does not receive the request then."""

    def __init__(self, method, path, headers, body, version="HTTP/1.1"):
        self.method, self.headers, self.body, self.version = method, headers, body, version
        self.path, _, self.query = path.partition("?")
        self.answer = None

    @property
    def parameters(self):
        return urllib.parse.parse_qsl(self.query, keep_blank_values=True)

    @parameters.setter
    def parameters(self, pairs):
        self.query = urllib.parse.urlencode(pairs)

    def header(self, name):
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    def set(self, name, value):
        """Replaces a header; None removes it."""
        self.headers = [pair for pair in self.headers if pair[0].lower() != name.lower()]
        if value is not None:
            self.headers.append((name, value))

    @property
    def json(self):
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    @json.setter
    def json(self, value):
        self.body = json.dumps(value).encode()
        self.set("Content-Type", "application/json")

    @property
    def token(self):
        return (self.header("Authorization") or "").partition(" ")[2]

    @property
    def claims(self):
        """The claims of the token, unverified; None for another text."""
        try:
            return jwt.decode(self.token, options={"verify_signature": False})
        except jwt.InvalidTokenError:
            return None

    @property
    def position(self):
        """The id that the request resumes from."""
        return self.header("Last-Event-ID") or dict(self.parameters).get("lastEventId")

    def encoded(self, address):
        target = f"{self.path}?{self.query}" if self.query else self.path
        kept = [pair for pair in self.headers if pair[0].lower() not in ("connection", "content-length")]
        lines = [f"{self.method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in kept), "Connection: close"]
        if not any(name.lower() == "host" for name, _ in kept):
            lines.append(f"Host: {address.authority}")
        if self.body or self.method in ("POST", "PUT", "PATCH"):
            lines.append(f"Content-Length: {len(self.body)}")
        return "\r\n".join(lines).encode("latin-1") + HEAD_END + self.body


class Response:
    """An answer of the service. The body of a stream is None."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @staticmethod
    def of_json(status, value, kind="application/json"):
        return Response(status, [("content-type", kind)], json.dumps(value).encode())

    @staticmethod
    def of_stream(body=b"retry: 1000\n\n"):
        return Response(200, [("content-type", STREAM)], body)

    def header(self, name):
        return next((value for key, value in self.headers if key == name.lower()), None)

    def set(self, name, value):
        """Replaces a header; None removes it."""
        self.headers = [pair for pair in self.headers if pair[0] != name.lower()]
        if value is not None:
            self.headers.append((name.lower(), value))

    @property
    def is_stream(self):
        return self.body is None

    @property
    def json(self):
        try:
            return json.loads(self.body) if self.body else None
        except ValueError:
            return None

    @json.setter
    def json(self, value):
        self.body = json.dumps(value).encode()

    def encoded(self, has_body=True):
        lines = [f"HTTP/1.1 {self.status} -", *(f"{name}: {value}" for name, value in self.headers)]
        if self.body is not None:
            lines = [line for line in lines if not line.lower().startswith(("content-length:", "connection:"))]
            if self.status not in WITHOUT_BODY:
                lines.append(f"content-length: {len(self.body) if has_body else 0}")
            lines.append("connection: close")
        return "\r\n".join(lines).encode("latin-1") + HEAD_END + (self.body if self.body and has_body else b"")


class Mutant:
    """A broken form of the service.

    - breaks: the sentences that no longer hold.
    - request, answer: functions of the proxy and of the messages.
    - stream: a function that returns the handler of a stream's blocks. The handler returns blocks or bytes.
    """

    def __init__(self, name, breaks, meaning, request=None, answer=None, stream=None):
        self.name, self.meaning = name, meaning
        self.breaks = tuple(breaks.split()) if isinstance(breaks, str) else tuple(breaks)
        self.request, self.answer, self.stream = request, answer, stream


class Proxy:
    """A running proxy, with the state that mutants keep between requests."""

    def __init__(self, url, mutant, secret):
        self.address = Address.of(url)
        self.mutant = mutant
        self.secret = secret
        self.memory = {}
        self.open = set()
        self._loop = asyncio.new_event_loop()

    def start(self):
        """Returns the address of the proxy."""
        ready = threading.Event()

        async def serve():
            # The backlog of a slow reader must reach the service, so the proxy itself holds little.
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 14)
            ready.set()
            await self._server.serve_forever()

        threading.Thread(target=lambda: self._loop.run_until_complete(serve()), daemon=True).start()
        ready.wait()
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def sign(self, **claims):
        return jwt.encode(claims, self.secret, algorithm="HS256")

    async def _serve(self, reader, writer):
        try:
            await self._exchange(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open.discard(writer)
            writer.close()

    async def _exchange(self, reader, writer):
        request = await read_request(reader)
        if self.mutant.request:
            self.mutant.request(request, self)
        if request.answer is not None:
            writer.write(request.answer.encoded(request.method != "HEAD"))
            return await writer.drain()
        upstream, sink = await asyncio.open_connection(self.address.host, self.address.port, limit=1 << 14)
        try:
            sink.write(request.encoded(self.address))
            await sink.drain()
            response, rest = await read_response(upstream, request.method)
            if self.mutant.answer:
                self.mutant.answer(request, response, self)
            writer.write(response.encoded(request.method != "HEAD"))
            await writer.drain()
            if response.is_stream:
                await self._carry(request, rest, upstream, reader, writer)
        finally:
            sink.close()

    async def _carry(self, request, rest, upstream, reader, writer):
        """Carries the blocks of a stream until one side ends it."""
        handle = self.mutant.stream(request, self) if self.mutant.stream else None
        parser, piece = Parser(), rest
        self.open.add(writer)
        gone = asyncio.ensure_future(reader.read(1))
        try:
            while True:
                blocks = parser.feed(piece) if handle else []
                writer.write(piece if handle is None else b"".join(encoded(part) for block in blocks for part in handle(block)))
                await writer.drain()
                more = asyncio.ensure_future(upstream.read(1 << 14))
                await asyncio.wait({more, gone}, return_when=asyncio.FIRST_COMPLETED)
                if not more.done():
                    more.cancel()
                    return
                piece = more.result()
                if not piece:
                    return
        finally:
            gone.cancel()


def encoded(part):
    return part if isinstance(part, bytes) else part.encoded()


async def read_request(reader):
    head = (await reader.readuntil(HEAD_END)).decode("latin-1")
    first, *lines = head.rstrip("\r\n").split("\r\n")
    method, path, version = first.split(" ", 2)
    headers = [(name.strip(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    request = Request(method, path, headers, b"", version)
    request.body = await reader.readexactly(int(request.header("Content-Length") or 0))
    return request


async def read_response(upstream, method):
    head = Head((await upstream.readuntil(HEAD_END)).decode("latin-1").removesuffix("\r\n\r\n"))
    response = Response(head.status, head.headers, b"")
    if head.status == 200 and method == "GET" and (head.header("content-type") or "").startswith(STREAM):
        response.body = None
        return response, b""
    if method != "HEAD" and head.status not in WITHOUT_BODY:
        response.body = await upstream.readexactly(int(head.header("content-length") or 0))
    return response, b""
