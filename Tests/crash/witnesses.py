"""Observers of the replicas: streams that record their events, writers that record their responses, and checks that
compare both with the event log in the database.
"""

import collections
import contextlib
import errno
import http.client
import json
import random
import selectors
import socket
import threading
import time

from event_ids import CURSOR, IDS, forged
from harness.events import EventReader
from harness.tokens import token
from harness.waiting import PATIENCE_SECONDS, Failed, seconds_until, wait_until

REPLAY_EVENTS_MAX = 1000
REPLAY_BYTES_MAX = 1024 * 1024


class Times:
    """Checks measured times, but only in runs that ask for it (--within-ms). A busy machine must not fail a test.

    - within_ms: the maximum for everything that the service promises within a second; None disables the check.
    """

    within_ms = None

    def note(self, what, seconds, seconds_promised):
        """Records a time; returns the measured seconds."""
        if self.within_ms is not None and seconds * 1000 > seconds_promised * self.within_ms:
            allowed = seconds_promised * self.within_ms / 1000
            raise Failed(f"{what} took {seconds:.1f} s; --within-ms {self.within_ms} allows {allowed:g} s")
        return seconds


TIMES = Times()
# A request that takes longer hangs. Only runs with --within-ms check this.
HANG_SECONDS = 10


class Refusal(Exception):
    """A valid 503: it names the cause and the time of the retry."""


def check_refusal(status, headers, body, what):
    """Accepts only a valid 503 as a refusal. Any other unsuccessful response is a difference."""
    if status != 503:
        raise Failed(f"{what} answered {status}: {body[:300]!r}")
    retry_after = headers.get("retry-after")
    if retry_after is None or not retry_after.isdigit():
        raise Failed(f"{what} answered 503 with Retry-After {retry_after!r}: {body[:300]!r}")
    if not headers.get("content-type", "").startswith("application/problem+json"):
        raise Failed(f"{what} answered 503 as {headers.get('content-type')}: {body[:300]!r}")
    raise Refusal


class Client:
    """A keep-alive connection to each of the replicas."""

    def __init__(self, replicas, watch=None):
        self.replicas = replicas
        # Called with the replica, "sent" or "answered", and the connection. The callback may kill the replica at this
        # moment, or break the connection by raising an error.
        self.watch = watch or (lambda *_: None)
        self.connections = {}
        self.slowest = 0.0

    def request(self, replica, method, path, bearer=None, body=None, key=None, headers=None):
        """Returns status, headers with lower-case names, and body. The caller handles a broken connection."""
        connection = self.connections.get(replica)
        if connection is None:
            connection = self.connections[replica] = http.client.HTTPConnection(
                "127.0.0.1", replica.port, timeout=PATIENCE_SECONDS
            )
        sent = dict(headers or {})
        if bearer:
            sent["Authorization"] = f"Bearer {bearer}"
        if key:
            sent["Idempotency-Key"] = key
        if body is not None:
            sent["Content-Type"] = "application/json"
        start = time.monotonic()
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, sent)
            self.watch(replica, "sent", connection)
            answer = connection.getresponse()
            content = answer.read()
            self.watch(replica, "answered", connection)
        except (OSError, http.client.HTTPException) as problem:
            connection.close()
            del self.connections[replica]
            if isinstance(problem, socket.timeout):
                raise Failed(f"{method} {path} hung for {PATIENCE_SECONDS} s at {replica.name}") from None
            raise
        took = TIMES.note(f"{method} {path} at {replica.name}", time.monotonic() - start, HANG_SECONDS)
        self.slowest = max(self.slowest, took)
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, content

    def ask(self, *request, **more):
        """Repeats a request after each refusal, for requests that the service refuses only on a busy machine."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            status, headers, content = self.request(*request, **more)
            if status != 503 or time.monotonic() > deadline:
                return status, headers, content
            time.sleep(0.02)

    def close(self):
        for connection in self.connections.values():
            connection.close()
        self.connections = {}


class Load:
    """Writers and readers on all replicas. An unanswered request is repeated with the same Idempotency-Key until it is
    answered, at a replica other than the one that failed. At the end every write is therefore either done and
    acknowledged, or a failure.
    """

    def __init__(self, replicas, users, seed, writers=8, readers=1, may_break=False):
        self.replicas = replicas
        self.users = users
        self.secret = replicas[0].secret
        self.backend = token(self.secret, "backend", "service_role")
        self.bearers = {user: token(self.secret, user) for user in users}
        # Whether connections may break: only while a replica is killed.
        self.may_break = may_break
        self.is_over = threading.Event()
        # Requests begin only while this is set.
        self.gate = threading.Event()
        self.gate.set()
        # Retries begin only while this is set.
        self.repeating = threading.Event()
        self.repeating.set()
        self.lock = threading.Lock()
        # Guarded by the lock, like everything that follows.
        self.busy = 0
        self.events = {user: set() for user in users}
        self.titles = {user: set() for user in users}
        self.changes = 0
        self.refusals = 0
        self.breaks = 0
        # Stored responses to retries: the write was done, but its first response was lost.
        self.replays = 0
        self.slowest = 0.0
        self.succeeded_at = {}
        self.problems = []
        self.threads = [self.thread(self._write, f"{seed}-{number}") for number in range(writers)]
        self.threads += [self.thread(self._read, f"{seed}-r{number}") for number in range(readers)]

    def thread(self, step, seed):
        return threading.Thread(target=self._work, args=(step, seed), daemon=True)

    def watch(self, replica, moment, connection):
        """Called at each request; see `Client`."""

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, kind, *_):
        self.is_over.set()
        if kind is not None:
            self.problems.append("the scenario is over")
        for thread in self.threads:
            thread.join(PATIENCE_SECONDS)
        if kind is None and self.problems:
            raise Failed("; ".join(self.problems[:3]))

    @property
    def acknowledged(self):
        with self.lock:
            return self.changes

    def wait_for(self, count):
        """Waits until this number of further writes is acknowledged; returns the seconds that this took."""
        wanted = self.acknowledged + count
        return seconds_until(lambda: self.acknowledged >= wanted, f"{count} writes to be acknowledged", self.problems)

    @contextlib.contextmanager
    def paused(self):
        """Holds new requests back until none is in flight."""
        self.gate.clear()
        try:
            wait_until(lambda: self.busy == 0, "all requests to be answered", problems=self.problems)
            yield
        finally:
            self.gate.set()

    @contextlib.contextmanager
    def unrepeated(self):
        """Holds retries back until the end. After a pause, all other requests are answered."""
        self.repeating.clear()
        try:
            yield
        finally:
            self.repeating.set()

    def _wait_to_repeat(self):
        while not self.repeating.is_set() and not self.problems:
            with self.lock:
                self.busy -= 1
            self.repeating.wait(0.1)
            with self.lock:
                self.busy += 1

    def wait_for_all(self, since, what):
        """Waits until each replica has done a write that was sent after a certain moment."""
        wait_until(
            lambda: all(self.succeeded_at.get(replica, 0) > since for replica in self.replicas), what, self.problems
        )

    def write_event(self, user, name):
        """Writes one event as the writers do, for callers outside of them."""
        client = Client(self.replicas)
        body = {"id": name, "type": "auth.profile_updated", "userId": user, "data": {}}
        try:
            self._until_answered(client, random.Random(name), "POST", "/v1/events", self.backend, (200, 201), body)
            with self.lock:
                self.events[user].add(name)
        except Failed as problem:
            with self.lock:
                self.problems.append(str(problem))
        finally:
            client.close()

    def _work(self, step, seed):
        choices = random.Random(seed)
        client = Client(self.replicas, self.watch)
        memory = {"seed": seed, "count": 0, "versions": {}, "ids": {}}
        try:
            while not self.is_over.is_set() and not self.problems:
                with self.lock:
                    self.busy += 1
                try:
                    if self.gate.is_set():
                        step(client, choices, memory)
                finally:
                    with self.lock:
                        self.busy -= 1
                self.gate.wait(0.1)
        except Exception as problem:  # Any error that ends a thread fails the run and must not be lost with the thread.
            with self.lock:
                self.problems.append(str(problem) if isinstance(problem, Failed) else repr(problem))
        finally:
            client.close()
            with self.lock:
                self.slowest = max(self.slowest, client.slowest)

    def _until_answered(self, client, choices, method, path, bearer, good, body=None, key=None):
        deadline = time.monotonic() + PATIENCE_SECONDS
        attempts = 0
        broken = None
        while time.monotonic() < deadline and not self.problems:
            if attempts:
                self._wait_to_repeat()
            attempts += 1
            replica = choices.choice([one for one in self.replicas if one is not broken] or self.replicas)
            sent_at = time.monotonic()
            try:
                status, headers, content = client.request(replica, method, path, bearer, body, key)
                if status in good:
                    with self.lock:
                        self.succeeded_at[replica] = max(self.succeeded_at.get(replica, 0), sent_at)
                        self.replays += "idempotency-replayed" in headers
                    if status == 200 and 201 in good and attempts == 1:
                        raise Failed(f"{method} {path} at {replica.name} answered 200 to the first of its kind: {body}")
                    return content
                check_refusal(status, headers, content, f"{method} {path} at {replica.name}")
            except Refusal:
                with self.lock:
                    self.refusals += 1
                self.is_over.wait(0.02)
            except (OSError, http.client.HTTPException) as problem:
                if not self.may_break:
                    raise Failed(f"{method} {path}: {replica.name} broke the connection: {problem!r}") from None
                with self.lock:
                    self.breaks += 1
                broken = replica
                self.is_over.wait(0.01)
        raise Failed(f"{method} {path} was not answered in {PATIENCE_SECONDS} s, or given up")

    def _write(self, client, choices, memory):
        memory["count"] += 1
        name = f"{memory['seed']}-{memory['count']}"
        user = choices.choice(self.users)
        kind = choices.random()
        known = memory["ids"].get(user)
        if kind < 0.7 or (kind >= 0.85 and known is None):
            body = {"id": name, "type": "auth.profile_updated", "userId": user, "data": {}}
            # A retry after a lost response is answered with 200.
            good, key = ((201,), name) if choices.random() < 0.3 else ((200, 201), None)
            content = self._until_answered(client, choices, "POST", "/v1/events", self.backend, good, body, key)
            done = self.events[user]
        elif kind < 0.85:
            body = {
                "userId": user, "category": choices.choice(["request", "system"]), "priority": "NORMAL", "title": name,
                "message": "m",
            }
            content = self._until_answered(
                client, choices, "POST", "/v1/notifications", self.backend, (201,), body, name
            )
            done = self.titles[user]
        else:
            self._change(client, choices, user, memory["ids"].pop(user), name, kind < 0.95)
            return
        memory["ids"][user] = json.loads(content)["notification"]["id"]
        with self.lock:
            done.add(name)
            self.changes += 1

    def _change(self, client, choices, user, notification, key, is_seeing):
        bearer = self.bearers[user]
        if is_seeing:
            body = {"upTo": notification, "set": {"seen": True}}
            self._until_answered(client, choices, "PATCH", "/v1/notifications", bearer, (200,), body, key)
        else:
            path = f"/v1/notifications/{notification}"
            # The notification may have been evicted in the meantime.
            self._until_answered(client, choices, "DELETE", path, bearer, (200, 404), key=key)
        with self.lock:
            self.changes += 1

    def _read(self, client, choices, memory):
        user = choices.choice(self.users)
        content = self._until_answered(client, choices, "GET", "/v1/badges", self.bearers[user], (200,))
        counts = json.loads(content)
        before = memory["versions"].get(user, 0)
        if counts["version"] < before:
            raise Failed(f"the counts of {user} went back from version {before} to {counts['version']}")
        memory["versions"][user] = counts["version"]
        self._until_answered(client, choices, "GET", "/v1/notifications?limit=5", self.bearers[user], (200,))
        self.is_over.wait(0.01)


Fact = collections.namedtuple("Fact", "sequence name data")


class Connection:
    """The events of one connection of a stream, and the cursor of its request."""

    def __init__(self, replica, cursor):
        self.replica = replica
        self.cursor = cursor
        # The position at the beginning and after each resync: (number of earlier facts, epoch, sequence, reason).
        self.marks = []
        self.facts = []
        self.closing = None


class Stream:
    """One user's stream, which resumes after its last id, on the same replica or on the one that `choose` returns."""

    def __init__(self, user, bearer, replica, choose=None, cursor=None, returns=True):
        self.user = user
        self.bearer = bearer
        self.replica = replica
        self.choose = choose or (lambda: self.replica)
        self.cursor = cursor
        self.returns = returns
        self.connections = []
        self.breaks = 0
        self.socket = None
        self.head, self.reader = b"", EventReader()
        self.is_open = False
        self.is_ready = False
        self.last_sequence = 0
        self.notices = []

    def connect(self):
        """Blocks only as long as the machine needs to open a connection."""
        self.replica = self.choose()
        self.head, self.reader, self.is_open, self.is_ready = b"", EventReader(), False, False
        request = (
            f"GET /v1/stream HTTP/1.1\r\nHost: replica\r\nAuthorization: Bearer {self.bearer}\r\n"
            + (f"Last-Event-ID: {self.cursor}\r\n" if self.cursor else "")
            + "\r\n"
        )
        connected = socket.create_connection(("127.0.0.1", self.replica.port), timeout=PATIENCE_SECONDS)
        try:
            connected.sendall(request.encode())
            connected.setblocking(False)
        except OSError:
            connected.close()
            raise
        self.socket = connected
        self.connections.append(Connection(self.replica, self.cursor))

    def read(self):
        """Reads events; returns false when the connection has ended."""
        try:
            piece = self.socket.recv(1 << 18)
        except BlockingIOError:
            return True
        except OSError as problem:
            if problem.errno in (errno.ECONNRESET, errno.EPIPE, errno.ETIMEDOUT):
                return False
            raise
        if not piece:
            return False
        if not self.is_open:
            self.head += piece
            if not self._read_head():
                return True
            piece, self.head = self.head, b""
        for event in self.reader.feed(piece):
            self._received(*event)
        return True

    def _read_head(self):
        head, found, rest = self.head.partition(b"\r\n\r\n")
        if not found:
            return False
        lines = head.decode().split("\r\n")
        status = int(lines[0].split(" ")[1])
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        if status != 200:
            self.connections.pop()
            check_refusal(status, headers, rest, f"GET /v1/stream at {self.replica.name}")
        self.is_open = True
        self.head = rest
        return True

    def _received(self, name, data, identifier):
        if name is None:
            return
        connection = self.connections[-1]
        if name == "stream:closing":
            connection.closing = json.loads(data)["reason"]
        if name.startswith("stream:") and name not in ("stream:ready", "stream:resync"):
            self.notices.append((name, json.loads(data)))
        if identifier is None:
            return
        self.cursor = identifier
        epoch, sequence = IDS.read(identifier)
        if name in ("stream:ready", "stream:resync"):
            if name == "stream:resync":
                reason = json.loads(data)["reason"]
            else:
                reason = None
                self.is_ready = True
                self.notices.append((name, json.loads(data)))
            connection.marks.append((len(connection.facts), epoch, sequence, reason))
            self.last_sequence = sequence
        else:
            connection.facts.append(Fact(sequence, name, data))
            self.last_sequence = sequence

    @property
    def has_begun(self):
        return self.is_ready

    def disconnect(self):
        if self.socket is not None:
            self.socket.close()
            self.socket = None

    @property
    def stream_id(self):
        return next(data["streamId"] for name, data in reversed(self.notices) if name == "stream:ready")


class Traveller(Stream):
    """A stream that breaks at random moments and resumes on any replica with its last id, sometimes with an unusable
    id."""

    def __init__(self, user, bearer, replicas, choices, budget, stale):
        super().__init__(user, bearer, replicas[0], self._wander)
        self.replicas = replicas
        self.choices = choices
        self.budget = budget
        self.stale = stale
        self.closes_at = None
        self.closes_after = None

    def _wander(self):
        others = [replica for replica in self.replicas if replica is not self.replica]
        return self.choices.choice(others) if others and self.choices.random() < 0.8 else self.choices.choice(self.replicas)

    def connect(self):
        if self.choices.random() < 0.05 and self.connections:
            self.cursor = self._useless()
        super().connect()
        self.closes_at = self.closes_after = None
        if self.budget.take():
            if self.choices.random() < 0.5:
                # The earliest moment is before the head of the response.
                self.closes_at = time.monotonic() + self.choices.random() ** 2 * 0.1
            else:
                self.closes_after = self.choices.randint(0, 5)
                self.closes_at = time.monotonic() + 0.5

    @property
    def has_begun(self):
        """Ready or not, because the stream may have left before."""
        return bool(self.connections)

    def _useless(self):
        kind = self.choices.randrange(5)
        epoch = (self.cursor or "").rpartition("-")[0] or "none"
        if kind == 0:
            return IDS.text(epoch, self.choices.choice(self.stale)) if self.stale else "-"
        if kind == 1:
            return IDS.text("abcdef", self.choices.randrange(1000))
        if kind == 2:
            later = IDS.text(epoch, 10 ** 12 + self.choices.randrange(1000))
            return self.choices.choice([later, forged(epoch, self.choices)])
        return "".join(self.choices.choice("abc-/%0 9é~") for _ in range(self.choices.randint(1, 30))).strip() or "?"

    def wants_to_leave(self, now):
        if self.closes_at is None:
            return False
        if self.closes_after is not None and self.is_ready and len(self.connections[-1].facts) >= self.closes_after:
            return True
        return now >= self.closes_at


class Budget:
    """The number of reconnections left for all travellers together."""

    def __init__(self, count):
        self.left = count

    def take(self):
        self.left -= 1
        return self.left >= 0


class Listeners:
    """All streams, on one separate thread."""

    def __init__(self, streams, waits=True):
        self.waits = waits
        self.streams = list(streams)
        self.travellers = [stream for stream in self.streams if isinstance(stream, Traveller)]
        self.selector = selectors.DefaultSelector()
        self.problems = []
        self.refusals = 0
        self.is_over = threading.Event()
        self.again = [(0.0, stream) for stream in self.streams]
        self.thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self):
        self.thread.start()
        if self.waits:
            wait_until(
                lambda: all(stream.has_begun for stream in self.streams), "all streams to open", problems=self.problems
            )
        return self

    def __exit__(self, kind, *_):
        self.is_over.set()
        self.thread.join(PATIENCE_SECONDS)
        for stream in self.streams:
            stream.disconnect()
        self.selector.close()
        if kind is None and self.problems:
            raise Failed("; ".join(self.problems[:3]))

    def _follow(self):
        try:
            while not self.is_over.is_set():
                self._connect_due()
                for key, _ in self.selector.select(0.005):
                    self._read(key.data)
                now = time.monotonic()
                for stream in self.travellers:
                    if stream.socket is not None and stream.wants_to_leave(now):
                        self._leave(stream, 0)
        except Exception as problem:
            self.problems.append(str(problem) if isinstance(problem, Failed) else repr(problem))

    def _connect_due(self):
        now = time.monotonic()
        due = [stream for at, stream in self.again if at <= now]
        if not due:
            return
        self.again = [(at, stream) for at, stream in self.again if at > now]
        for stream in due:
            try:
                stream.connect()
                self.selector.register(stream.socket, selectors.EVENT_READ, stream)
            except OSError:
                stream.breaks += 1
                self.again.append((now + 0.05, stream))

    def _read(self, stream):
        try:
            if stream.read():
                return
            stream.breaks += 1
            self._leave(stream, 0.01)
        except Refusal:
            self.refusals += 1
            self._leave(stream, 0.05)

    def _leave(self, stream, pause):
        self.selector.unregister(stream.socket)
        stream.disconnect()
        if stream.returns:
            self.again.append((time.monotonic() + pause, stream))

    @property
    def breaks(self):
        return sum(stream.breaks for stream in self.streams)


class Log:
    """The content of the database, read without row-level security: the events that the streams must have delivered."""

    COLUMNS = """sequence, name, collapse, data, audience, earlier, step,
        (SELECT members FROM event_shared AS common WHERE common.sequence = events.shared)"""
    # The number of the first complete event. It belongs to the oldest row or precedes it in the same record.
    FIRST = "SELECT sequence - coalesce(step, 1) + 1 FROM events ORDER BY sequence LIMIT 1"

    Row = collections.namedtuple("Row", "sequence name collapse data")

    def __init__(self, rows, oldest=None):
        self.rows = {}
        self.first = rows[0][0] - (rows[0][6] or 1) + 1 if rows else 1
        self.last = rows[-1][0] if rows else 0
        self.epoch = None
        events = sorted(
            ((event, row[4]) for row in rows for event in self.events(row) if event.sequence >= self.first),
            key=lambda pair: pair[0].sequence,
        )
        self.count = len(events)
        for expected, (event, _) in enumerate(events, self.first):
            if event.sequence != expected:
                raise Failed(f"the log has no event {expected}: {event.sequence} follows {expected - 1}")
        for event, audience in events:
            for key in audience.split(" "):
                if key.startswith("user:"):
                    self.rows.setdefault(key[5:], []).append(event)

    @classmethod
    def events(cls, row):
        """Returns the events of a record, whose row is that of the last event. The column `earlier` holds the events
        before it, each as its sign, number, collapse key, name, size of data and data. The final sign belongs to the
        last event. `+` stands for the members that the events have in common; they are stored once and precede an
        event's own members."""
        sequence, name, collapse, data, _, earlier, _, members = row
        rest, found = (earlier or ("+" if members is not None else "-")).encode(), []
        while len(rest) > 1:
            sign, rest = rest[:1], rest[1:]
            number, key, title, length, rest = rest.split(b" ", 4)
            own, rest = rest[:int(length)].decode(), rest[int(length):]
            # The key is an unsigned 64-bit number; the column stores it as a signed one.
            signed = (int(key) ^ 1 << 63) - (1 << 63)
            found.append(cls.Row(int(number), title.decode(), signed, cls.joined(sign, members, own)))
        return found + [cls.Row(sequence, name, collapse, cls.joined(rest, members, data))]

    @staticmethod
    def joined(sign, members, data):
        if sign != b"+":
            return data
        return "{" + members + ("" if data == "{}" else ",") + data[1:]

    def of(self, user):
        return self.rows.get(user, [])

    def newest(self, user):
        rows = self.of(user)
        return rows[-1].sequence if rows else 0

    def check_counts(self):
        """Checks that versions of counts rise with the sequence, so that commits are in the order of the log."""
        for user, rows in self.rows.items():
            version = 0
            for row in rows:
                if row.name != "badges:update":
                    continue
                told = json.loads(row.data)["version"]
                if told <= version:
                    raise Failed(f"event {row.sequence} tells {user} of version {told} after {version}")
                version = told


def judge_streams(listeners, log, epoch, must_be_whole=True, earlier=()):
    """Compares every stream with the log, and the streams of one user with each other; returns the number of reported
    gaps.

    `earlier` contains the previous epochs of the log, for example before a failover.
    """
    log.check_counts()
    gaps = sum(judge_stream(stream, log, epoch, must_be_whole, earlier) for stream in listeners.streams)
    if must_be_whole:
        compare_twins(listeners, log)
    return gaps


def compare_twins(listeners, log):
    """Checks that the streams of a user received the same events while both were open, on whichever replicas. States
    are an exception: a replay delivers only the newest of them."""
    twins = {}
    for stream in listeners.streams:
        twins.setdefault(stream.user, []).append(stream)
    for user, streams in twins.items():
        start = max(stream.connections[0].marks[0][2] for stream in streams)
        states = {row.sequence for row in log.of(user) if row.collapse}
        told = [{f.sequence for c in stream.connections for f in c.facts if f.sequence > start} for stream in streams]
        for other in told[1:]:
            if differing := (told[0] ^ other) - states:
                raise Failed(f"the streams of {user} were told differently: {sorted(differing)[:5]}")


def judge_stream(stream, log, epoch, must_be_whole=False, earlier=()):
    """Compares everything that a stream received with the log.

    Counts are states: of those that a replay skips, the newest is enough. All other events must arrive exactly as
    logged.
    """
    gaps = 0
    rows = log.of(stream.user)
    known = {row.sequence: row for row in rows}
    for number, connection in enumerate(stream.connections, 1):
        where = f"{stream.user}, connection {number} at {connection.replica.name}"
        # A connection that began in an earlier epoch had no cursor, or one of that epoch.
        began = connection.marks[0][1] if connection.marks else epoch
        gaps += judge_beginning(connection, rows, log, began if began in earlier else epoch, where)
        for index, (start, mark_epoch, base, _) in enumerate(connection.marks):
            if mark_epoch != epoch and mark_epoch not in earlier:
                raise Failed(f"{where}: the epoch is {mark_epoch}, and not {epoch}")
            end = connection.marks[index + 1][0] if index + 1 < len(connection.marks) else len(connection.facts)
            facts = connection.facts[start:end]
            judge_facts(facts, base, rows, known, where)
        if not connection.marks and connection.facts:
            raise Failed(f"{where} was told {connection.facts[:3]} before its beginning")
        # A connection without marks closed before its beginning, and the next one used the same id.
        if must_be_whole and len(connection.marks) > 1:
            raise Failed(f"{where} was told of a gap: {connection.marks[1:]}")
    if must_be_whole and stream.last_sequence < log.newest(stream.user):
        raise Failed(f"{stream.user} stands at {stream.last_sequence}, and not at {log.newest(stream.user)}")
    return gaps


def judge_beginning(connection, rows, log, epoch, where):
    """Checks that a stream began at its cursor, or with a gap that existed; returns the number of reported gaps."""
    if not connection.marks:
        return 0  # The connection broke before its beginning.
    _, _, base, _ = connection.marks[0]
    told = [reason for _, _, _, reason in connection.marks if reason]
    first = connection.marks[1][3] if len(connection.marks) > 1 and connection.marks[1][0] == 0 else None
    if connection.cursor is None:
        if first in ("gap", "epoch"):
            raise Failed(f"{where}: came without a cursor and was told of a gap: {first}")
        return len(told)
    cursor = CURSOR.fullmatch(connection.cursor)
    is_ours = cursor is not None and cursor[1] == epoch
    sequence = IDS.read(connection.cursor)[1] if is_ours else None
    if not is_ours or sequence > log.last or sequence < log.first - 1:
        if first not in ("gap", "epoch"):
            raise Failed(f"{where}: the cursor {connection.cursor!r} is of no use, and no gap was told")
        if cursor and not is_ours and first != "epoch":
            raise Failed(f"{where}: the cursor {connection.cursor!r} is of another log, and the reason was {first}")
    elif first in ("gap", "epoch"):
        passed = [row for row in rows if sequence < row.sequence <= base]
        size = sum(len(row.data) for row in passed)
        if first == "epoch" or (len(passed) <= REPLAY_EVENTS_MAX and size <= REPLAY_BYTES_MAX):
            raise Failed(f"{where}: was told {first} for {connection.cursor}, with {len(passed)} events since (at {base})")
    elif base != sequence:
        raise Failed(f"{where}: came with {sequence} and began at {base}")
    return len(told)


def judge_facts(facts, base, rows, known, where):
    place = base
    for fact in facts:
        if fact.sequence <= place:
            raise Failed(f"{where}: {fact.name} {fact.sequence} came after {place}")
        place = fact.sequence
        row = known.get(fact.sequence)
        if row is None:
            raise Failed(f"{where}: {fact.name} {fact.sequence} is not in the log of this user: {fact.data[:200]}")
        if (fact.name, fact.data) != (row.name, row.data):
            raise Failed(f"{where}: event {fact.sequence} is {row.name} {row.data}, and was told as {fact.name} {fact.data}")
    seen = {fact.sequence for fact in facts}
    lost = [row for row in rows if base < row.sequence <= place and not row.collapse and row.sequence not in seen]
    if lost:
        raise Failed(f"{where}: between {base} and {place} did not see {len(lost)} events: {lost[:3]}")


def judge_load(load, log, is_all=True):
    """Checks that every acknowledged write was delivered once, and that nothing else was delivered.

    - is_all: the log contains only this load for its users.
    """
    for user in load.users:
        created = [json.loads(row.data) for row in log.of(user) if row.name == "notification:created"]
        told = collections.Counter(one["eventId"] or one["title"] for one in created)
        sent = load.events[user] | load.titles[user]
        doubled = [name for name, count in told.items() if count > 1]
        if doubled:
            raise Failed(f"{user}: made twice: {doubled[:5]}")
        if lost := sent - set(told):
            raise Failed(f"{user}: acknowledged, and not in the log: {sorted(lost)[:5]}")
        if is_all and (strange := set(told) - sent):
            raise Failed(f"{user}: in the log, and never acknowledged: {sorted(strange)[:5]}")
