"""Requests over sockets of their own, and streams that keep every byte that arrived."""

import json
import socket
import ssl
import time
import urllib.parse
from typing import NamedTuple

from harness.waiting import PATIENCE_SECONDS, Failed

from .sse import Parser

HEAD_END = b"\r\n\r\n"


class Address(NamedTuple):
    """The place of a service."""

    scheme: str
    host: str
    port: int

    @staticmethod
    def of(url):
        parts = urllib.parse.urlsplit(url)
        return Address(parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}[parts.scheme])

    @property
    def authority(self):
        return f"{self.host}:{self.port}"

    def connect(self, receive_bytes=None):
        connection = socket.socket()
        if receive_bytes:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        connection.settimeout(PATIENCE_SECONDS)
        connection.connect((self.host, self.port))
        if self.scheme == "https":
            connection = ssl.create_default_context().wrap_socket(connection, server_hostname=self.host)
        return connection


class Head:
    """The status and the headers of an answer. Names of headers are in lower case."""

    def __init__(self, text):
        first, *lines = text.split("\r\n")
        self.version, status, _ = (first + "  ").split(" ", 2)
        self.status = int(status)
        pairs = (line.partition(":") for line in lines if line)
        self.headers = [(name.strip().lower(), value.strip()) for name, _, value in pairs]

    def header(self, name):
        values = [value for key, value in self.headers if key == name.lower()]
        return ", ".join(values) if values else None


class Answer(NamedTuple):
    status: int
    head: Head
    body: bytes

    def header(self, name):
        return self.head.header(name)

    @property
    def json(self):
        return json.loads(self.body)


def head_of_request(address, method, path, headers, length=None, version="1.1"):
    lines = [f"{method} {path} HTTP/{version}"]
    names = {name.lower() for name, _ in headers}
    if "host" not in names:
        lines.append(f"Host: {address.authority}")
    lines += [f"{name}: {value}" for name, value in headers]
    if length is not None:
        lines.append(f"Content-Length: {length}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


class Stream:
    """An open answer, read piece by piece. Every wait ends when its condition holds, or fails after the patience."""

    def __init__(self, address, path, headers=(), method="GET", receive_bytes=None, version="1.1"):
        self.connection = address.connect(receive_bytes)
        self.raw = b""
        self.blocks = []
        self.taken = 0
        self.is_over = False
        self._parser = Parser()
        self._chunks = None
        self.connection.sendall(head_of_request(address, method, path, list(headers), version=version))
        received = b""
        while HEAD_END not in received:
            piece = self._receive()
            if not piece:
                raise Failed(f"the connection ended after {received!r}")
            received += piece
        head, _, rest = received.partition(HEAD_END)
        self.head = Head(head.decode("latin-1"))
        self.status = self.head.status
        if self.header("transfer-encoding") == "chunked":
            self._chunks = Chunks()
        self._accept(rest)

    def header(self, name):
        return self.head.header(name)

    def close(self):
        self.connection.close()

    def _receive(self):
        try:
            return self.connection.recv(1 << 16)
        except TimeoutError:
            raise Failed(f"nothing arrived for {PATIENCE_SECONDS} s; the last blocks: {self.blocks[-3:]}") from None
        except ConnectionResetError:
            return b""

    def _accept(self, piece):
        piece = self._chunks.feed(piece) if self._chunks else piece
        self.raw += piece
        self.blocks += self._parser.feed(piece)
        self.is_over = self.is_over or bool(self._chunks and self._chunks.is_over)

    def pull(self):
        """Waits for more bytes; returns False at the end of the answer."""
        if self.is_over:
            return False
        piece = self._receive()
        self.is_over = not piece
        self._accept(piece)
        return not self.is_over

    def take(self, end=None):
        """Returns the next block; None at the end."""
        end = end or time.monotonic() + PATIENCE_SECONDS
        while self.taken == len(self.blocks):
            # A stream has heartbeats, so waiting for bytes alone would never fail.
            if time.monotonic() > end:
                raise Failed(f"waited {PATIENCE_SECONDS} s; the last blocks: {self.blocks[-3:]}")
            if not self.pull() and self.taken == len(self.blocks):
                return None
        self.taken += 1
        return self.blocks[self.taken - 1]

    def find(self, condition, what):
        """Returns the next block that meets a condition."""
        end = time.monotonic() + PATIENCE_SECONDS
        while block := self.take(end):
            if condition(block):
                return block
        raise Failed(f"the stream ended before {what}; the last blocks: {self.blocks[-3:]}")

    def next(self, name=None):
        """Returns the next event, or the next one with this name."""
        return self.find(lambda block: block.is_event and name in (None, block.name), name or "an event")

    def until(self, name):
        """Returns the events before the next one with this name."""
        end, found = time.monotonic() + PATIENCE_SECONDS, []
        while block := self.take(end):
            if block.name == name:
                return found
            if block.is_event:
                found.append(block)
        raise Failed(f"the stream ended before {name}; the last blocks: {self.blocks[-3:]}")

    def heartbeat(self):
        """Waits for a block that consists of comments."""
        return self.find(lambda block: block.is_heartbeat, "a heartbeat")

    def rest(self):
        """Reads to the end of the stream; returns the events."""
        end, found = time.monotonic() + PATIENCE_SECONDS, []
        while block := self.take(end):
            if block.is_event:
                found.append(block)
        return found

    @property
    def events(self):
        """The events that have arrived so far, also those that were taken."""
        return [block for block in self.blocks if block.is_event]

    @property
    def last_id(self):
        """The id that a client would send to resume now."""
        return next((block.id for block in reversed(self.blocks[:self.taken]) if block.id is not None), None)


class Chunks:
    """Decodes a chunked body, which a proxy in front of the service may produce."""

    def __init__(self):
        self.rest = b""
        self.is_over = False

    def feed(self, piece):
        self.rest += piece
        body = b""
        while b"\r\n" in self.rest:
            size_line, _, after = self.rest.partition(b"\r\n")
            size = int(size_line.split(b";")[0], 16)
            if size == 0:
                self.is_over = True
                break
            if len(after) < size + 2:
                break
            body, self.rest = body + after[:size], after[size + 2:]
        return body


def exchange(address, method, path, headers=(), body=None):
    """Sends one request on a connection of its own; returns the whole answer."""
    with address.connect() as connection:
        length = len(body) if body is not None else None
        head = head_of_request(address, method, path, [*headers, ("Connection", "close")], length)
        connection.sendall(head + (body or b""))
        received = b""
        while True:
            try:
                piece = connection.recv(1 << 16)
            except TimeoutError:
                raise Failed(f"{method} {path} is not answered: {received!r}") from None
            if not piece:
                break
            received += piece
            # An answer that never ends is a stream; its head is enough for a case that expected a refusal.
            if HEAD_END in received and b"text/event-stream" in received.partition(HEAD_END)[0] and method != "HEAD":
                break
    head_bytes, _, content = received.partition(HEAD_END)
    if not head_bytes:
        raise Failed(f"{method} {path}: the connection ended without an answer")
    head = Head(head_bytes.decode("latin-1"))
    if head.header("transfer-encoding") == "chunked":
        content = Chunks().feed(content)
    return Answer(head.status, head, content)
