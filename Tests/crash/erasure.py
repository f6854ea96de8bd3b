#!/usr/bin/env python3
"""Repeatedly kills a real service with SIGKILL while it erases a user, and then proves that

  - the erasure ends after the restart, and the user's earlier token is refused,
  - no file of the database contains the user's id or one of the user's texts (on PostgreSQL: no row),
  - everything of another user with the same amount of data is still there, and all counts are exact (`bellhop check`).

    Tests/crash/erasure.py --binary .build/debug/bellhop [--rounds 5] [--seed 1] [--on sqlite|postgres]

Needs only Python's standard library, and PostgreSQL's programs for `--on postgres`. The choices follow from the seed, which is printed. The moment of a kill within an
erasure depends on the machine.
"""

import contextlib
import json
import random
import shutil
import subprocess
import sys
import time

from crash import run_script
from harness import postgres
from harness.services import Service
from harness.tokens import token
from harness.waiting import Failed, wait_until

FRIEND = "friend-of-all"
TEXTS = 40


class Person:
    """A user who has written texts of all kinds."""

    def __init__(self, service, name):
        self.service, self.name = service, name
        self.bearer = token(service.secret, name)
        self.friend = token(service.secret, FRIEND)
        self.backend = token(service.secret, "backend", "service_role")

    def send(self, method, path, body=None, bearer=None):
        status, content = self.service.request(method, path, bearer or self.bearer, body)
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
        return f"text-of-{self.name}-{what}"

    def state(self):
        return self.send("GET", f"/v1/users/{self.name}/erasure", bearer=self.backend)["state"]

    def counts(self):
        posts = self.send("GET", f"/v1/posts?authorId={self.name}&limit=100")["items"]
        mine = self.send("GET", "/v1/notifications?state=all&limit=100")["items"]
        return len(posts), len(mine)


class Files:
    """The files of a database of SQLite."""

    def __init__(self, folder):
        self.folder = folder
        self.address = f"sqlite:{folder / 'crash.sqlite'}"

    def prepare(self, binary):
        """The service creates the file."""

    def places_of(self, word):
        return [path.name for path in self.folder.glob("crash.sqlite*") if word.encode() in path.read_bytes()]


class Rows:
    """The rows of a database of PostgreSQL."""

    PASSWORD = "of-these-roles"

    def __init__(self, cluster):
        self.cluster = cluster
        cluster.sql(f"CREATE ROLE keeper LOGIN CREATEROLE PASSWORD '{self.PASSWORD}'; CREATE DATABASE bellhop OWNER keeper")
        cluster.sql("GRANT ALL ON SCHEMA public TO keeper", "bellhop")
        self.address = postgres.url("bellhop", self.PASSWORD, "bellhop", cluster.port)

    def prepare(self, binary):
        owner = postgres.url("keeper", self.PASSWORD, "bellhop", self.cluster.port)
        subprocess.run([binary, "migrate", "--database", owner], check=True, capture_output=True)
        self.cluster.sql(f"CREATE ROLE bellhop LOGIN PASSWORD '{self.PASSWORD}' IN ROLE bellhop_service")

    def places_of(self, word):
        dump = postgres.run(
            "pg_dump", "-h", self.cluster.folder, "-p", self.cluster.port, "-U", "postgres", "bellhop",
            folder=self.cluster.folder)
        return [line[:200] for line in dump.splitlines() if word in line]


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
        yield Rows(cluster)
    finally:
        cluster.stop()
        shutil.rmtree(place, ignore_errors=True)


def run(options, folder):
    with database(options.on, folder) as stored:
        return erase(options, folder, stored)


def erase(options, folder, stored):
    service = Service(options.binary, folder)
    service.environment["BELLHOP_DATABASE"] = stored.address
    stored.prepare(options.binary)
    # The senders of this script are faster than a person.
    service.environment["BELLHOP_RATE_LIMIT_USER"] = "0"
    service.start()
    choices = random.Random(options.seed)
    kills = 0
    try:
        kept = Person(service, "kept-person")
        kept.live()
        known = kept.counts()
        for turn in range(options.rounds):
            person = Person(service, f"leaving-{turn}-person")
            person.live()
            person.send("DELETE", f"/v1/users/{person.name}", bearer=person.backend)
            for _ in range(choices.randint(1, 3)):
                # The work begins within a second.
                time.sleep(choices.random() * 1.5)
                service.kill()
                service.start()
                kills += 1
            wait_until(lambda: person.state() == "done", "the end of the erasure")
            status, _ = service.request("GET", "/v1/badges", person.bearer)
            if status != 401:
                raise Failed(f"the token of an erased user was answered with {status}")
            if found := stored.places_of(person.name):
                raise Failed(f"{person.name} is still in {found}")
            if kept.counts() != known:
                raise Failed(f"another user had {known} posts and notifications, and now {kept.counts()}")
            print(f"  erased {turn + 1} of {options.rounds}, {kills} kills", flush=True)
        service.stop()
    finally:
        if service.process.poll() is None:
            service.kill()
    if not stored.places_of(kept.text("post-0")):
        raise Failed("the texts of another user are gone")
    checked = subprocess.run([options.binary, "check", "--database", stored.address], capture_output=True, text=True)
    if checked.returncode:
        raise Failed(f"bellhop check found: {checked.stdout[:1000]}{checked.stderr[:1000]}")
    return options.rounds


if __name__ == "__main__":
    sys.exit(run_script("erasure", __doc__, run, rounds=5, on="sqlite"))
