#!/usr/bin/env python3
"""Simulates a school and its users on a real service for half an hour, and then proves that (R-SCH-SC-003)

  - no permanent stream broke or received a resync, and each received something in every minute,
  - closed streams have left no socket and no slot behind,
  - the service's memory did not grow after warming up.

    Tests/crash/soak.py --binary .build-static/release/bellhop [--minutes 30] [--seed 1]

Needs only Python's standard library. A run of less than five minutes prints memory without judging it, because memory
is still warming up.
"""

import collections
import http.client
import json
import os
import random
import selectors
import socket
import struct
import sys
import threading
import time

from crash import run_script
from harness.metrics import metric
from harness.services import Service
from harness.tokens import token
from harness.waiting import PATIENCE_SECONDS, Failed, wait_until

SECRET = "the secret of the feed under test"
SCHOOL = "default"
CLASSES = ["c0", "c1"]
PUPILS = [f"pupil-{number}" for number in range(20)]
PARENTS = [f"parent-{number}" for number in range(10)]
PEOPLE = {**{name: "student" for name in PUPILS}, **{name: "parent" for name in PARENTS}, "t0": "teacher", "t1": "teacher",
          "head": "admin"}
CHALLENGE = "/v1/challenges/soak"
# The allowed growth of memory between the second and the last third of the time. It covers the rounding of allocators,
# but not a leak of 100 bytes for each of the 60,000 rows and 50,000 requests in ten minutes.
GROWTH_MAX_BYTES = 3 << 20
JUDGED_MINUTES = 5
# Four heartbeats. A short run may share its machine and allows more.
SILENCE_MAX_SECONDS = 60


def row(table, record, old=None):
    return {"type": "UPDATE" if old else "INSERT", "schema": "public", "table": table, "record": record, "old_record": old}


def memberships():
    rows = [row("classes", {"id": name, "school_id": SCHOOL, "teacher_id": f"t{number}"})
            for number, name in enumerate(CLASSES)]
    rows += [row("students", pupil(number)) for number in range(len(PUPILS))]
    rows += [row("parent_students", {"id": f"link-{number}", "school_id": SCHOOL, "student_id": name,
                                     "parent_id": PARENTS[number % len(PARENTS)]}) for number, name in enumerate(PUPILS)]
    return rows


def pupil(number, in_class=None, points=0):
    return {"id": PUPILS[number], "school_id": SCHOOL, "class_id": in_class or CLASSES[number % 2], "points": points}


class Backend:
    """A keep-alive connection, as an app's backend uses."""

    def __init__(self, service, bearer):
        self.service, self.bearer, self.connection = service, bearer, None

    def ask(self, method, path, body=None, expect=(200, 201, 202, 204), **headers):
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.service.port, timeout=PATIENCE_SECONDS)
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.bearer:
            headers["Authorization"] = f"Bearer {self.bearer}"
        if body is not None:
            headers["Content-Type"] = "application/json"
        text = None if body is None else json.dumps(body)
        try:
            self.connection.request(method, path, text, headers)
            answer = self.connection.getresponse()
        except (http.client.RemoteDisconnected, ConnectionError):
            # The connection was idle for too long. A response of the service would have been read.
            self.connection.close()
            self.connection.request(method, path, text, headers)
            answer = self.connection.getresponse()
        data = answer.read()
        if answer.status not in expect:
            raise Failed(f"{method} {path} answered {answer.status}: {data[:300]!r}")
        return json.loads(data) if data else None


class Session:
    def __init__(self, service, options):
        self.service, self.seed = service, options.seed
        self.tokens = {name: token(service.secret, name, role) for name, role in PEOPLE.items()}
        self.tokens["backend"] = token(service.secret, "backend", "service_role")
        self.is_enough, self.is_over = threading.Event(), threading.Event()
        self.problems = []
        self.counts = collections.Counter()
        self.silence_max = SILENCE_MAX_SECONDS if options.minutes >= JUDGED_MINUTES else PATIENCE_SECONDS

    def start(self, work, number):
        def run():
            choices = random.Random(self.seed * 100 + number)
            try:
                work(choices, number)
            except Exception as problem:  # Any error fails the session.
                self.problems.append(f"{work.__name__}: {type(problem).__name__}: {problem}")
                self.is_enough.set()

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    def prepare(self):
        backend = Backend(self.service, self.tokens["backend"])
        backend.ask("POST", "/v1/changes", memberships())
        backend.ask("PUT", CHALLENGE, {"name": "Soak", "startsAt": "2020-01-01T00:00:00Z", "endsAt": "2200-01-01T00:00:00Z",
                                       "mode": "add"})
        self.conversations = [backend.ask("POST", "/v1/conversations", {"memberIds": members})["id"]
                              for members in (PUPILS[:2], PUPILS, PARENTS + ["t0", "t1"])]
        self.posts = [backend.ask("POST", "/v1/posts", {"authorId": name, "text": "A post"})["id"] for name in PUPILS[:5]]

    # -- activity ----------------------------------------------------------------------------------------------

    def feed(self, choices, number):
        """Sends attendance, stickers, points, and sometimes a change of class, in bursts."""
        backend, sent = Backend(self.service, None), 0
        while not self.is_enough.wait(choices.random() * 0.1):
            rows = []
            for _ in range(choices.choice([1, 1, 3, 20])):
                sent += 1
                who = choices.randrange(len(PUPILS))
                rows.append(choices.choice([
                    row("attendance", {"id": f"a{sent}", "school_id": SCHOOL, "student_id": PUPILS[who], "status": "late"}),
                    row("student_stickers", {"id": f"s{sent}", "school_id": SCHOOL, "student_id": PUPILS[who]}),
                    row("students", pupil(who, points=sent), pupil(who, points=sent - 1))]))
            if choices.random() < 0.02:
                who = choices.randrange(len(PUPILS))
                there, back = CLASSES[who % 2], CLASSES[1 - who % 2]
                rows.append(row("students", pupil(who, back), pupil(who, there)))
                rows.append(row("students", pupil(who, there), pupil(who, back)))
            answer = backend.ask("POST", "/v1/changes", rows, X_Webhook_Secret=SECRET)
            if answer["rejected"]:
                raise Failed(f"rows were rejected: {answer['rejected'][:3]}")
            self.counts["rows"] += len(rows)

    def talk(self, choices, number):
        """Sends notifications, messages, likes and scores; reads and polls."""
        backend, sent = Backend(self.service, self.tokens["backend"]), 0
        own = {name: Backend(self.service, bearer) for name, bearer in self.tokens.items()}
        while not self.is_enough.wait(choices.random() * 0.04):
            sent += 1
            name = choices.choice(PUPILS)
            one = own[name]
            what = choices.randrange(7)
            if what == 0:
                backend.ask("POST", "/v1/events", {"id": f"e{number}-{sent}", "type": "auth.profile_updated", "userId": name,
                                                   "data": {}})
            elif what == 1:
                one.ask("POST", f"/v1/conversations/{self.conversations[1]}/messages", {"text": f"Message {sent}"})
            elif what == 2:
                last = one.ask("GET", f"/v1/conversations/{self.conversations[1]}")["lastSequence"]
                one.ask("PUT", f"/v1/conversations/{self.conversations[1]}/read-position", {"sequence": last})
            elif what == 3:
                method = choices.choice(["PUT", "DELETE"])
                one.ask(method, f"/v1/posts/{choices.choice(self.posts)}/likes/me")
            elif what == 4:
                backend.ask("POST", f"{CHALLENGE}/scores", {"userId": name, "score": choices.randrange(100)},
                            Idempotency_Key=f"score-{number}-{sent}-{self.seed}")
            else:
                one.ask("GET", choices.choice(["/v1/badges", "/v1/notifications?limit=20", "/v1/feed", "/v1/me"]))
            self.counts["requests"] += 1

    # -- streams -----------------------------------------------------------------------------------------------

    def open(self, name, last_id=None):
        """Returns the socket of a stream and the data read from it."""
        client = socket.create_connection(("127.0.0.1", self.service.port), timeout=PATIENCE_SECONDS)
        lines = ["GET /v1/stream?topics=leaderboard:soak HTTP/1.1", "Host: localhost",
                 f"Authorization: Bearer {self.tokens[name]}"]
        if last_id:
            lines.append(f"Last-Event-ID: {last_id}")
        client.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        read = b""
        while b"stream:ready" not in read or not read.endswith(b"\n\n"):
            part = client.recv(65536)
            if not part:
                raise Failed(f"no stream for {name}: {read[:300]!r}")
            read += part
        return client, read.decode()

    def stay(self, choices, number):
        """Keeps one stream for each user during the whole time."""
        selector = selectors.DefaultSelector()
        heard = {}
        for name in PEOPLE:
            client, _ = self.open(name)
            client.setblocking(False)
            selector.register(client, selectors.EVENT_READ, name)
            heard[name] = time.monotonic()
        self.are_open.set()
        while not self.is_over.is_set():
            for key, _ in selector.select(0.5):
                data = key.fileobj.recv(1 << 18)
                if not data:
                    raise Failed(f"the stream of {key.data} was closed")
                if b"stream:resync" in data:
                    raise Failed(f"{key.data} was told to fetch everything again: {data[:300]!r}")
                heard[key.data] = time.monotonic()
                self.counts["told"] += data.count(b"event: ")
            quiet = [name for name, at in heard.items() if time.monotonic() - at > self.silence_max]
            if quiet:
                raise Failed(f"{quiet} heard nothing for {self.silence_max} s, not even a heartbeat")

    def come_and_go(self, choices, number):
        """Opens streams that resume, request rows, and are closed or vanish without notice."""
        last_ids = {}
        while not self.is_enough.is_set():
            name = choices.choice(list(PEOPLE))
            client, read = self.open(name, last_ids.get(name))
            self.counts["streams"] += 1
            fields = [line[6:] for line in read.split("\n") if line.startswith("data: ") and '"streamId"' in line]
            wish = {"tables": [{"id": "rows", "table": "attendance", "filter": f"student_id=in.({','.join(PUPILS)})"}]}
            Backend(self.service, self.tokens[name]).ask(
                "PUT", f"/v1/streams/{json.loads(fields[0])['streamId']}/subscriptions", wish)
            until = time.monotonic() + choices.random()
            while (left := until - time.monotonic()) > 0:
                client.settimeout(left)
                try:
                    read = client.recv(65536).decode(errors="replace")
                except TimeoutError:
                    break
                # Only complete lines, because an id that was cut off is invalid.
                ids = [line[4:] for line in read.split("\n")[:-1] if line.startswith("id: ")]
                last_ids[name] = ids[-1] if ids else last_ids.get(name)
            if choices.random() < 0.3:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()

    # -- the proof ---------------------------------------------------------------------------------------------

    def metric(self, name):
        value = metric(self.service.port, name)
        if value is None:
            raise Failed(f"/metrics does not have {name}")
        return int(value)

    def memory(self):
        """Returns the bytes that are allocated and not freed. The resident set would also contain mapped database
        pages, which come and go, and memory that the allocator keeps after a burst."""
        return self.metric("bellhop_process_allocated_bytes")

    def sockets(self):
        """Returns the number of descriptors without files: readers of the database open files under load and keep them."""
        count = 0
        with os.scandir(f"/proc/{self.service.process.pid}/fd") as descriptors:
            for descriptor in descriptors:
                try:
                    count += os.readlink(descriptor.path).startswith("socket:")
                except OSError:
                    pass  # Closed in the meantime.
        return count

    def live(self, minutes):
        self.are_open = threading.Event()
        self.start(self.stay, 0)
        if not self.are_open.wait(PATIENCE_SECONDS):
            raise Failed(f"the streams did not open: {self.problems}")
        at_rest = self.sockets()
        acting = [self.start(work, number + 1) for number, work in enumerate(
            [self.feed, self.talk, self.talk] + [self.come_and_go] * 4)]
        begin, samples = time.monotonic(), []
        while (passed := time.monotonic() - begin) < minutes * 60 and not self.is_enough.wait(min(5, minutes * 6)):
            samples.append((passed, self.memory()))
            if passed >= 60 * (self.counts["minutes"] + 1):
                self.counts["minutes"] += 1
                told = ", ".join(f"{self.counts[name]:,} {name}" for name in ("rows", "requests", "streams", "told"))
                print(f"  {self.counts['minutes']} min: {samples[-1][1] / 2**20:.1f} MiB allocated, {told}", flush=True)
        if self.problems:
            raise Failed("; ".join(self.problems[:3]))
        self.settle(acting, at_rest)
        self.judge(samples, minutes)
        # Each kind of user, and three final checks: streams, sockets, memory.
        return 1 + len(acting) + 3

    def settle(self, acting, at_rest):
        """Stops the active users and checks that exactly the permanent streams remain."""
        self.is_enough.set()
        for thread in acting:
            thread.join(PATIENCE_SECONDS)
        try:
            wait_until(
                lambda: self.metric("bellhop_streams_open") == len(PEOPLE) and self.sockets() <= at_rest,
                lambda: f"{self.metric('bellhop_streams_open')} streams to be {len(PEOPLE)}, and {self.sockets()} sockets "
                        f"to be at most {at_rest}",
                self.problems)
        finally:
            self.is_over.set()

    def judge(self, samples, minutes):
        third = minutes * 20
        parts = [max((size for at, size in samples if third * place <= at < third * (place + 1)), default=0)
                 for place in range(3)]
        print("  most memory in each third: " + ", ".join(f"{size / 2**20:.1f} MiB" for size in parts))
        if minutes >= JUDGED_MINUTES and parts[2] - parts[1] > GROWTH_MAX_BYTES:
            raise Failed(f"memory grew by {(parts[2] - parts[1]) / 2**20:.1f} MiB from the second third to the last")


def run(options, folder):
    service = Service(options.binary, folder)
    service.environment.update(BELLHOP_TABLES="school", BELLHOP_CHANGES_SECRET=SECRET, BELLHOP_CLAIM_STUDENT="sub", BELLHOP_RATE_LIMIT_USER="0",
                               # Abandoned connections of requests end soon, so that sockets can be counted.
                               BELLHOP_CONNECTION_TIMEOUT_SECONDS="3")
    service.start()
    try:
        session = Session(service, options)
        session.prepare()
        cases = session.live(options.minutes)
        service.stop()
        return cases
    finally:
        if service.process.poll() is None:
            service.kill()


if __name__ == "__main__":
    sys.exit(run_script("soak", __doc__, run, minutes=30.0))
