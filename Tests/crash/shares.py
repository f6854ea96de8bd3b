#!/usr/bin/env python3
"""Repeatedly kills a real service with SIGKILL while it hides or shows shares of the badges, because its features have
changed, and then proves that

  - after each kill, and beside the running service, every stored share is exact, hidden or not (`bellhop check`),
  - once a walk has ended, every user sees exactly the shares of the features that are on, by counts of this script's
    own SQL, and the last `badges:update` of a stream equals the GET,
  - versions never fall. Each silent user gets one new version for each change of the features that changes what the user
    sees, however often the service was killed, and none otherwise.

Meanwhile writers send messages, requests and notifications, mark them as seen, and follow streams. They meet features that
are off.

    Tests/crash/shares.py --binary .build/debug/bellhop [--rounds 5] [--seed 1] [--on sqlite|postgres]

Needs only Python's standard library, and PostgreSQL's programs for `--on postgres`. The choices follow from the seed, which
is printed. The moment of a kill within a walk depends on the machine.
"""

import contextlib
import http.client
import json
import random
import sqlite3
import subprocess
import sys
import threading
import time

from crash import run_script
from erasure import database
from harness.events import events_of
from harness.services import Service
from harness.tokens import token
from harness.waiting import PATIENCE_SECONDS, Failed, wait_until

# The shares with their bits, in the order of the API, and the features that maintain them.
SHARES = {"messages": (1, "chat"), "requests": (2, "requests"), "bell": (4, "bell")}
USERS = [f"user-{number}" for number in range(8)]
TENANTS = ("default", "north", "south")
# Users of each tenant who do nothing. A walk over them takes some seconds, so that kills meet it.
SILENT = 4000

COUNTED = """
    SELECT b.tenant, b.user_id, b.messages, b.requests, b.bell, b.version, b.hidden,
        (SELECT count(*) FROM conversation_members p
            JOIN messages m ON m.tenant = p.tenant AND m.conversation_id = p.conversation_id
            WHERE p.tenant = b.tenant AND p.user_id = b.user_id AND m.sequence > p.position
                AND m.sender_id <> p.user_id AND m.is_deleted = 0),
        (SELECT count(*) FROM user_requests r WHERE r.tenant = b.tenant AND r.to_user_id = b.user_id
            AND r.status = 'open' AND r.seen_at IS NULL),
        (SELECT count(*) FROM notifications n WHERE n.tenant = b.tenant AND n.user_id = b.user_id
            AND n.removed_at IS NULL AND n.seen_at IS NULL AND n.category <> 'message' AND n.request_id IS NULL)
    FROM badges b"""


def set_features(service, hidden):
    """Switches the features of hidden shares off, and all others on."""
    shown = [feature for bit, feature in SHARES.values() if not hidden & bit]
    service.environment["BELLHOP_FEATURES"] = ",".join([*shown, "social", "publish"])


def shown_counts(counts, hidden):
    return [0 if hidden & bit else count for count, (bit, _) in zip(counts, SHARES.values())]


def dated(counts):
    """Returns counts without their time if they have none: a user without a row has zeros as of now."""
    return {name: value for name, value in counts.items() if name != "asOf" or counts["version"] > 0}


class Rows:
    """Reads and writes the database beside the service."""

    def __init__(self, stored):
        self.stored = stored

    def run(self, statements):
        if hasattr(self.stored, "cluster"):
            self.stored.cluster.sql("; ".join(statements), "bellhop")
            return
        with contextlib.closing(sqlite3.connect(self.stored.file, timeout=PATIENCE_SECONDS)) as file:
            for statement in statements:
                file.execute(statement)
            file.commit()

    def read(self, statement):
        if hasattr(self.stored, "cluster"):
            lines = self.stored.cluster.sql(statement, "bellhop").splitlines()
            return [[int(value) if value.isdigit() else value for value in line.split("|")] for line in lines]
        with contextlib.closing(sqlite3.connect(f"file:{self.stored.file}?mode=ro", uri=True, timeout=PATIENCE_SECONDS)) as file:
            return file.execute(statement).fetchall()

    def differing(self, hidden):
        [[count]] = self.read(f"SELECT count(*) FROM badges WHERE hidden <> {hidden}")
        return count

    def versions(self):
        return {(tenant, user): version for tenant, user, version in self.read("SELECT tenant, user_id, version FROM badges")}

    def add_silent_users(self):
        """Stores users with open requests and notifications: none, one or two of each, in all combinations."""
        statements = []
        for tenant in TENANTS:
            numbers = f"WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {SILENT - 1})"
            statements += [
                f"""INSERT INTO inboxes (tenant, user_id, kept, evicting, sound, haptics, time_zone)
                    {numbers} SELECT '{tenant}', 'silent-' || i, i / 3 % 3, 0, 1, 1, 'UTC' FROM n""",
                f"""INSERT INTO badges (tenant, user_id, messages, requests, bell, version, updated_at)
                    {numbers} SELECT '{tenant}', 'silent-' || i, 0, i % 3, i / 3 % 3, 1, 0 FROM n""",
            ]
            for more in (0, 1):
                statements += [
                    f"""INSERT INTO user_requests (tenant, id, kind, from_user_id, to_user_id, status, created_at)
                        {numbers} SELECT '{tenant}', 'r{more}-' || i, 'friend', 'asker-{more}', 'silent-' || i, 'open', 0
                        FROM n WHERE i % 3 > {more}""",
                    f"""INSERT INTO notifications (tenant, user_id, id, event_id, type, category, priority, title, message,
                            lock_screen, data, sounds, vibrates, created_at, is_ranked)
                        {numbers} SELECT '{tenant}', 'silent-' || i, 'n{more}-' || i, 'e{more}-' || i, 'VISIT', 'visit', 1,
                            'T', 'M', '', '{{}}', 0, 0, 0, 0
                        FROM n WHERE i / 3 % 3 > {more}""",
                ]
        self.run(statements)


class Play:
    def __init__(self, service, seed):
        self.service = service
        self.backend = token(service.secret, "backend", "service_role")
        self.bearers = {user: token(service.secret, user) for user in USERS}
        self.is_over = threading.Event()
        # Requests begin only while this is set.
        self.gate = threading.Event()
        self.lock = threading.Lock()
        self.busy = 0
        self.answered, self.off = 0, 0
        self.problems = []
        self.chat = None
        self.streams = [Stream(self, user) for user in USERS]
        self.threads = [threading.Thread(target=self.work, args=(f"{seed}-{number}",), daemon=True) for number in range(3)]
        self.threads += [threading.Thread(target=stream.follow, daemon=True) for stream in self.streams]

    def begin(self):
        status, answer = self.service.request(
            "POST", "/v1/conversations", self.bearers[USERS[0]], {"kind": "group", "memberIds": USERS[1:]})
        if status != 201:
            raise Failed(f"a conversation was answered with {status}: {answer[:300]!r}")
        self.chat = json.loads(answer)["id"]
        self.gate.set()
        for thread in self.threads:
            thread.start()

    def end(self):
        self.is_over.set()
        self.gate.set()
        for thread in self.threads:
            if thread.is_alive():
                thread.join(10)

    @contextlib.contextmanager
    def paused(self):
        self.gate.clear()
        try:
            wait_until(lambda: self.busy == 0, "all requests to be answered", self.problems)
            yield
        finally:
            self.gate.set()

    def work(self, seed):
        choices, count = random.Random(seed), 0
        while not self.is_over.is_set():
            self.gate.wait()
            count += 1
            with self.lock:
                self.busy += 1
            try:
                if self.gate.is_set():
                    self.write(choices, f"{seed}-{count}")
            except (OSError, http.client.HTTPException):
                # Killed a moment ago.
                time.sleep(0.02)
            except Failed as problem:
                self.problems.append(str(problem))
                return
            finally:
                with self.lock:
                    self.busy -= 1

    def write(self, choices, mark):
        user, other = choices.sample(USERS, 2)
        bearer = self.bearers[user]
        ways = [
            ("POST", f"/v1/conversations/{self.chat}/messages", bearer, {"text": mark}),
            ("POST", "/v1/requests", bearer, {"kind": "friend", "toUserId": other, "aboutId": mark}),
            ("POST", "/v1/notifications", self.backend, {
                "userId": user, "category": "visit", "priority": "NORMAL", "title": mark, "message": mark}),
            None,
        ]
        way = choices.choice(ways)
        status, answer = self.see(user) if way is None else self.service.request(*way)
        if status == 404 and b"feature.off" in answer:
            self.off += 1
        elif status < 300:
            self.answered += 1
        elif status not in (409, 429, 503):
            raise Failed(f"{way} was answered with {status}: {answer[:300]!r}")

    def see(self, user):
        """Marks the oldest listed notification as seen, and reads the conversation."""
        bearer = self.bearers[user]
        status, answer = self.service.request("GET", "/v1/notifications?state=unseen&limit=1", bearer)
        if status == 200 and (items := json.loads(answer)["items"]):
            self.service.request("PATCH", f"/v1/notifications/{items[0]['id']}", bearer, {"seen": True})
        status, answer = self.service.request("GET", f"/v1/conversations/{self.chat}", bearer)
        if status != 200 or not (last := json.loads(answer)["lastSequence"]):
            return status, answer
        return self.service.request("PUT", f"/v1/conversations/{self.chat}/read-position", bearer, {"sequence": last})


class Stream:
    """A stream of a user, which resumes after its last id, and the counts that it has told."""

    def __init__(self, play, user):
        self.play, self.user = play, user
        self.last_id, self.counts, self.connections, self.is_open = None, None, 0, False

    def follow(self):
        while not self.play.is_over.is_set():
            try:
                self.connect()
            except (OSError, http.client.HTTPException):
                time.sleep(0.02)
            except Failed as problem:
                self.play.problems.append(f"{self.user}: {problem}")
                return
            self.is_open = False

    def connect(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.play.service.port, timeout=PATIENCE_SECONDS)
        try:
            headers = {"Authorization": f"Bearer {self.play.bearers[self.user]}", "Accept": "text/event-stream"}
            if self.last_id:
                headers["Last-Event-ID"] = self.last_id
            connection.request("GET", "/v1/stream", headers=headers)
            kept = connection.sock
            answer = connection.getresponse()
            if answer.status != 200:
                time.sleep(0.05)
                return
            self.connections += 1
            # A silent stream reconnects from time to time, so that the thread notices the end of the play.
            kept.settimeout(5)
            for event in events_of(answer):
                self.last_id = event.id or self.last_id
                data = json.loads(event.data) if event.data else {}
                self.is_open = True
                if event.name == "stream:ready":
                    self.note(data["badges"])
                if event.name == "badges:update":
                    self.note(data)
                if self.play.is_over.is_set():
                    return
        except TimeoutError:
            return
        finally:
            connection.close()

    def note(self, counts):
        """Notes counts. A replayed event is older than the counts of `stream:ready`, which a client then keeps."""
        counts, before = dated(counts), self.counts
        if before is None or counts["version"] > before["version"]:
            self.counts = counts
        elif counts["version"] == before["version"] and counts != before:
            raise Failed(f"two counts have one version: {before} and {counts}")


class Trial:
    def __init__(self, options, folder, stored):
        self.options, self.rows = options, Rows(stored)
        self.choices = random.Random(options.seed)
        self.service = Service(options.binary, folder)
        self.service.environment |= {"BELLHOP_DATABASE": stored.address, "BELLHOP_RATE_LIMIT_USER": "0"}
        self.play = Play(self.service, options.seed)
        self.hidden, self.walks, self.met, self.known = 0, 0, 0, {}

    def run(self):
        set_features(self.service, 0)
        self.service.start()
        try:
            self.service.stop()
            self.rows.add_silent_users()
            self.service.start()
            self.play.begin()
            for turn in range(self.options.rounds):
                self.turn()
                print(f"  {turn + 1} of {self.options.rounds}: {self.walks} walks ended, {self.met} were met by a kill, "
                      f"{self.play.answered} writes answered, {self.play.off} met a feature that was off", flush=True)
        finally:
            self.play.end()
            if self.service.process.poll() is None:
                self.service.kill()
        if not self.met:
            raise Failed("no kill met a walk: use more rounds")

    def turn(self):
        """Changes the features, kills the service during the walk, and waits for its end."""
        wait_until(lambda: self.rows.differing(self.hidden) == 0, "the walk to end", self.play.problems)
        before, first = self.rows.versions(), self.hidden
        steps = [self.choices.choice([bits for bits in range(8) if bits != self.hidden])]
        if self.choices.random() < 0.3:
            # The features change again before the walk has ended.
            steps.append(self.choices.choice([bits for bits in range(8) if bits != steps[-1]]))
        for hidden in steps:
            self.service.kill()
            self.expect_exact()
            set_features(self.service, hidden)
            self.service.start()
            self.hidden = hidden
            for _ in range(self.choices.randint(1, 2)):
                time.sleep(self.choices.random() * 2)
                self.service.kill()
                left = self.rows.differing(hidden)
                self.met += 0 < left < SILENT * len(TENANTS)
                self.expect_exact()
                self.service.start()
        wait_until(lambda: self.rows.differing(self.hidden) == 0, "the walk to end", self.play.problems)
        self.walks += 1
        with self.play.paused():
            self.expect_end(before, first, steps)

    def expect_exact(self):
        checked = subprocess.run(
            [self.options.binary, "check"], env=self.service.environment, capture_output=True, text=True)
        if checked.returncode:
            raise Failed(f"bellhop check found: {checked.stdout[:1000]}{checked.stderr[:1000]}")
        versions = self.rows.versions()
        fallen = [key for key, version in self.known.items() if versions.get(key, 0) < version]
        if fallen:
            raise Failed(f"versions fell: {[(key, self.known[key], versions.get(key)) for key in fallen[:5]]}")
        self.known = versions

    def expect_end(self, before, first, steps):
        """Checks all users after a walk, while nobody writes."""
        self.expect_exact()
        stored = {}
        for tenant, user, *numbers in self.rows.read(COUNTED):
            counts, version, hidden, counted = numbers[:3], numbers[3], numbers[4], numbers[5:]
            if list(counts) != list(counted) or hidden != self.hidden:
                raise Failed(f"{tenant}/{user} has {counts}, hides {hidden}, and must have {counted}, hiding {self.hidden}")
            stored[tenant, user] = (counts, version)
            if user.startswith("silent-"):
                self.expect_versions(f"{tenant}/{user}", counts, version - before[tenant, user], first, steps)
        for stream in self.play.streams:
            counts, version = stored.get(("default", stream.user), ((0, 0, 0), 0))
            self.expect_seen(stream, shown_counts(counts, self.hidden), version)

    def expect_versions(self, user, counts, added, first, steps):
        seen = [shown_counts(counts, hidden) for hidden in [first, *steps]]
        changes = sum(one != next_one for one, next_one in zip(seen, seen[1:]))
        # If the features change before the walk reaches a user, it sees only the last ones.
        least = changes if len(steps) == 1 else int(seen[0] != seen[-1])
        if not least <= added <= changes:
            raise Failed(f"{user} with {counts} has {added} new versions after {[first, *steps]}, and must have {least} to {changes}")

    def expect_seen(self, stream, counts, version):
        status, answer = self.service.request("GET", "/v1/badges?include=conversations", self.play.bearers[stream.user])
        got = dated(json.loads(answer))
        parts = sum(part["unread"] for part in got.pop("conversations", []))
        if status != 200 or [got[name] for name in SHARES] != counts or got["version"] != version or parts != counts[0]:
            raise Failed(f"{stream.user} sees {got} with {parts} unread, and must see {counts} with version {version}")
        wait_until(
            lambda: stream.is_open and stream.counts == got,
            lambda: f"{stream.user} to hear {got}, instead of {stream.counts}", self.play.problems)


def run(options, folder):
    with database(options.on, folder) as stored:
        stored.prepare(options.binary)
        Trial(options, folder, stored).run()
    return options.rounds


if __name__ == "__main__":
    sys.exit(run_script("shares", __doc__, run, rounds=5, on="sqlite"))
