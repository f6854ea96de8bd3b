#!/usr/bin/env python3
"""Leads streams and polls through proxies that compress and buffer: nginx, Apache, Caddy, HAProxy and Express.

    Tests/proxies/proxies.py --binary .build/debug/bellhop

Through each proxy, with and without compression: an event arrives although nothing follows that could push it out of a
buffer; a heartbeat passes; a poll with the tag that the proxy has handed out gets a 304; HEAD and the other requests
that bellhop.js sends while it has no stream are answered. The time from publishing to arrival is printed.
"""

import argparse
import contextlib
import http.client
import json
import pathlib
import sys
import tempfile
import time
import zlib

from fronts import FRONTS
from harness.events import EventReader
from harness.services import Service, request
from harness.tokens import token
from harness.waiting import PATIENCE_SECONDS, Failed

# Longer than the test's patience, so that no heartbeat pushes a held event out.
SILENT_SECONDS = 3600
CODINGS = {"identity": None, "compressed": "gzip, br"}
# What bellhop.js asks for while it has no stream, and answers that are long enough for each proxy to compress.
POLLED = ("/v1/badges", "/v1/badges?include=conversations", "/v1/config", "/openapi.json", "/bellhop.js")
UNTAGGED = ("/v1/notifications", "/v1/me")


def require(holds, what):
    """Raises an error if the condition does not hold."""
    if not holds:
        raise Failed(what)


def inflated(answer):
    """Returns a function that decodes the pieces of a body as they arrive."""
    coding = answer.getheader("Content-Encoding", "identity")
    require(coding in ("identity", "gzip"), f"the body has the coding {coding}")
    return zlib.decompressobj(16 + zlib.MAX_WBITS).decompress if coding == "gzip" else bytes


class Stream:
    """A stream through a proxy, read as its bytes arrive."""

    def __init__(self, port, headers):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
        self.connection.request("GET", "/v1/stream", headers={**headers, "Accept": "text/event-stream"})
        self.answer = self.connection.getresponse()
        require(self.answer.status == 200, f"/v1/stream answers {self.answer.status}")
        self.decode = inflated(self.answer)
        self.events = EventReader()
        self.pending = []

    def piece(self):
        piece = self.answer.read1(1 << 16)
        require(piece, "the stream ended")
        return self.decode(piece)

    def event(self, name):
        """Waits for an event and returns it."""
        while True:
            while self.pending:
                event = self.pending.pop(0)
                if event.name == name:
                    return event
            self.pending += self.events.feed(self.piece())

    def heartbeat(self):
        """Waits for a comment after the beginning."""
        self.event("stream:ready")
        text = self.events.rest
        while b"\n:" not in b"\n" + text:
            text += self.piece()

    def close(self):
        self.connection.close()


class Trial:
    """A proxy in front of a service, and what must pass through it."""

    def __init__(self, front, service):
        self.front, self.service = front, service
        self.backend = token(service.secret, "backend", "service_role")
        self.cases = 0

    def headers(self, coding):
        headers = {"Authorization": f"Bearer {token(self.service.secret, 'ada')}"}
        return headers | ({"Accept-Encoding": CODINGS[coding]} if CODINGS[coding] else {})

    def case(self, name, coding, check):
        try:
            said = check(coding)
        except (Failed, OSError, http.client.HTTPException, zlib.error) as error:
            raise Failed(f"{self.front.name}, {coding}, {name}: {error!r}") from error
        self.cases += 1
        if said:
            print(f"ok      {self.front.name:8} {coding:10} {name}: {said}", flush=True)

    def publish(self, event):
        """Publishes an event through the proxy."""
        body = json.dumps({"event": event, "to": ["user:ada"], "data": {"text": "x"}})
        headers = {"Authorization": f"Bearer {self.backend}", "Content-Type": "application/json"}
        status, _, content = request(self.front.port, "POST", "/v1/publish", body, headers)
        require(status in (200, 201, 202), f"publishing answers {status}: {content[:200]}")

    def event_arrives(self, coding):
        took = []
        with contextlib.closing(Stream(self.front.port, self.headers(coding))) as stream:
            stream.event("stream:ready")
            for number in range(3):
                begin = time.monotonic()
                self.publish(f"order:ready{number}")
                stream.event(f"order:ready{number}")
                took.append((time.monotonic() - begin) * 1000)
            carried = stream.answer.getheader("Content-Encoding", "as it is")
        return f"{', '.join(f'{one:.0f}' for one in took)} ms, {carried}"

    def heartbeat_arrives(self, coding):
        with contextlib.closing(Stream(self.front.port, self.headers(coding))) as stream:
            stream.heartbeat()

    def poll_is_answered(self, coding):
        """A second poll names the tag as the proxy has handed it out."""
        marked = set()
        for path in POLLED:
            headers = self.headers(coding)
            status, fields, body = request(self.front.port, "GET", path, headers=headers)
            require(status == 200, f"{path} answers {status}")
            require("etag" in fields, f"{path} has no tag")
            if fields.get("content-encoding"):
                marked.add(fields["content-encoding"])
            status, again, body = request(self.front.port, "GET", path, headers={**headers, "If-None-Match": fields["etag"]})
            require(status == 304 and not body, f"{path} answers {status} to its own tag {fields['etag']}")
        for path in UNTAGGED:
            require(request(self.front.port, "GET", path, headers=self.headers(coding))[0] == 200, f"{path} fails")
        return f"304 to the tags of answers that are {' and '.join(sorted(marked)) or 'as they were'}"

    def change_is_made(self, coding):
        """A change names the version by the tag that the proxy has handed out."""
        backend = {"Authorization": f"Bearer {self.backend}", "Content-Type": "application/json"}

        def call(method, path, body, headers):
            status, fields, content = request(self.front.port, method, path, json.dumps(body), headers)
            require(status in (200, 201), f"{method} {path} answers {status}: {content[:300]}")
            return fields

        call("PUT", "/v1/shops/s1", {"name": "The Cut Club", "timeZone": "UTC"}, backend)
        start = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 86_400))
        wish = {"shopId": "s1", "service": "cut", "scheduledStart": start, "durationMinutes": 30}
        own = {**self.headers(coding), "Content-Type": "application/json"}
        path = call("POST", "/v1/bookings", wish, own)["location"]
        status, fields, _ = request(self.front.port, "GET", path, headers=self.headers(coding))
        require(status == 200, f"{path} answers {status}")
        tag = fields["etag"]
        call("PATCH", path, {"durationMinutes": 20}, {**own, "If-Match": tag})
        return f"If-Match: {tag}"

    def head_is_answered(self, coding):
        """The second answer on the connection proves that the first one had no body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.front.port, timeout=PATIENCE_SECONDS)
        with contextlib.closing(connection):
            for path in ("/v1/badges", "/v1/stream", "/openapi.json"):
                for method in ("HEAD", "GET") if path != "/v1/stream" else ("HEAD",):
                    connection.request(method, path, headers=self.headers(coding))
                    answer = connection.getresponse()
                    body = answer.read()
                    require(answer.status == 200, f"{method} {path} answers {answer.status}")
                    require(bool(body) == (method == "GET"), f"{method} {path} has a body of {len(body)} bytes")


def run(binary, folder):
    service = Service(binary, folder)
    service.environment["BELLHOP_HEARTBEAT_SECONDS"] = str(SILENT_SECONDS)
    service.start()
    fronts = []
    try:
        for front in FRONTS:
            fronts.append(front(folder, service.port))
        trials = [Trial(front, service) for front in fronts]
        for trial in trials:
            for coding in CODINGS:
                trial.case("an event", coding, trial.event_arrives)
                trial.case("polls", coding, trial.poll_is_answered)
                trial.case("a change", coding, trial.change_is_made)
                trial.case("HEAD", coding, trial.head_is_answered)
        # On the same port, so that the proxies need not know.
        service.stop()
        service.environment["BELLHOP_HEARTBEAT_SECONDS"] = "1"
        service.start()
        for trial in trials:
            for coding in CODINGS:
                trial.case("a heartbeat", coding, trial.heartbeat_arrives)
        return sum(trial.cases for trial in trials)
    finally:
        for front in fronts:
            front.stop()
        service.kill()


def main():
    """Runs all trials and prints their number."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    options = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder).chmod(0o755)
            print(f"cases: {run(options.binary, pathlib.Path(folder))}")
    except Failed as wrong:
        sys.exit(f"FAILED  {wrong}")


if __name__ == "__main__":
    main()
