#!/usr/bin/env python3
"""Measures the dearest requests of each role: the CPU time of the whole process for one request, on SQLite.

    .build-tools/bin/python Benchmarks/dearest.py [--binary PATH] [--turns N] [--only TEXT] [--within-ms N]

Each request is sent alone, some times in a row. The table has the least time, because other programs on the machine only
add to it, and the median. The time counts until the process is idle again: the answer, the commit, the events to streams and
what other threads do because of the request. The exit code is 1 if a request of an ordinary user costs more than
`--within-ms` (20). Makes no build: --binary is a release build
(`swift build -c release --product bellhop`)."""

import argparse
import base64
import dataclasses
import http.client
import json
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "Tests")]
sys.dont_write_bytecode = True

from harness import tokens  # noqa: E402
from harness.services import Service, request  # noqa: E402

MEMBERS, DEVICES, MEMBERSHIPS, EVENTS = 256, 20, 10_000, 20_000
TABLES = """
version: 1
tables:
  - table: seats
    primaryKey: [id]
    tenant: {constant: default}
    audience: {select: ["user:{user_id}"]}
    memberships:
      - {name: seat, subject: "user:{user_id}", grants: "team:{team_id}"}
"""


class Town:
    """A service with as much data as its limits allow for one user."""

    def __init__(self, binary, folder):
        (folder / "tables.yaml").write_text(TABLES)
        self.service = Service(binary, folder)
        self.service.environment |= {
            "BELLHOP_TABLES": str(folder / "tables.yaml"), "BELLHOP_RATE_LIMIT_USER": "0", "BELLHOP_RATE_LIMIT_SERVICE": "0",
            "BELLHOP_REACTORS": "1", "BELLHOP_SHARDS": "1", "BELLHOP_LOG_LEVEL": "error",
            "BELLHOP_PUSH_KEYS": base64.b64encode(bytes(range(32))).decode(), "BELLHOP_PUSH_PRIVATE": "true",
            # Nothing listens there: a refused connection costs little, and belongs to no request of a user.
            "BELLHOP_PUSH_HOSTS": "127.0.0.1", "BELLHOP_VAPID_CONTACT": "mailto:bench@example.com",
            "BELLHOP_PUSH_AFTER_SECONDS": "86400",
            "BELLHOP_VAPID_KEY": "Ur5zzph2LoJ78TKZx261i2vXgrgApj7dVKfdCOpCjRI"}
        self.service.start()
        self.backend = self.token("backend", "service_role")
        self.bearers = {}

    def token(self, subject, role=None, **rights):
        return tokens.token(self.service.secret, subject, role, 3600, rights)

    def user(self, name):
        if name not in self.bearers:
            self.bearers[name] = self.token(name)
        return self.bearers[name]

    def call(self, method, path, body=None, bearer=None):
        status, answer = self.service.request(method, path, bearer or self.backend, body)
        if status >= 300:
            raise SystemExit(f"{method} {path}: {status} {answer[:300].decode(errors='replace')}")
        return json.loads(answer) if answer else None

    # MARK: Data

    def fill(self):
        for start in range(0, MEMBERSHIPS, 1000):
            self.call("POST", "/v1/changes", [self.seat(number) for number in range(start, min(start + 1000, MEMBERSHIPS))])
        # Later than the window in which the memberships were sent as changes.
        time.sleep(3)
        self.call("POST", "/v1/publish", {"event": "bench:done", "to": ["user:y0"], "data": None})
        self.early = self.position(self.user("wide"))
        for start in range(0, EVENTS, 100):
            self.call("POST", "/v1/publish", [
                {"event": "bench:done", "to": [f"user:y{number}"], "data": None} for number in range(start, start + 100)])
        for number in range(600):
            self.call("POST", "/v1/notifications", {
                "userId": "u0", "category": "bell", "priority": "LOW", "title": f"T {number}", "message": "M " * 100})
        for number in range(200):
            self.call("POST", "/v1/conversations", {"id": f"small{number}", "memberIds": ["u0", "u1"]})
            self.call("POST", f"/v1/conversations/small{number}/messages", {"text": "hello"}, self.user("u1"))
        for name in ("crowd", "ringing"):
            prefix = "u" if name == "crowd" else "r"
            self.call("POST", "/v1/conversations", {
                "id": name, "memberIds": [f"{prefix}{number}" for number in range(MEMBERS)]})
        for number in range(1, MEMBERS):
            for device in range(DEVICES):
                self.call("PUT", f"/v1/devices/d{device}", self.browser(f"r{number}-{device}"), self.user(f"r{number}"))
        for number in range(500):
            self.call("PUT", f"/v1/users/u0/followers/f{number}", None, self.user(f"f{number}"))
            self.call("PUT", f"/v1/users/a{number}/followers/u0", None, self.user("u0"))
            self.call("POST", "/v1/posts", {"text": "a post " * 50}, self.user(f"a{number}"))

    @staticmethod
    def seat(number, user="wide"):
        return {"type": "INSERT", "schema": "public", "table": "seats", "old_record": None,
                "record": {"id": f"{user}{number}", "user_id": user, "team_id": f"t{number}"}}

    @staticmethod
    def browser(path):
        return {"platform": "webpush", "subscription": {
            "endpoint": f"https://127.0.0.1/{path}", "keys": {
                "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
                "auth": "BTBZMqHH6r4Tts7J_aSIgg"}}}

    # MARK: Measuring

    def cpu(self):
        """The CPU time of all threads in milliseconds, of which each is exact to the nanosecond."""
        total = 0
        for thread in pathlib.Path(f"/proc/{self.service.process.pid}/task").iterdir():
            try:
                total += int((thread / "schedstat").read_text().split()[0])
            except OSError:
                pass
        return total / 1e6

    def idle(self):
        """Waits until the process has used no more than its background work; returns its CPU time."""
        known = self.cpu()
        while True:
            time.sleep(0.05)
            now = self.cpu()
            if now - known < 0.4:
                return now
            known = now

    def measure(self, request, turns):
        costs = []
        for turn in range(turns + 1):
            if request.prepare:
                request.prepare(turn)
            before = self.idle()
            after = request.act(turn)
            cost = self.idle() - before
            if after:
                after()
            if turn > 0:  # The first one fills caches.
                costs.append(cost)
        return min(costs), statistics.median(costs)

    def open(self, bearer, position=None):
        """Opens a stream and reads its first event; returns what closes it, and the id of the stream."""
        path = "/v1/stream" + (f"?lastEventId={position}" if position else "")
        connection = http.client.HTTPConnection("127.0.0.1", self.service.port, timeout=60)
        connection.request("GET", path, headers={"Authorization": f"Bearer {bearer}", "Accept": "text/event-stream"})
        answer = connection.getresponse()
        if answer.status != 200:
            raise SystemExit(f"GET {path}: {answer.status}")
        while b"stream:ready" not in answer.readline():
            pass
        line = answer.readline()
        while not line.startswith(b"data:"):
            line = answer.readline()


        def close():
            # The answer has the socket, and without a reference to it the stream would end.
            answer.close()
            connection.close()

        return close, json.loads(line[5:])["streamId"]

    def position(self, bearer):
        headers = request(self.service.port, "GET", "/v1/badges", None, {"Authorization": f"Bearer {bearer}"})[1]
        return headers["event-position"]


@dataclasses.dataclass
class Request:
    role: str
    name: str
    # Sends the request of a turn; returns what ends it, if anything.
    act: Callable
    # What precedes the request and does not count.
    prepare: Callable | None = None


def wide_requests(town):
    """Returns requests of a user with many memberships."""
    wide, owned = town.user("wide"), f"with {MEMBERSHIPS:,} memberships"
    position, opened = town.position(wide), []

    def replace(turn):
        town.call("PUT", f"/v1/streams/{opened[-1][1]}/subscriptions", {"topics": [f"queue:s{turn}"]}, wide)
        return opened.pop()[0]

    def close(turn):
        opened.pop()[0]()
        return opened.pop()[0]

    def open_two(turn):
        # The second one has the keys in another order.
        opened.extend([town.open(wide), town.open(town.token("wide", **{"jti": f"other{turn}"}))])

    return [
        Request("user", f"open a stream {owned}", lambda _: town.open(wide)[0]),
        Request("user", f"open a stream {owned} and a new token",
                lambda turn: town.open(town.token("wide", **{"jti": f"new{turn}"}))[0]),
        Request("user", f"resume a stream {owned}", lambda _: town.open(wide, position)[0]),
        Request("user", f"resume a stream {owned} after {EVENTS:,} events", lambda _: town.open(wide, town.early)[0]),
        Request("user", f"close a stream {owned}", lambda _: opened.pop()[0]() and None,
                lambda _: opened.append(town.open(wide))),
        Request("user", f"close one of two streams {owned}", close, open_two),
        Request("user", f"replace the topics of a stream {owned}", replace, lambda _: opened.append(town.open(wide))),
        Request("user", f"counts {owned}, after one has changed", lambda _: town.call("GET", "/v1/badges", None, wide) and None,
                lambda turn: town.call("POST", "/v1/changes", [town.seat(turn, "other")])),
    ]


def requests(town):
    """Returns the requests."""
    user = town.user("u0")
    admin = town.token("root", "admin")

    def send(method, path, body=None, bearer=user):
        return lambda turn: town.call(method, path, body(turn) if callable(body) else body, bearer) and None

    def keys(turn):
        return [{"event": "bench:done", "to": [f"user:x{number}-{key}" for key in range(256)], "data": {"n": turn}}
                for number in range(60)]

    opened = []

    def filters(turn):
        values = ["(" + ",".join(f"{1_234_567_890_123_456 + turn + 7 * value}e-{200 + value % 90}" for value in range(1000)) + ")"
                  for _ in range(10)]
        tables = [{"id": f"s{number}", "table": "seats", "filter": f"id=in.{one}"} for number, one in enumerate(values)]
        town.call("PUT", f"/v1/streams/{opened[-1][1]}/subscriptions", {"tables": tables}, user)
        return opened.pop()[0]

    subscribed = Request("user", "10 filters with 1,000 numbers each", filters, lambda _: opened.append(town.open(user)))
    return wide_requests(town) + [subscribed] + [Request(*row) for row in [
        ("user", f"a message to {MEMBERS - 1} members", send("POST", "/v1/conversations/crowd/messages", {"text": "hello"})),
        ("user", f"create a conversation of {MEMBERS}",
         send("POST", "/v1/conversations", {"memberIds": [f"u{number}" for number in range(MEMBERS)]})),
        ("user", "100 notifications of 500", send("GET", "/v1/notifications?limit=100")),
        ("user", "100 conversations of 200", send("GET", "/v1/conversations?limit=100")),
        ("user", "counts with 200 conversations", send("GET", "/v1/badges?include=conversations")),
        ("user", "100 posts of a feed of 500 authors", send("GET", "/v1/feed?limit=100")),
        ("user", "a post of 64 KB with unknown members", lambda _: town.service.request(
            "POST", "/v1/posts", user, {f"member{number}": 1 for number in range(3500)}) and None),
        ("user", "register a device", lambda turn: town.call("PUT", "/v1/devices/d1", town.browser(f"n{turn}"), user) and None),
        ("backend", "publish 60 events to 256 keys each", send("POST", "/v1/publish", keys, town.backend)),
        ("backend", "1,000 row changes with memberships", lambda turn: town.call(
            "POST", "/v1/changes", [town.seat(number, f"v{turn}") for number in range(1000)]) and None),
        ("backend", "the export of a user", lambda _: request(
            town.service.port, "GET", "/v1/users/u0/export", None, {"Authorization": f"Bearer {town.backend}"}) and None),
        ("administrator", "100 entries of the audit log", send("GET", "/v1/audit?limit=100", None, admin)),
        # The last one, because the push messages are tried again later.
        ("user", f"a message to {MEMBERS - 1} members with {DEVICES} devices each",
         send("POST", "/v1/conversations/ringing/messages", {"text": "hello"}, town.user("r0"))),
    ]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=str(HERE.parent / ".build/release/bellhop"))
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--only", default="", help="measure only requests whose name contains this text")
    parser.add_argument("--within-ms", type=float, default=20)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        town = Town(given.binary, pathlib.Path(folder))
        try:
            town.fill()
            found = [(town.measure(one, given.turns), one.role, one.name) for one in requests(town) if given.only in one.name]
        finally:
            town.service.kill()
    found.sort(reverse=True)
    print("| request | role | CPU, least | median |\n|---|---|---|---|")
    for (least, median), role, name in found:
        print(f"| {name} | {role} | {least:.1f} ms | {median:.1f} ms |")
    sys.exit(any(least > given.within_ms and role == "user" for (least, _), role, _ in found))


if __name__ == "__main__":
    main()
