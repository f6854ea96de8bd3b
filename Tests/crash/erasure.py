"""Repeatedly kills a real service with SIGKILL while it erases users who are named again and again, and then proves that

  - every erasure ends after the restarts, and tokens from before the last request to erase are refused,
  - from the moment of `doneAt` nothing of the users is left: no byte of an id or a text in any column of any table
    (by the catalog of the database), in any file of SQLite, in the log of the service, in a backup. What was answered
    after `doneAt` is a new beginning, and is not counted; what was answered before must be gone,
  - everything of another user with the same amount of data is still there, and all counts are exact (`bellhop check`),
  - on PostgreSQL, a second replica that was suspended or cut off from the database meanwhile, for up to a minute, accepts
    no token from before once it is back. It tells each of its streams that the stream missed something, and neither
    delivers nor stores anything of the users.

Meanwhile writers go on, on both replicas: backends notify the users, name them to others, in events, in keys that callers
choose, in rows of tables, and export them. The users sign in again and write. Some are erased a second time in the middle.

    Tests/crash/erasure.py --binary .build/debug/bellhop [--rounds 5] [--seed 1] [--on sqlite|postgres]

Needs only Python's standard library, and PostgreSQL's programs for `--on postgres`. The choices follow from the seed, which
is printed. The moment of a kill within an erasure depends on the machine.
"""

import base64
import contextlib
import datetime
import http.client
import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
import time

import behind
from crash import run_script
from event_ids import IDS, SECRET_POSTGRES
from harness import postgres
from harness.partition import Partition
from harness.services import Service, request
from harness.tokens import token
from harness.waiting import Failed, wait_until
from witnesses import Listeners, Stream

FRIEND = "friend-of-all"
TEXTS = 20
# Erased at the same time.
PERSONS = 3
# A replica is suspended or cut off for at most this long.
AWAY_SECONDS = 60


class Person:
    """A user who has written texts of all kinds."""

    def __init__(self, service, name, mark):
        self.service, self.name, self.mark = service, name, mark
        self.bearer = token(service.secret, name)
        self.friend = token(service.secret, FRIEND)
        self.backend = token(service.secret, "backend", "service_role")

    def send(self, method, path, body=None, bearer=None):
        answer = []

        def is_answered():
            # A replica that is away may hold a lock, until the database ends its session.
            answer[:] = self.service.request(method, path, bearer or self.bearer, body)
            return answer[0] != 503

        wait_until(is_answered, lambda: f"{method} {path}: {answer}")
        status, content = answer
        if status >= 300:
            raise Failed(f"{method} {path} answered {status}: {content[:300]!r}")
        return json.loads(content) if content else {}

    def live(self):
        self.send("PUT", f"/v1/users/{FRIEND}/followers/me")
        self.send("PUT", f"/v1/users/{self.name}/followers/me", bearer=self.friend)
        self.send("POST", "/v1/requests", {"kind": "friend", "toUserId": FRIEND, "fromName": self.text("name")})
        chat = self.send("POST", "/v1/conversations", {"memberIds": [FRIEND]})["id"]
        for number in range(TEXTS):
            self.send("POST", f"/v1/conversations/{chat}/messages", {"text": self.text(f"message-{number}")})
            self.send("POST", "/v1/posts", {"text": self.text(f"post-{number}"), "visibility": "public"})
            self.notify(self.name, {"number": number})
            self.notify(FRIEND, {"friendId": self.name})

    def notify(self, user, data):
        self.send("POST", "/v1/notifications", {
            "userId": user, "category": "visit", "priority": "NORMAL", "title": self.text("title"), "message": "x",
            "data": data}, bearer=self.backend)

    def text(self, what):
        return f"{self.mark}-{what}"

    def erase(self):
        # One backend sends what all writers send, and may meet the limit of its tenant.
        self.send("DELETE", f"/v1/users/{self.name}", bearer=self.backend)

    def erasure(self):
        return self.send("GET", f"/v1/users/{self.name}/erasure", bearer=self.backend)

    def counts(self):
        posts = self.send("GET", f"/v1/posts?authorId={self.name}&limit=100")["items"]
        mine = self.send("GET", "/v1/notifications?state=all&limit=100")["items"]
        return len(posts), len(mine)


class Writer:
    """Names a person again and again at one replica, in each way in turn, with a text of its own each time."""

    def __init__(self, person, service, number):
        self.person, self.service = person, service
        self.choices = random.Random(f"{person.name} {number}")
        self.first = number * 1_000_000
        # (text, when it was answered, whether it may be stored)
        self.answered = []
        self.refused = 0
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.write, daemon=True)
        self.thread.start()

    def ways(self, text, count):
        name = self.person.name
        note = {"category": "visit", "priority": "NORMAL", "title": text, "message": text}
        backend, friend = self.person.backend, self.person.friend
        # Tokens of the next half minute are refused too, so this issuer's clock is as far ahead as it may be.
        own = token(self.person.service.secret, name, iat=int(time.time()) + 29)
        return [
            ("POST", "/v1/notifications", backend, {"userId": name, **note}),
            ("POST", "/v1/notifications", backend, {"userId": FRIEND, **note, "data": {"friendId": name, "text": text}}),
            ("POST", "/v1/notifications", backend, {"userId": FRIEND, "id": f"follow:{name}:{count}", **note}),
            ("POST", "/v1/publish", backend, {"event": "tidings", "to": [f"user:{name}", f"user:{FRIEND}"], "data": {"text": text}}),
            ("POST", "/v1/publish", backend, {"event": "tidings", "to": [f"user:{FRIEND}"], "data": {"who": name, "text": text}}),
            ("POST", "/v1/conversations", friend, {"memberIds": [name], "kind": "group", "title": "some"}),
            ("POST", "/v1/requests", friend, {"kind": "friend", "toUserId": name, "fromName": text}),
            ("POST", "/v1/posts", own, {"text": text, "visibility": "public"}),
            ("PUT", "/v1/preferences", own, {"sound": False, "haptics": True, "timeZone": "UTC"}),
            ("POST", "/v1/stream-tickets", own, {"topics": []}),
            ("GET", f"/v1/users/{name}/export", backend, None),
            ("POST", "/v1/revocations", backend, {"userId": name, "issuedBefore": "2026-01-01T00:00:00Z"}),
            ("POST", "/v1/changes", backend, {
                "type": "INSERT", "schema": "public", "table": "parent_students", "old_record": None,
                "record": {"parent_id": name, "student_id": text, "school_id": "default", "id": count}}),
        ]

    def write(self):
        count = self.first
        while not self.is_over.is_set():
            count += 1
            text = self.person.text(f"{count:08d}")
            method, path, bearer, body = self.choices.choice(self.ways(text, count))
            headers = {"Authorization": f"Bearer {bearer}", "X-Request-Id": f"{self.person.name}.{count}"}
            if body is not None:
                headers |= {"Content-Type": "application/json", "Idempotency-Key": f"{self.person.name}/{text}"}
            try:
                status, _, answer = request(
                    self.service.port, method, path, None if body is None else json.dumps(body), headers)
            except (OSError, http.client.HTTPException):
                status, answer = None, b""
            # Without an answer, a kill came in between: the write may have been made.
            self.answered.append((text, time.time(), status is None or status < 300))
            self.refused += b"erasure.closing" in answer
            self.is_over.wait(0.1 + self.choices.random() * 0.2)

    def end(self):
        self.is_over.set()
        self.thread.join()


class Files:
    """A database of SQLite: its tables, its files, and a backup."""

    def __init__(self, folder):
        self.folder = folder
        self.file = folder / "crash.sqlite"
        self.address = f"sqlite:{self.file}"

    def prepare(self, binary):
        """The service creates the file."""

    def second(self, options, folder, service):
        """One process serves a file."""
        return None

    def contents(self, binary):
        """Yields the name and the bytes of every place."""
        with contextlib.closing(sqlite3.connect(f"file:{self.file}?mode=ro", uri=True)) as database:
            database.text_factory = bytes
            tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            for (table,) in tables:
                rows = database.execute(f'SELECT * FROM "{table.decode()}"').fetchall()
                yield f"table {table.decode()}", b"\n".join(
                    b" ".join(value if isinstance(value, bytes) else str(value).encode() for value in row) for row in rows)
        copy = self.folder / "copy.sqlite"
        copy.unlink(missing_ok=True)
        subprocess.run([binary, "backup", copy, "--database", self.address], check=True, capture_output=True)
        for path in self.folder.iterdir():
            if path.is_file():
                yield f"file {path.name}", path.read_bytes()
        copy.unlink()


class Rows:
    """A database of PostgreSQL: its tables, and a dump."""

    PASSWORD = "of-these-roles"

    def __init__(self, cluster, folder):
        self.cluster, self.folder = cluster, folder
        cluster.sql(f"CREATE ROLE keeper LOGIN CREATEROLE PASSWORD '{self.PASSWORD}'; CREATE DATABASE bellhop OWNER keeper")
        cluster.sql("GRANT ALL ON SCHEMA public TO keeper", "bellhop")
        self.address = self.address_at(cluster.port)

    def address_at(self, port):
        return postgres.url("bellhop", self.PASSWORD, "bellhop", port)

    def prepare(self, binary):
        owner = postgres.url("keeper", self.PASSWORD, "bellhop", self.cluster.port)
        subprocess.run([binary, "migrate", "--database", owner], check=True, capture_output=True)
        self.cluster.sql(f"CREATE ROLE bellhop LOGIN PASSWORD '{self.PASSWORD}' IN ROLE bellhop_service")

    def second(self, options, folder, service):
        return Second(options, folder, service, self)

    def contents(self, binary):
        for table in self.cluster.sql(
            "SELECT oid::regclass FROM pg_class WHERE relkind IN ('r', 'm') AND relnamespace NOT IN "
            "('pg_catalog'::regnamespace, 'information_schema'::regnamespace, 'pg_toast'::regnamespace)", "bellhop"
        ).split():
            text = self.cluster.sql(f"COPY (SELECT * FROM {table}) TO STDOUT", "bellhop")
            blobs = b"\n".join(bytes.fromhex(blob) for blob in re.findall(r"\\\\x((?:[0-9a-f]{2})+)", text))
            yield f"table {table}", text.encode() + b"\n" + blobs
        dump = postgres.run(
            "pg_dump", "-h", self.cluster.folder, "-p", self.cluster.port, "-U", "postgres", "bellhop",
            folder=self.cluster.folder)
        yield "a dump", dump.encode()
        for path in self.folder.glob("*.log"):
            yield f"the log {path.name}", path.read_bytes()


class Second:
    """A second replica on PostgreSQL, which is away while users are erased on the first one, and the streams on it."""

    WAYS = ("suspended", "cut off")

    def __init__(self, options, folder, service, stored):
        self.first, self.stored = service, stored
        self.network = Partition(stored.cluster.port)
        self.replica = Service(options.binary, folder)
        self.replica.name = "the second replica"
        self.replica.secret = service.secret
        self.replica.log_path = folder / "second.log"
        self.replica.environment |= settings_of(stored) | {
            "BELLHOP_JWT_SECRET": service.secret, "BELLHOP_DATABASE": stored.address_at(self.network.port)}
        self.slowest = 0.0
        # The events that the replica has delivered since its return.
        self.delivered = []

    def start(self):
        self.replica.start()
        IDS.learn(self.stored.cluster.sql(SECRET_POSTGRES, "bellhop"))

    def stop(self):
        self.replica.stop()
        self.network.close()

    def kill(self):
        if self.replica.process and self.replica.process.poll() is None:
            self.replica.kill()

    @contextlib.contextmanager
    def listening(self, persons):
        """Follows streams on the replica: those of the persons, and those of users who must be told."""
        self.own = [Stream(person.name, person.bearer, self.replica, returns=False) for person in persons]
        self.others = [
            Stream(user, token(self.first.secret, user), self.replica) for user in (FRIEND, FRIEND, "kept-person")]
        with Listeners(self.own + self.others) as self.listeners:
            yield

    @contextlib.contextmanager
    def away(self, way, persons):
        """Suspends the replica, or cuts it off. Its streams miss an event about each person."""
        with behind.standing_still(self.replica) if way == "suspended" else self.network.cut():
            for person in persons:
                for stream in self.others:
                    person.send("POST", "/v1/publish", {
                        "event": "tidings", "to": [f"user:{stream.user}"],
                        "data": {"who": person.name, "text": person.text("missed")}}, bearer=person.backend)
            yield
            resyncs = {stream: behind.resyncs_of(stream) for stream in self.others}
            counts = {stream: len(behind.facts_of(stream)) for stream in self.others}
        self.missed = (resyncs, counts)

    def expect_knowledge(self, bearers):
        """Requires that the replica, now that it is back, refuses the tokens and tells its streams."""
        problems = self.listeners.problems
        resyncs, counts = self.missed
        self.slowest = max(self.slowest, behind.wait_until_refused(self.replica, bearers, problems))
        behind.wait_until_told(resyncs, problems)
        wait_until(
            lambda: all(stream.socket is None for stream in self.own), "the streams of the erased users to end", problems)
        self.delivered = [
            (f"a stream of {stream.user}", "\n".join(f"{fact.name} {fact.data}" for fact in behind.facts_of(stream)[count:]).encode())
            for stream, count in counts.items()]


@contextlib.contextmanager
def database(kind, folder):
    if kind == "sqlite":
        yield Files(folder)
        return
    place = postgres.make_folder("erasure-")
    cluster = postgres.Cluster(place)
    try:
        cluster.create()
        cluster.start()
        yield Rows(cluster, folder)
    finally:
        cluster.stop()
        shutil.rmtree(place, ignore_errors=True)


def run(options, folder):
    with database(options.on, folder) as stored:
        return erase(options, folder, stored)


def settings_of(stored):
    return {
        "BELLHOP_DATABASE": stored.address,
        # The senders of this script are faster than a person.
        "BELLHOP_RATE_LIMIT_USER": "0",
        "BELLHOP_AUDIT_READS": "true",
        "BELLHOP_TABLES": "school",
        # No server answers, so webhooks wait in the outbox.
        "BELLHOP_WEBHOOK_URL": "http://127.0.0.1:1/",
        "BELLHOP_WEBHOOK_PRIVATE": "true",
        "BELLHOP_WEBHOOK_SECRETS": "whsec_" + base64.b64encode(b"9" * 32).decode(),
    }


def erase(options, folder, stored):
    service = Service(options.binary, folder)
    service.environment |= settings_of(stored)
    stored.prepare(options.binary)
    service.start()
    second = stored.second(options, folder, service)
    choices = random.Random(options.seed)
    totals = dict(kills=0, again=0, written=0, refused=0, strict=0)
    try:
        if second:
            second.start()
        kept = Person(service, "kept-person", "kept-mark")
        kept.live()
        known = kept.counts()
        for turn in range(options.rounds):
            erase_some(options, turn, service, second, stored, choices, totals)
            if kept.counts() != known:
                raise Failed(f"another user had {known} posts and notifications, and now {kept.counts()}")
            print(f"  erased {(turn + 1) * PERSONS} users, {totals}{line_of(second)}", flush=True)
        service.stop()
        if second:
            second.stop()
    finally:
        if service.process.poll() is None:
            service.kill()
        if second:
            second.kill()
    expect_rest(options, kept, stored, totals)
    return options.rounds * PERSONS


def line_of(second):
    return f", tokens refused within {second.slowest * 1000:.0f} ms" if second else ""


def expect_rest(options, kept, stored, totals):
    """Requires that everything else is still there."""
    if not any(kept.text("post-0").encode() in content for _, content in stored.contents(options.binary)):
        raise Failed("the texts of another user are gone")
    checked = subprocess.run([options.binary, "check", "--database", stored.address], capture_output=True, text=True)
    if checked.returncode:
        raise Failed(f"bellhop check found: {checked.stdout[:1000]}{checked.stderr[:1000]}")
    if not totals["refused"]:
        raise Failed("no writer met an erasure that was about to end")


def erase_some(options, turn, service, second, stored, choices, totals):
    """Erases some users while others name them, with kills in between. A second replica is away meanwhile."""
    persons = [
        Person(service, f"u{os.urandom(6).hex()}-leaver", f"t{os.urandom(6).hex()}") for _ in range(PERSONS)
    ]
    writers = {}
    for person in persons:
        person.live()
        writers[person] = [Writer(person, service, 0), Writer(person, second.replica if second else service, 1)]
    ends = Ends(writers, service)
    with second.listening(persons) if second else contextlib.nullcontext():
        try:
            if second:
                way = second.WAYS[(turn + options.seed) % len(second.WAYS)]
                with second.away(way, persons):
                    bearers = erase_with_kills(service, persons, ends, choices, totals)
                    if ends.are_found(AWAY_SECONDS):
                        # Writes that the replica received while it was away are performed only after its return, as a new beginning.
                        totals["strict"] += expect_nothing(ends, stored.contents(options.binary))
                ends.wait(stored, options)
                second.expect_knowledge(bearers)
            else:
                bearers = erase_with_kills(service, persons, ends, choices, totals)
                ends.wait(stored, options)
        finally:
            ends.stop()
        for bearer in bearers:
            expect_refused(service, bearer)
        strict = expect_nothing(ends, [*stored.contents(options.binary), *(second.delivered if second else [])])
    totals["strict"] += 0 if second else strict
    for writer in [writer for some in writers.values() for writer in some]:
        totals["written"] += sum(is_accepted and at < ends.found[writer.person] for _, at, is_accepted in writer.answered)
        totals["refused"] += writer.refused


def erase_with_kills(service, persons, ends, choices, totals):
    """Requests the erasures, some of them twice, and kills the service in between. Returns the tokens of before."""
    bearers = [person.bearer for person in persons]
    again = set(choices.sample(persons, choices.randint(0, PERSONS - 1)))
    for person in persons:
        person.erase()
        if person not in again:
            ends.follow(person)
    for _ in range(choices.randint(1, 3)):
        # The work begins within a second.
        time.sleep(choices.random() * 1.5)
        service.kill()
        service.start()
        totals["kills"] += 1
    for person in again:
        bearers.append(token(service.secret, person.name))
        person.erase()
        totals["again"] += 1
        expect_refused(service, bearers[-1])
        ends.follow(person)
    return bearers


def erasures(stored, options):
    """Returns the rows of the erasures, for the report of a failure."""
    return dict(stored.contents(options.binary))["table erasures"].decode()


class Ends:
    """Stops the writers of a person once the erasure is done, and knows when that was."""

    def __init__(self, writers, service):
        self.writers, self.service, self.found, self.is_over = writers, service, {}, threading.Event()
        self.threads = []

    def follow(self, person):
        self.threads.append(threading.Thread(target=self.look, args=(person,), daemon=True))
        self.threads[-1].start()

    def look(self, person):
        while not self.is_over.wait(0.02):
            try:
                erasure = person.erasure()
            except (OSError, http.client.HTTPException, Failed):
                # Killed a moment ago.
                continue
            if erasure["state"] == "done":
                for writer in self.writers[person]:
                    writer.is_over.set()
                for writer in self.writers[person]:
                    # A replica that is away answers later.
                    if writer.service is self.service:
                        writer.end()
                self.found[person] = datetime.datetime.fromisoformat(erasure["doneAt"].replace("Z", "+00:00")).timestamp()
                return

    def are_found(self, seconds):
        """Waits until all erasures are done, but not longer than this. Returns whether they are."""
        end = time.monotonic() + seconds
        return wait_until(lambda: len(self.found) == len(self.writers) or time.monotonic() > end, "time to pass") and (
            len(self.found) == len(self.writers))

    def wait(self, stored, options):
        wait_until(
            lambda: len(self.found) == len(self.writers), lambda: f"the ends of these erasures: {erasures(stored, options)}")

    def stop(self):
        self.is_over.set()
        for thread in self.threads:
            thread.join()
        for writer in [writer for some in self.writers.values() for writer in some]:
            writer.end()


def expect_refused(service, bearer):
    status, _ = service.request("GET", "/v1/badges", bearer)
    if status != 401:
        raise Failed(f"a token of an erased user was answered with {status}")


def expect_nothing(ends, contents):
    """Requires that nothing is left of the persons that was answered before their ends. Returns the number of persons
    that were not named later, so that no byte of their ids is allowed."""
    contents, strict = list(contents), 0
    for person, end in ends.found.items():
        answered = [item for writer in ends.writers[person] for item in list(writer.answered)]
        later = {text for text, at, is_accepted in answered if at >= end and is_accepted}
        for place, content in contents:
            expect_nothing_of(person, later, place, content)
        strict += not later
    return strict


def expect_nothing_of(person, later, place, content):
    texts = {text.decode() for text in re.findall(re.escape(person.mark).encode() + rb"-(?:[a-z]+(?:-[0-9]+)?|[0-9]{8})", content)}
    if left := texts - later:
        found = content.find(min(left).encode())
        raise Failed(
            f"{place} still has {len(left)} texts of {person.name}: {content[max(0, found - 300):found + 200]!r}")
    if not later and (found := content.find(person.name.encode())) >= 0:
        raise Failed(f"{place} still names {person.name}: {content[max(0, found - 120):found + 80]!r}")


if __name__ == "__main__":
    sys.exit(run_script("erasure", __doc__, run, rounds=5, on="sqlite"))
