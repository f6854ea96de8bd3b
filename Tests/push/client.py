"""A small asynchronous HTTP client: each instance has one connection to each replica and repeats what was not answered."""

import asyncio
import contextlib
import json
import time

# Statuses after which a request is repeated: the service is starting, stopping or overloaded.
BUSY = {429, 502, 503}
PAUSE_SECONDS = 0.05


class Client:
    """The requests of one household, one after the other.

    - refusals: gets the time and the status of each answer after which a request is repeated.
    """

    def __init__(self, replicas, refusals):
        self.replicas = replicas
        self.refusals = refusals
        self.connections = {}

    async def ask(self, bearer, method, path, body=None, replica=0, key=None, expect=(200, 201, 202, 204)):
        """Returns the JSON of the answer. Repeats the request, at the next replica, until it is answered."""
        while True:
            with contextlib.suppress(OSError, EOFError, ValueError):
                status, content = await self.exchange(replica, bearer, method, path, body, key)
                if status in expect:
                    return json.loads(content) if content else None
                if status not in BUSY:
                    raise AssertionError(f"{method} {path} {body} answered {status}: {content[:300]!r}")
                self.refusals.append((time.monotonic(), status))
            self.close(replica)
            await asyncio.sleep(PAUSE_SECONDS)
            replica = (replica + 1) % len(self.replicas)

    async def exchange(self, replica, bearer, method, path, body, key):
        reader, writer = await self.connection(replica)
        content = b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", "Host: bellhop", f"Authorization: Bearer {bearer}"]
        if content:
            lines += ["Content-Type: application/json", f"Content-Length: {len(content)}"]
        if key:
            lines.append(f"Idempotency-Key: {key}")
        writer.write("\r\n".join([*lines, "", ""]).encode() + content)
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        length = int(headers.get("content-length", "0"))
        answer = await reader.readexactly(length) if length else b""
        if headers.get("connection") == "close":
            self.close(replica)
        return int(head[0].split()[1]), answer

    async def connection(self, replica):
        if replica not in self.connections:
            self.connections[replica] = await asyncio.open_connection("127.0.0.1", self.replicas[replica].port)
        return self.connections[replica]

    def close(self, replica):
        if pair := self.connections.pop(replica, None):
            pair[1].transport.abort()

    def close_all(self):
        for replica in list(self.connections):
            self.close(replica)


class Stream:
    """An open stream of a user. `is_open` until the service or the network ends it."""

    def __init__(self, replica, bearer):
        self.replica, self.bearer = replica, bearer
        self.is_open = False
        self.writer = self.task = None

    async def open(self):
        """Returns whether the stream was opened."""
        with contextlib.suppress(OSError, EOFError):
            reader, self.writer = await asyncio.open_connection("127.0.0.1", self.replica.port)
            request = f"GET /v1/stream HTTP/1.1\r\nHost: bellhop\r\nAuthorization: Bearer {self.bearer}\r\n\r\n"
            self.writer.write(request.encode())
            head = await reader.readuntil(b"\r\n\r\n")
            if b" 200 " in head.split(b"\r\n")[0]:
                self.is_open = True
                self.task = asyncio.ensure_future(self.drain(reader))
                return True
        self.close()
        return False

    async def drain(self, reader):
        with contextlib.suppress(OSError, EOFError):
            while await reader.read(65536):
                pass
        self.is_open = False

    def close(self):
        self.is_open = False
        if self.task:
            self.task.cancel()
        if self.writer:
            self.writer.transport.abort()
