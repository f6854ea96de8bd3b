#!/usr/bin/env python3
"""Repeatedly kills a real service with SIGKILL right after its response to a delivery of table changes, and then proves
that

  - every acknowledged change is known (delivered again, it is a duplicate),
  - a stream, resuming with its last id, received every acknowledged row in order, and no row that was never sent; it
    received a row twice only if it asked for missed rows again, because it broke before its new id arrived,
  - the stored memberships match the last rows.

    Tests/crash/deliveries.py --binary .build/debug/bellhop [--rounds 5] [--seed 1]

Needs only Python's standard library. The choices follow from the seed, which is printed. The moment of a kill within a
commit depends on the machine.
"""

import http.client
import json
import random
import sys
import threading
import time

from crash import run_script
from harness.events import events_of
from harness.services import Service, request
from harness.tokens import token
from harness.waiting import PATIENCE_SECONDS, Failed, wait_until

SECRET = "the secret of the feed under test"
SCHOOL = "default"
PUPIL = "pia"

# Rows between two kills. Together with the rows of the previous round they stay below the 1,000 that a resuming stream
# receives. Beyond that a stream correctly reports a gap.
ROUND_ROWS_MAX = 400


class Watcher:
    """The stream of one pupil, subscribed to rows, which resumes after its last id until the end."""

    def __init__(self, service):
        self.service = service
        self.bearer = token(service.secret, PUPIL, "student")
        self.last_id = None
        self.told = []
        self.known = set()
        self.is_over = False
        self.is_subscribed = threading.Event()
        self.problem = None
        self.thread = threading.Thread(target=self._follow, daemon=True)
        self.thread.start()

    def wait(self, count):
        """Waits until the stream has received this number of rows."""
        wait_until(lambda: self.problem or len(self.told) >= count, f"{count} rows")
        if self.problem:
            raise Failed(self.problem)

    def _follow(self):
        while not self.is_over:
            try:
                self._connect()
            except (OSError, http.client.HTTPException):
                time.sleep(0.02)
            except Failed as problem:
                self.problem = str(problem)
                return

    def _connect(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.service.port, timeout=PATIENCE_SECONDS)
        try:
            before = self.last_id
            connection.request("GET", "/v1/stream", headers={"Authorization": f"Bearer {self.bearer}"})
            kept = connection.sock
            answer = connection.getresponse()
            if answer.status != 200:
                time.sleep(0.05)
                return
            # A silent stream reconnects from time to time, so that the thread notices the end.
            kept.settimeout(2)
            self._read(answer, before)
        finally:
            connection.close()

    def _read(self, answer, before):
        try:
            for event in events_of(answer):
                if event.data:
                    self._received(event.name, json.loads(event.data), before, event.id)
                else:
                    self.last_id = event.id or self.last_id
                if self.is_over:
                    return
        except TimeoutError:
            return

    def _received(self, name, data, before, identifier):
        if name == "stream:resync":
            raise Failed(f"the stream was told of a gap: {data}")
        if name == "table:change":
            row = data["record"]["id"]
            if row in self.known and identifier:
                raise Failed(f"{row} was told twice")
            if row not in self.known:
                self.known.add(row)
                self.told.append(row)
            # Missed rows arrive without ids; a block with only the new id follows them.
            self.last_id = identifier or self.last_id
        if name == "stream:ready":
            self.last_id = self.last_id or identifier
            wish = {"tables": [{"id": "mine", "table": "student_stickers", "select": ["id"]}]}
            if before:
                wish["lastEventId"] = before
            path = f"/v1/streams/{data['streamId']}/subscriptions"
            status, body = self.service.request("PUT", path, self.bearer, wish)
            if status == 200:
                self.is_subscribed.set()
            elif status < 500:
                raise Failed(f"PUT {path} answered {status}: {body[:300]!r}")


def sticker(name):
    return {
        "specversion": "1.0", "id": name, "source": "/crash", "type": "row",
        "data": {"type": "INSERT", "schema": "public", "table": "student_stickers", "old_record": None,
                 "record": {"id": name, "school_id": SCHOOL, "student_id": PUPIL}},
    }


def place(room):
    return {"type": "INSERT", "schema": "public", "table": "students", "old_record": None,
            "record": {"id": PUPIL, "school_id": SCHOOL, "class_id": room}}


def deliver(service, items):
    """Returns the counts in the response; None without a response."""
    headers = {"Content-Type": "application/json", "X-Webhook-Secret": SECRET}
    try:
        status, _, body = request(service.port, "POST", "/v1/changes", json.dumps(items), headers)
    except (OSError, http.client.HTTPException):
        return None
    if status != 202:
        raise Failed(f"POST /v1/changes answered {status}: {body[:500]!r}")
    result = json.loads(body)
    if result["rejected"]:
        raise Failed(f"rows were rejected: {result['rejected'][:3]}")
    return result["accepted"], result["duplicates"]


def pupil_scope(service):
    status, body = service.request("GET", "/v1/me", token_of_pupil(service))
    if status != 200:
        raise Failed(f"GET /v1/me answered {status}: {body[:300]!r}")
    return set(json.loads(body)["scope"])


def token_of_pupil(service):
    return token(service.secret, PUPIL, "student")


def run(options, folder):
    service = Service(options.binary, folder)
    service.environment["BELLHOP_TABLES"] = "school"
    service.environment["BELLHOP_CHANGES_SECRET"] = SECRET
    # The pupil's token has no student claim; its subject is the student.
    service.environment["BELLHOP_CLAIM_STUDENT"] = "sub"
    service.start()
    choices = random.Random(options.seed)
    acknowledged, sent, number = [], set(), 0
    try:
        deliver(service, [place("room-0")])
        watcher = Watcher(service)
        if not watcher.is_subscribed.wait(PATIENCE_SECONDS):
            raise Failed(f"the stream was not subscribed: {watcher.problem}")
        for turn in range(options.rounds):
            delivered = 0
            for _ in range(choices.randint(1, 8)):
                count = min(choices.choice([1, 3, 50, 200]), ROUND_ROWS_MAX - delivered)
                if not count:
                    break
                names = [f"s{number + index:06}" for index in range(count)]
                number += count
                delivered += count
                sent.update(names)
                if deliver(service, [sticker(name) for name in names] + [place(f"room-{turn}")]) is None:
                    raise Failed("a delivery was not answered while the service ran")
                acknowledged += names
            # In flight during the kill. The service may apply the delivery or not, but only as a whole.
            rest = [f"s{number + index:06}" for index in range(50)]
            number += 50
            sent.update(rest)
            last = threading.Thread(target=lambda rest=rest: deliver(service, [sticker(name) for name in rest]))
            if choices.random() < 0.5:
                last.start()
                time.sleep(choices.random() * 0.01)
            service.kill()
            if last.ident:
                last.join()
            service.start()
            accepted, duplicates = deliver(service, [sticker(name) for name in acknowledged[-900:]])
            if accepted:
                raise Failed(f"{accepted} of {accepted + duplicates} acknowledged changes were gone")
            taken = deliver(service, [sticker(name) for name in rest])
            if 0 not in taken:
                raise Failed(f"half of a delivery was taken: {taken}")
            acknowledged += rest
            if f"class:room-{turn}:member" not in pupil_scope(service):
                raise Failed(f"the pupil's room is not known: {pupil_scope(service)}")
            watcher.wait(len(acknowledged))
            judge(watcher.told, acknowledged, sent)
            print(f"  killed {turn + 1} of {options.rounds}, {len(acknowledged)} changes acknowledged", flush=True)
        watcher.is_over = True
        service.stop()
    finally:
        if service.process.poll() is None:
            service.kill()
    print(f"  {len(acknowledged)} acknowledged changes, each told in its order")
    return options.rounds


def judge(told, acknowledged, sent):
    if strange := set(told) - sent:
        raise Failed(f"told, and never sent: {sorted(strange)[:5]}")
    if lost := set(acknowledged) - set(told):
        raise Failed(f"{len(lost)} acknowledged changes were not told: {sorted(lost)[:5]}")
    if told != sorted(told):
        raise Failed("the changes were told in another order")


if __name__ == "__main__":
    sys.exit(run_script("deliveries", __doc__, run, rounds=5))
