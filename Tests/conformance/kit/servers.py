"""Servers of Server-Sent Events behind one interface, for the cases that every such server can pass."""

import contextlib
import json
import pathlib
import re
import shutil
import subprocess
import sys

from harness.ports import free_port
from harness.waiting import Failed, wait_until

from .wire import Address, Stream, exchange

HERE = pathlib.Path(__file__).resolve().parents[1]


class BellhopServer:
    """Bellhop: a channel is a user."""

    name = "Bellhop"
    stores_events = True

    def __init__(self, bellhop):
        self.bellhop = bellhop

    def channel(self):
        return self.bellhop.user()

    def connect(self, channel, last=None, headers=()):
        return channel.connect(last=last, headers=headers)

    def request(self, method, channel):
        return channel.request(method, "/v1/stream")

    def publish(self, channel, text, name="kit:text"):
        self.bellhop.publish({"event": name, "to": [channel.key], "data": text})

    def text_of(self, event):
        return json.loads(event.data)

    def is_own(self, event):
        """Whether a server sends the event by itself."""
        return event.name.startswith("stream:")

    def close(self):
        self.bellhop.close()


class OtherServer:
    """A server with the addresses `/subscribe` and `/publish` of the kit's configurations."""

    def __init__(self, folder):
        self.folder = folder
        self.port = free_port()
        self.address = Address("http", "127.0.0.1", self.port)
        self.streams = []
        self.count = 0
        self.process = None

    def start(self):
        with open(self.folder / "server.log", "wb") as log:
            self.process = subprocess.Popen(self.command(), cwd=HERE / "servers", stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(self._answers, lambda: f"{self.name}: {(self.folder / 'server.log').read_text(errors='replace')}")

    def _answers(self):
        if self.process.poll() is not None:
            raise Failed(f"{self.name} ended: {(self.folder / 'server.log').read_text(errors='replace')}")
        with contextlib.suppress(OSError, Failed):
            return exchange(self.address, "GET", "/ready").status == 204
        return False

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def channel(self):
        self.count += 1
        return f"channel{self.count}"

    def connect(self, channel, last=None, headers=()):
        sent = [("Accept", "text/event-stream"), *([("Last-Event-ID", last)] if last is not None else []), *headers]
        stream = Stream(self.address, f"/subscribe?channel={channel}", sent)
        self.streams.append(stream)
        return stream

    def request(self, method, channel):
        return exchange(self.address, method, f"/subscribe?channel={channel}", [("Accept", "text/event-stream")])

    def publish(self, channel, text, name="kit:text"):
        headers = [(self.name_header, name), ("Content-Type", "text/plain; charset=utf-8")]
        answer = exchange(self.address, "POST", f"/publish?channel={channel}", headers, text.encode())
        if answer.status not in (200, 201, 202):
            raise Failed(f"{self.name} does not publish: {answer.status} {answer.body!r}")

    def text_of(self, event):
        return event.data

    def is_own(self, event):
        return False

    def close(self):
        for stream in self.streams:
            stream.close()
        self.streams.clear()


class Nchan(OtherServer):
    """nginx with nchan, from Debian."""

    name = "nchan"
    name_header = "X-EventSource-Event"
    stores_events = True

    def command(self):
        text = (HERE / "servers" / "nchan.conf").read_text(encoding="utf-8")
        (self.folder / "nginx.conf").write_text(text.replace("PORT", str(self.port)).replace("FOLDER", str(self.folder)))
        return [shutil.which("nginx") or "/usr/sbin/nginx", "-c", str(self.folder / "nginx.conf"), "-p", str(self.folder)]

    def version(self):
        done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "libnginx-mod-nchan"], capture_output=True, text=True)
        return re.sub(r"^\d+:|\+.*", "", done.stdout)


class Starlette(OtherServer):
    """sse-starlette on uvicorn, from PyPI. It leaves the storing of events to the app."""

    name = "sse-starlette"
    name_header = "X-Event"
    stores_events = False

    def command(self):
        return [sys.executable, "-m", "uvicorn", "--port", str(self.port), "--log-level", "warning", "starlette_app:app"]

    def version(self):
        import importlib.metadata
        return importlib.metadata.version("sse-starlette")


OTHERS = {server.name: server for server in (Nchan, Starlette)}
