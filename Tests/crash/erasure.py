#!/usr/bin/env python3
"""Repeatedly kills a real service with SIGKILL while it erases a user, and then proves that

  - the erasure ends after the restart, and the user's earlier token is refused,
  - no file of the database contains the user's id or one of the user's texts,
  - everything of another user with the same amount of data is still there, and all counts are exact (`bellhop check`).

    Tests/crash/erasure.py --binary .build/debug/bellhop [--rounds 5] [--seed 1]

Needs only Python's standard library. The choices follow from the seed, which is printed. The moment of a kill within an
erasure depends on the machine.
"""

import json
import random
import subprocess
import sys
import time

from crash import run_script
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


def files_with(folder, word):
    return [path.name for path in folder.glob("crash.sqlite*") if word.encode() in path.read_bytes()]


def run(options, folder):
    service = Service(options.binary, folder)
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
            if found := files_with(folder, person.name):
                raise Failed(f"{person.name} is still in {found}")
            if kept.counts() != known:
                raise Failed(f"another user had {known} posts and notifications, and now {kept.counts()}")
            print(f"  erased {turn + 1} of {options.rounds}, {kills} kills", flush=True)
        service.stop()
    finally:
        if service.process.poll() is None:
            service.kill()
    if not files_with(folder, kept.text("post-0")):
        raise Failed("the texts of another user are gone")
    database = service.environment["BELLHOP_DATABASE"]
    checked = subprocess.run([options.binary, "check", "--database", database], capture_output=True, text=True)
    if checked.returncode:
        raise Failed(f"bellhop check found: {checked.stdout[:1000]}{checked.stderr[:1000]}")
    return options.rounds


if __name__ == "__main__":
    sys.exit(run_script("erasure", __doc__, run, rounds=5))
