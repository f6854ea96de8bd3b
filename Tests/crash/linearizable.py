#!/usr/bin/env python3
"""Records what many clients ask a service that is killed with SIGKILL repeatedly, and what it answers. Then it judges
whether these histories are linearizable: whether every answer is that of a service that performs one request after the
other, each at one moment between its call and its answer (`Tests/histories`).

    Tests/crash/linearizable.py --binary .build/debug/bellhop [--rounds 5] [--seed 1]

Three kinds of objects: the count of a user's notifications, a barber's time that one customer can book, and the votes on a
track, one for each user. A request without an answer may have taken effect or not. Needs only Python's standard
library. The choices follow from the seed, which is printed.
"""

import collections
import http.client
import json
import random
import sys
import threading
import time

from crash import run_script
from harness.services import Service
from harness.tokens import token
from harness.waiting import PATIENCE_SECONDS, Failed, wait_until
from histories.checker import judge, judge_all
from histories.history import UNKNOWN, History, NeverSent
from histories.specifications import Count, Slot, Votes

SHOP = "/v1/shops/history"
CLIENTS = 6
COUNTED_USERS = 2
TRACKS = 3
# Clients race for the newest of these, so that several want the same one.
TIMES = 400
TIMES_AT_ONCE = 3
SPECIFICATIONS = {"count": Count, "slot": Slot, "votes": Votes}


class Lost(Exception):
    """A request that was not answered, or not performed now."""


class Refused(Lost, NeverSent):
    """A request while no process listens."""


class Play:
    """The clients, and the history of their operations."""

    def __init__(self, service, seed):
        self.service = service
        self.seed = seed
        self.history = History()
        self.backend = token(service.secret, "backend", "service_role")
        self.people = [f"person-{number}" for number in range(CLIENTS)]
        self.bearers = {user: token(service.secret, user) for user in self.people}
        self.counted = [f"counted-{number}" for number in range(COUNTED_USERS)]
        self.bearers.update({user: token(service.secret, user) for user in self.counted})
        self.first_time = int(time.time()) // 3600 * 3600 + 86400
        self.answered = 0
        self.lock = threading.Lock()
        self.is_over = threading.Event()
        self.problems = []

    def set_up(self):
        for method, path, bearer, body in (
            ("PUT", SHOP, self.backend, {"name": "History", "timeZone": "UTC"}),
            ("PUT", f"{SHOP}/barbers/b1", self.backend, {"onDuty": True}),
            ("PUT", f"{SHOP}/dj", self.backend, {"isActive": True}),
            *(("PUT", f"{SHOP}/presence/me", self.bearers[user], None) for user in self.people),
        ):
            self.call(method, path, bearer, body)
        for number in range(TRACKS):
            track = {"trackId": f"t{number}", "trackName": "T", "artistName": "A"}
            # The track begins with the vote of its finder.
            with self.history.operation("backend", f"votes {track['trackId']}", "vote", "up") as answer:
                answer(votes_of(self.call("POST", f"{SHOP}/dj/tracks", self.backend, track)[1]))

    def call(self, method, path, bearer, body=None, key=None, refusals=()):
        """Returns status and body of an answer. A lost answer raises an error."""
        try:
            status, content = self.service.request(method, path, bearer, body, key)
        except ConnectionRefusedError as problem:
            raise Refused from problem
        except (OSError, http.client.HTTPException) as problem:
            raise Lost from problem
        if status == 503:
            raise Lost
        if status not in (200, 201, *refusals):
            raise Failed(f"{method} {path} answered {status}: {content[:300]!r}")
        with self.lock:
            self.answered += 1
        return status, json.loads(content)

    def until_answered(self, *request, **more):
        """Repeats a request with its Idempotency-Key until it is answered: all tries are one operation."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline and not self.is_over.is_set():
            try:
                return self.call(*request, **more)
            except Lost:
                time.sleep(0.01)
        if not self.is_over.is_set():
            raise Failed(f"{request[:2]} was not answered in {PATIENCE_SECONDS} s")
        raise Lost

    def run_client(self, number):
        client = Client(self, number)
        try:
            while not self.is_over.is_set():
                try:
                    client.step()
                except Lost:
                    time.sleep(0.01)
        except Exception as problem:  # A client that fails unnoticed would make the test meaningless.
            with self.lock:
                self.problems.append(f"client {number}: {problem!r}")


class Client:
    """One client: it acts sequentially."""

    def __init__(self, play, number):
        self.play = play
        self.user = play.people[number]
        self.choices = random.Random(f"{play.seed}-{number}")
        self.count = 0
        # The times that this client has tried to book.
        self.tried = set()

    def step(self):
        self.count += 1
        self.name = f"{self.user}-{self.count}"
        self.choices.choice([self.add, self.read_count, self.book, self.read_slot, self.vote, self.vote, self.read_votes])()

    def add(self):
        """Each try is an operation of its own: an event counts once, however often it is sent."""
        user = self.choices.choice(self.play.counted)
        body = {"id": self.name, "type": "auth.profile_updated", "userId": user, "data": {}}
        while not self.play.is_over.is_set():
            try:
                with self.play.history.operation(self.user, f"count {user}", "add", self.name) as answer:
                    self.play.call("POST", "/v1/events", self.play.backend, body)
                    answer(None)
                return
            except Lost:
                time.sleep(0.01)

    def read_count(self):
        user = self.choices.choice(self.play.counted)
        with self.play.history.operation(self.user, f"count {user}", "read") as answer:
            answer(self.play.call("GET", "/v1/badges", self.play.bearers[user])[1]["bell"])

    def slot(self):
        """Returns the number of a time that several clients want now, and the time."""
        number = min(TIMES - 1, self.play.answered // 40 + self.choices.randrange(TIMES_AT_ONCE))
        return number, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.play.first_time + number * 3600))

    def book(self):
        number, start = self.slot()
        if number in self.tried:
            return
        self.tried.add(number)
        wish = {"shopId": "history", "barberId": "b1", "service": "cut", "durationMinutes": 30, "scheduledStart": start}
        with self.play.history.operation(self.user, f"slot {number}", "book", self.user) as answer:
            status, body = self.play.until_answered(
                "POST", "/v1/bookings", self.play.bearers[self.user], wish, key=self.name, refusals=(409,))
            if status == 409 and body["code"] != "booking.overlap":
                raise Failed(f"a booking was refused: {body}")
            answer("taken" if status == 409 else "booked")

    def read_slot(self):
        number, start = self.slot()
        path = f"/v1/bookings?shopId=history&day={start[:10]}&limit=100"
        with self.play.history.operation(self.user, f"slot {number}", "read") as answer:
            found = self.play.call("GET", path, self.play.backend)[1]["items"]
            owners = [booking["userId"] for booking in found if booking["scheduledStart"][:16] == start[:16]]
            if len(owners) > 1:
                raise Failed(f"{start} is booked by {owners}")
            answer(owners[0] if owners else None)

    def vote(self):
        track, vote = f"t{self.choices.randrange(TRACKS)}", self.choices.choice(["up", "down", "none"])
        request = ("PUT", f"{SHOP}/dj/tracks/{track}/vote", self.play.bearers[self.user], {"vote": vote})
        is_keyed = self.choices.random() < 0.5
        with self.play.history.operation(self.user, f"votes {track}", "vote", vote) as answer:
            ask = self.play.until_answered if is_keyed else self.play.call
            answer(votes_of(ask(*request, key=self.name if is_keyed else None)[1]))

    def read_votes(self):
        track = f"t{self.choices.randrange(TRACKS)}"
        with self.play.history.operation(self.user, f"votes {track}", "read") as answer:
            items = self.play.call("GET", f"{SHOP}/dj", self.play.bearers[self.user])[1]["queue"]
            answer(next(votes_of(item) for item in items if item["trackId"] == track))


def votes_of(item):
    return item["upvotes"], item["downvotes"]


def falsified(operation, is_booked):
    """Returns an impossible answer in place of the one that came; None if there is none.

    - is_booked: whether a client was told that it has the time.
    """
    kind = operation.key.split()[0]
    if operation.value == UNKNOWN or operation.name == "add":
        return None
    if kind == "count":
        return operation._replace(value=operation.value + 1000)
    if kind == "votes":
        return operation._replace(value=(CLIENTS + 2, 0))
    # Two clients have the same time.
    return operation._replace(value="booked") if operation.value == "taken" and is_booked else None


def expect_found(operations):
    """Checks that one wrong answer in each history is found."""
    is_booked = any(operation.value == "booked" for operation in operations)
    for place in reversed(range(len(operations))):
        if wrong := falsified(operations[place], is_booked):
            changed = operations[:place] + [wrong] + operations[place + 1:]
            if judge(specification(wrong.key), changed).is_linearizable:
                raise Failed(f"the wrong answer was not found: {wrong}")
            return 1
    return 0


def specification(key):
    return SPECIFICATIONS[key.split()[0]]


def judge_history(play):
    """Judges all histories; returns a line about them."""
    begin = time.monotonic()
    count, states, problems = judge_all(specification, play.history)
    if problems:
        raise Failed("\n".join(problems))
    found = sum(map(expect_found, play.history.by_key().values()))
    kinds = collections.Counter((one.key.split()[0], one.name, one.value == UNKNOWN) for one in play.history.operations)
    for kind, name in (("count", "add"), ("count", "read"), ("slot", "book"), ("slot", "read"), ("votes", "vote")):
        if not kinds[kind, name, False]:
            raise Failed(f"no “{name}” of “{kind}” was answered")
    taken = sum(one.value == "taken" for one in play.history.operations)
    lost = sum(number for (_, _, is_lost), number in kinds.items() if is_lost)
    return (f"{count} operations on {len(play.history.by_key())} objects, {lost} without an answer, {taken} refused "
            f"bookings. The history is linearizable ({states} states, {time.monotonic() - begin:.1f} s). "
            f"{found} planted answers are found")


def run(options, folder):
    service = Service(options.binary, folder)
    service.environment.update(BELLHOP_RATE_LIMIT_USER="0", BELLHOP_SELF_DECLARED="true")
    service.start()
    play = Play(service, options.seed)
    choices = random.Random(options.seed)
    clients = [threading.Thread(target=play.run_client, args=(number,), daemon=True) for number in range(CLIENTS)]
    try:
        play.set_up()
        for thread in clients:
            thread.start()
        for _ in range(options.rounds):
            wanted = play.answered + choices.randint(40, 160)
            wait_until(lambda: play.answered >= wanted, "requests to go on", play.problems)
            service.kill()
            time.sleep(choices.random() * 0.1)
            service.start()
        # What the last kill interrupted is seen by later requests.
        wanted = play.answered + 60
        wait_until(lambda: play.answered >= wanted, "requests after the last kill", play.problems)
    finally:
        play.is_over.set()
        for thread in clients:
            if thread.is_alive():
                thread.join(PATIENCE_SECONDS)
        if service.process.poll() is None:
            service.kill()
    if play.problems:
        raise Failed("; ".join(play.problems[:3]))
    print(f"  {options.rounds} kills; {judge_history(play)}", flush=True)
    return options.rounds


if __name__ == "__main__":
    sys.exit(run_script("linearizable", __doc__, run, rounds=5))
