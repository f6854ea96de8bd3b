#!/usr/bin/env python3
"""Repeatedly kills a real service with SIGKILL while clients write to it and listen to it, and then proves that

  - every acknowledged write exists (and every badge is exact: `bellhop check`),
  - every stream, resuming with its last id, received every event of its user exactly once and in order,
  - every acknowledged point counts once, and the rank in each response was correct at that moment.

    Tests/crash/crash.py --binary .build/debug/bellhop [--rounds 5] [--seed 1] [--users 4] [--writers 4]

Needs only Python's standard library. The choices follow from the seed, which is printed. The moment of a kill within a
commit depends on the machine.
"""

import argparse
import contextlib
import http.client
import json
import pathlib
import random
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

from event_ids import IDS, SECRET_SQLITE
from harness.events import events_of
from harness.services import Service
from harness.tokens import token
from harness.waiting import PATIENCE_SECONDS, Failed, wait_until

CHALLENGE = "/v1/challenges/crash"
# The service recognizes a repeated event while its notification is stored (500 of a user), or among the last 1,000
# that were removed.
EVENTS_KNOWN_MAX = 1500


def run_script(name, description, run, **more):
    """Calls a script's `run(options, folder)`, which returns the number of cases, and prints the seed and the cases.

    `more` contains further options with their defaults, which define their types. Returns the exit code.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    for option, default in more.items():
        parser.add_argument(f"--{option}", type=type(default), default=default)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    options = parser.parse_args()
    given = ", ".join(f"{option} {getattr(options, option)}" for option in more)
    print(f"{name}: seed {options.seed}, {given}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        try:
            cases = run(options, pathlib.Path(folder))
        except Failed as problem:
            print(f"{name}: seed {options.seed}: {problem}", file=sys.stderr)
            return 1
    print(f"cases: {cases}", flush=True)
    return 0


class Play:
    def __init__(self, service, options):
        self.service = service
        self.users = [f"user-{number}" for number in range(options.users)]
        self.backend = token(service.secret, "backend", "service_role")
        self.is_over = threading.Event()
        self.writers_are_done = threading.Event()
        self.lock = threading.Lock()
        self.acknowledged = {user: set() for user in self.users}
        # The responses to scores: each acknowledged event is also a point on a leaderboard.
        self.scores = []
        self.problems = []

    def fail(self, text):
        with self.lock:
            self.problems.append(text)
        self.is_over.set()
        self.writers_are_done.set()

    def write(self, number, seed):
        """Writes events. An event without a response is sent again with the same id until it is acknowledged."""
        choices = random.Random(seed)
        count = 0
        try:
            while not self.writers_are_done.is_set():
                user = choices.choice(self.users)
                event = f"evt-{number}-{count}"
                count += 1
                self.write_until_acknowledged(user, event)
                self.score_until_acknowledged(user, event)
        except Failed as problem:
            self.fail(str(problem))

    def write_until_acknowledged(self, user, event):
        body = {"id": event, "type": "auth.profile_updated", "userId": user, "data": {}}
        if self.post_until_acknowledged("/v1/events", body) is not None:
            with self.lock:
                self.acknowledged[user].add(event)

    def score_until_acknowledged(self, user, event):
        answer = self.post_until_acknowledged(f"{CHALLENGE}/scores", {"userId": user, "score": 1}, key=event)
        if answer is not None:
            with self.lock:
                self.scores.append(json.loads(answer))

    def post_until_acknowledged(self, path, body, key=None):
        """Returns the response; None if the play ends first."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline and not self.is_over.is_set():
            try:
                status, answer = self.service.request("POST", path, self.backend, body, key)
            except (OSError, http.client.HTTPException):
                time.sleep(0.01)
                continue
            if status in (200, 201):
                return answer
            if status != 503:
                raise Failed(f"POST {path} answered {status}: {answer[:500]!r}")
            time.sleep(0.05)
        if not self.is_over.is_set():
            raise Failed(f"{key or body} was not acknowledged in {PATIENCE_SECONDS} s")
        return None


class Stream:
    """One user's stream, which resumes after its last id for as long as the play lasts."""

    def __init__(self, play, user):
        self.play = play
        self.user = user
        self.bearer = token(play.service.secret, user)
        self.last_id = None
        self.seen = []
        self.connections = 0
        self.is_ready = threading.Event()

    def follow(self):
        while not self.play.is_over.is_set():
            try:
                self.connect()
            except (OSError, http.client.HTTPException):
                time.sleep(0.02)
            except Failed as problem:
                self.play.fail(f"{self.user}: {problem}")

    def connect(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.play.service.port, timeout=PATIENCE_SECONDS)
        try:
            headers = {"Authorization": f"Bearer {self.bearer}", "Accept": "text/event-stream"}
            if self.last_id:
                headers["Last-Event-ID"] = self.last_id
            connection.request("GET", "/v1/stream", headers=headers)
            kept = connection.sock
            answer = connection.getresponse()
            if answer.status == 503:
                time.sleep(0.05)
                return
            if answer.status != 200:
                raise Failed(f"the stream answered {answer.status}: {answer.read()[:500]!r}")
            self.connections += 1
            # A silent stream reconnects from time to time, so that the thread notices the end of the play.
            kept.settimeout(2)
            self.read(answer)
        finally:
            connection.close()

    def read(self, answer):
        try:
            for event in events_of(answer):
                self.last_id = event.id or self.last_id
                if event.data:
                    self.received(event.name, json.loads(event.data))
                if self.play.is_over.is_set():
                    return
        except TimeoutError:
            return

    def received(self, name, data):
        if name == "stream:ready":
            self.is_ready.set()
        elif name == "stream:resync":
            raise Failed(f"was told of a gap: {data}")
        elif name == "notification:created":
            self.seen.append((self.last_id, data["eventId"]))


def database_rows(folder, statement):
    address = f"file:{folder / 'crash.sqlite'}?mode=ro"
    with contextlib.closing(sqlite3.connect(address, uri=True, timeout=PATIENCE_SECONDS)) as database:
        return database.execute(statement).fetchall()


def judge(play, streams):
    for stream in streams:
        events = [event for _, event in stream.seen]
        doubled = {event for event in events if events.count(event) > 1} if len(set(events)) < len(events) else set()
        if doubled:
            raise Failed(f"{stream.user} saw twice: {sorted(doubled)[:5]}")
        strangers = set(events) - play.acknowledged[stream.user]
        if strangers:
            raise Failed(f"{stream.user} saw what is not theirs: {sorted(strangers)[:5]}")
        places = [IDS.read(identifier) for identifier, _ in stream.seen]
        for (epoch, earlier), (next_epoch, later) in zip(places, places[1:]):
            if epoch != next_epoch or earlier >= later:
                raise Failed(f"{stream.user}: {epoch}-{earlier} was followed by {next_epoch}-{later}")
    for user, events in play.acknowledged.items():
        if len(events) > EVENTS_KNOWN_MAX:
            raise Failed(f"{user} has {len(events)} events, of which the service knows {EVENTS_KNOWN_MAX}: use more --users")
        for event in sorted(events):
            body = {"id": event, "type": "auth.profile_updated", "userId": user, "data": {}}
            status, _ = play.service.request("POST", "/v1/events", play.backend, body)
            if status != 200:
                raise Failed(f"{event} of {user} was acknowledged and is gone: repeating it answered {status}")


class Board:
    """The expected leaderboard after the acknowledged scores, highest first."""

    def __init__(self, mode):
        self.mode = mode
        self.scores = {}
        # The change with which each user reached their score; it orders equal scores.
        self.reached = {}
        self.version = 0

    def add(self, user, points):
        """Adds a score; returns whether it changed anything."""
        before = self.scores.get(user)
        after = points if before is None else before + points if self.mode == "add" else max(before, points)
        if after == before:
            return False
        self.version += 1
        self.scores[user], self.reached[user] = after, self.version
        return True

    def items(self):
        order = sorted(self.scores, key=lambda user: (-self.scores[user], self.reached[user]))
        return [
            {"userId": user, "displayName": None, "score": self.scores[user], "position": position,
             "rank": 1 + sum(score > self.scores[user] for score in self.scores.values())}
            for position, user in enumerate(order, 1)
        ]


def replay_scores(mode, answered):
    """Returns the board after all scores, in the order of their responses. Each response must match the board of its
    moment.

    - answered: pairs of request and response.
    """
    board = Board(mode)
    # The response to a score without effect contains the version that the score found.
    for points, answer in sorted(answered, key=lambda one: (one[1]["version"], not one[1]["changed"])):
        user = answer["userId"]
        changed = board.add(user, points)
        item = next(item for item in board.items() if item["userId"] == user)
        wanted = {**item, "changed": changed, "entries": len(board.scores), "version": board.version}
        if wanted != {name: answer[name] for name in wanted}:
            raise Failed(f"{points} for {user} should have been answered by {wanted}: {answer}")
    return board


def judge_scores(play):
    """Checks that the versions have no gap, which an unacknowledged score would leave, and that the board shows all
    scores."""
    board = replay_scores("add", [(1, answer) for answer in play.scores])
    status, answer = play.service.request("GET", f"{CHALLENGE}/leaderboard", play.backend)
    shown = json.loads(answer)["items"] if status == 200 else status
    if shown != board.items():
        raise Failed(f"the leaderboard should be {board.items()}: {shown}")


def run(options, folder):
    service = Service(options.binary, folder)
    service.start()
    [[secret]] = database_rows(folder, SECRET_SQLITE)
    IDS.learn(secret)
    play = Play(service, options)
    wish = {"name": "Crash", "startsAt": "2020-01-01T00:00:00Z", "endsAt": "2200-01-01T00:00:00Z", "mode": "add"}
    status, answer = service.request("PUT", CHALLENGE, play.backend, wish)
    if status != 201:
        raise Failed(f"PUT {CHALLENGE} answered {status}: {answer[:500]!r}")
    # Two streams for each user: each must receive everything on its own (R-SCH-EC10).
    streams = [Stream(play, user) for user in play.users for _ in range(2)]
    listeners = [threading.Thread(target=stream.follow, daemon=True) for stream in streams]
    writers = [
        threading.Thread(target=play.write, args=(number, options.seed * 1000 + number), daemon=True)
        for number in range(options.writers)
    ]
    choices = random.Random(options.seed)
    try:
        for thread in listeners:
            thread.start()
        wait_until(lambda: all(stream.is_ready.is_set() for stream in streams), "all streams to open", play.problems)
        for thread in writers:
            thread.start()
        for turn in range(options.rounds):
            before = sum(len(events) for events in play.acknowledged.values())
            wanted = before + choices.randint(5, 60)
            wait_until(lambda: sum(map(len, play.acknowledged.values())) >= wanted, "writes to go on", play.problems)
            service.kill()
            time.sleep(choices.random() * 0.2)
            service.start()
            print(f"  killed {turn + 1} of {options.rounds}, {wanted} writes acknowledged", flush=True)
        play.writers_are_done.set()
        for thread in writers:
            thread.join(PATIENCE_SECONDS)
        wait_until(
            lambda: all({event for _, event in list(s.seen)} >= play.acknowledged[s.user] for s in streams),
            "every stream to see every acknowledged event",
            play.problems,
        )
        judge(play, streams)
        judge_scores(play)
    finally:
        play.is_over.set()
        play.writers_are_done.set()
        for thread in listeners:
            if thread.is_alive():
                thread.join(5)
        if sys.exc_info()[0] is not None and service.process.poll() is None:
            service.kill()
    service.stop()
    check = subprocess.run([options.binary, "check"], env=service.environment, capture_output=True, text=True)
    if check.returncode != 0:
        raise Failed(f"bellhop check found differences:\n{check.stdout}{check.stderr}")
    total = sum(len(events) for events in play.acknowledged.values())
    connections = sum(stream.connections for stream in streams)
    print(f"  {len(play.scores)} acknowledged points, each counted once, each rank that of its moment")
    print(f"  {total} acknowledged events, each seen exactly once by {len(streams)} streams over {connections} connections")
    return options.rounds


if __name__ == "__main__":
    sys.exit(run_script("crash", __doc__, run, rounds=5, users=4, writers=4))
