#!/usr/bin/env python3
"""Random steps of many users with several phones each, against a model of what every phone must show: notifications,
messages, what is seen here or there, streams, registrations, moved and signed-out phones, errors of the push services,
kill -9 and restarts. On SQLite, and with two replicas on PostgreSQL.

    Tests/push/model.py --binary .build/debug/bellhop [--store sqlite] [--steps 3000] [--households 30] [--kills 2]
        [--freeze] [--whole] [--minutes 20] [--seed 1] [--plant]

It checks that

  - every pushed notification and message reaches every phone of its user, and each phone once,
  - every number on an icon was the user's total when the message was sent,
  - what was seen is removed from every other phone, and nothing else is,
  - nothing is sent after it was seen, after a phone was signed out or its token replaced, or too early for a user with a
    stream,
  - no token is in the database, its log, a backup or the logs of the service.

What was on its way is counted, and refused if it cannot have been: a message arrives within two seconds, and three
times what this process and the replicas were late meanwhile.

It ends after --minutes, even if steps are left. At the end it waits for retries. With --whole it also waits for
everything that has a pause of its own, such as numbers (30 s); without, a waiting row of the outbox explains a
difference. With --plant it falsifies messages, and the judgement must find each kind (`plants.py`). The choices follow
from the seed, which is printed.
"""

import argparse
import asyncio
import collections
import contextlib
import pathlib
import random
import re
import signal
import sys
import tempfile
import time

import apns
import fcm
from harness.waiting import Failed, wait_until
from household import Household, figures
from http2 import Loop, Reply
from judge import Judge
from plants import Plants
from stage import STORES, Stage
from traces import PATTERNS, found_in, new_token

AFTER_SECONDS = 1
PUSH_TIMEOUT_SECONDS = 10
# What the service adds to the timeout of an attempt before another replica may send the message.
LEASE_SECONDS = 30
# The pause between two looks at how busy the machine is.
PULSE_SECONDS = 0.02
# How long before and after a kill or a stop a replica may refuse requests.
REFUSAL_SECONDS = 2


class Model:
    """The households, and what arrives at the push services."""

    def __init__(self, stage, options, store):
        self.stage, self.options = stage, options
        self.choices = random.Random(f"{options.seed}-{store}-providers")
        self.offset = time.time() - time.monotonic()
        self.steps = collections.Counter()
        self.replies = collections.Counter()
        self.kinds = collections.Counter()
        # The household and phone of each token, and the tokens that no longer exist.
        self.tokens, self.dead = {}, set()
        # When replicas were ended, and when they were back. When requests were refused, and with which status.
        self.kills, self.freezes, self.refusals = [], [], []
        self.waited = 0.0
        self.ends_at = time.monotonic() + options.minutes * 60
        self.judge = Judge(self, AFTER_SECONDS)
        self.plants = Plants(self.judge) if options.plant else None
        seeds = random.Random(f"{options.seed}-{store}")
        self.households = [Household(self, n, random.Random(seeds.random())) for n in range(options.households)]
        for provider in stage.providers.all:
            provider.script, provider.listener = self.decide, self.arrived

    def arrived(self, push):
        self.kinds[f"{push.kind} by {push.platform}"] += 1
        (self.plants or self.judge).arrived(push)

    # MARK: Phones and push services

    def give_token(self, household, phone):
        """Gives a phone a new token. Its former one keeps working, unless the push service has removed it."""
        if phone.token:
            phone.replaced[phone.token] = float("inf")
        if phone.platform == "webpush":
            phone.browser = self.stage.providers.webpush.subscribe()
            phone.token = phone.browser.path
        else:
            phone.token = new_token()
        self.tokens[phone.token] = household, phone

    def decide(self, push):
        """Returns the reply of the push service; None accepts."""
        kind = self.chosen(push)
        self.replies[kind] += 1
        if kind == "gone":
            self.dead.add(push.device)
            return {"apns": apns.error("Unregistered", timestamp=int(time.time() * 1000) + 1000),
                    "fcm": fcm.error("UNREGISTERED"), "webpush": Reply(410)}[push.platform]
        if kind == "refused":
            return {"apns": apns.error("BadCollapseId"), "fcm": fcm.error("INVALID_ARGUMENT", "message.android.ttl"),
                    "webpush": Reply(413)}[push.platform]
        if kind == "busy":
            return {"apns": apns.error("TooManyRequests", retry_after=1), "fcm": fcm.error("UNAVAILABLE", retry_after=1),
                    "webpush": Reply(429, {"retry-after": "1"})}[push.platform]
        if kind == "down":
            return {"apns": apns.error("InternalServerError"), "fcm": fcm.error("INTERNAL"),
                    "webpush": Reply(500)}[push.platform]
        return None if kind == "accepted" else Reply(fate=kind)

    def chosen(self, push):
        if push.device in self.dead:
            return "gone"
        kinds = {"accepted": 930, "busy": 20, "down": 10, "gone": 8, "refused": 4, "reset": 4, "close": 2, "silence": 2,
                 "freeze": 1, "unread": 1, "window": 1}
        return self.choices.choices(list(kinds), list(kinds.values()))[0]

    def ended_at(self, push):
        """Returns when the connection of a message ended; None if it has not."""
        provider = next(provider for provider in self.stage.providers.all if provider.platform == push.platform)
        return provider.server.ended.get(push.request.connection)

    # MARK: The run

    async def play(self):
        start = time.monotonic()
        each = self.options.steps // len(self.households)
        playing = [asyncio.ensure_future(household.play(each)) for household in self.households]
        disturbing = asyncio.ensure_future(self.disturb(each * len(self.households), playing))
        watching = [asyncio.ensure_future(work) for work in (
            self.watch(), *(self.feel(replica) for replica in self.stage.replicas))]
        done, _ = await asyncio.wait(playing, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
        await disturbing
        seconds = time.monotonic() - start
        self.waited = await self.settle()
        for task in watching:
            task.cancel()
        return seconds

    async def watch(self):
        """Measures how late this process itself is, on a busy machine. Prints each tenth of the steps."""
        tenth = 1
        while True:
            if (done := sum(self.steps.values())) * 10 >= tenth * self.options.steps and tenth < 10:
                tenth += 1
                print(f"  {self.stage.store.name}: {done} steps", flush=True)
            start = time.monotonic()
            await asyncio.sleep(PULSE_SECONDS)
            now = time.monotonic()
            self.judge.lag.note(now, now - start - PULSE_SECONDS)

    async def feel(self, replica):
        """Measures how late a replica is: how long it takes to answer the simplest request."""
        while True:
            start = time.monotonic()
            with contextlib.suppress(OSError, EOFError):
                reader, writer = await asyncio.open_connection("127.0.0.1", replica.port)
                try:
                    while True:
                        start = time.monotonic()
                        writer.write(b"GET /healthz HTTP/1.1\r\nHost: bellhop\r\n\r\n")
                        head = await reader.readuntil(b"\r\n\r\n")
                        length = re.search(rb"(?i)content-length: (\d+)", head)
                        await reader.readexactly(int(length[1]) if length else 0)
                        now = time.monotonic()
                        self.judge.lag.note(now, now - start)
                        await asyncio.sleep(5 * PULSE_SECONDS)
                finally:
                    writer.transport.abort()
            await asyncio.sleep(5 * PULSE_SECONDS)

    async def disturb(self, steps, playing):
        """Kills or restarts a replica after each part of the steps."""
        for number in range(self.options.kills):
            goal = steps * (number + 1) // (self.options.kills + 1)
            while sum(self.steps.values()) < goal and not all(task.done() for task in playing):
                await asyncio.sleep(0.05)
            replica = self.stage.replicas[number % len(self.stage.replicas)]
            ended = self.freezes if self.options.freeze and number % 4 == 1 else self.kills
            ended.append((time.monotonic(), float("inf")))
            if ended is self.freezes:
                await self.freeze(replica)
            else:
                await asyncio.to_thread(replica.stop if number % 4 == 3 else replica.kill)
                await asyncio.to_thread(replica.start)
            ended[-1] = ended[-1][0], time.monotonic()

    async def freeze(self, replica):
        """Lets a replica stand still for longer than its leases. The other one sends its messages meanwhile, and what it
        learns afterwards has no effect."""
        replica.process.send_signal(signal.SIGSTOP)
        try:
            await asyncio.sleep(PUSH_TIMEOUT_SECONDS + LEASE_SECONDS + 5)
        finally:
            replica.process.send_signal(signal.SIGCONT)
        await asyncio.to_thread(wait_until, replica.is_ready, "the replica goes on")

    async def settle(self):
        """Waits until nothing is left to do, or only what has a pause of its own; returns the seconds."""
        start = time.monotonic()
        rest = "state = 0 AND NOT (type = 'withdrawal' AND device_id LIKE '%webpush')"
        if not self.options.whole:
            rest = "state = 0 AND type IN ('notification', 'message', 'test')"
        while left := await asyncio.to_thread(self.stage.outbox, rest):
            await asyncio.sleep(0.1)
            if time.monotonic() > start + 300:
                raise Failed(f"after 5 minutes the outbox has {len(left)} rows, such as {left[:3]}")
        return time.monotonic() - start

    # MARK: The report

    def report(self, seconds):
        judge = self.judge
        kills = [(kill - REFUSAL_SECONDS, back + REFUSAL_SECONDS) for kill, back in self.kills + self.freezes]
        far = sum(not any(begin <= at <= end for begin, end in kills) for at, _ in self.refusals)
        statuses = collections.Counter(f"with {status}" for _, status in self.refusals)
        return f"""  {self.stage.store.name}: {sum(self.steps.values())} steps in {seconds:.1f} s, then {self.waited:.1f} s for retries: {tallied(self.steps)}
    refused requests: {tallied(statuses) or "0"}; {far} of them far from a kill or a stop
    sent: {tallied(self.kinds)}
    answers: {tallied(self.replies)}; {len(self.kills)} kills and stops, {len(self.freezes)} pauses longer than a lease
    repeated: {tallied(judge.repeated) or "0"}
    late: {figures(judge.late)} after it was seen, {figures(judge.left)} after a phone was signed out or had a new token
    numbers: {judge.wrong_numbers} of {judge.number_count} wrong; replaced while on their way: {figures(judge.old_numbers)}
    {judge.unnamed} messages of moved phones named no user
    this process and the replicas were at most {judge.lag.longest * 1000:.0f} ms late"""

    # MARK: Files

    def judge_files(self):
        """Returns the files in which a token is."""
        stage = self.stage
        backup = stage.store.backup()
        files = [path for path in pathlib.Path(stage.store.folder).rglob("*") if path.is_file()]
        files += [*stage.logs(), backup]
        found = [path.name for path in files if found_in(path, PATTERNS)]
        if found:
            self.judge.problems.append(f"tokens are in {found}")
        # The search works: the ids of the devices are there.
        if not any(found_in(path, {b"-apns"}) for path in files):
            self.judge.problems.append("the search for tokens finds nothing, not even ids of devices")
        return len(found), len(files)


def run(options, store, loop, folder):
    """Runs the model on a store; returns the number of steps."""
    stage = Stage(options.binary, folder, store, loop, BELLHOP_PUSH_AFTER_SECONDS=str(AFTER_SECONDS),
                  BELLHOP_PUSH_TIMEOUT_SECONDS=str(PUSH_TIMEOUT_SECONDS), BELLHOP_NOTIFICATIONS_KEPT="2000")
    with stage:
        model = loop.call(lambda: Model(stage, options, store))
        try:
            seconds = loop.run(model.play())
        except AssertionError as problem:
            raise Failed(str(problem)) from None
        if model.plants:
            model.plants.write_token(stage.logs()[0], new_token())
        found, files = model.judge_files()
        stage.stop()
        rows = {(user, device, kind, subject) for kind, subject, user, device, *_ in stage.outbox("state = 0")}
        expected = model.judge.judge_end(rows)
    print(model.report(seconds) + f"""
    at the end {expected} notifications on phones; tokens in {found} of {files} files""", flush=True)
    problems = [*stage.providers.problems, *model.judge.problems]
    if model.plants:
        expect_found(model.plants, problems)
    elif problems:
        kinds = "\n".join(f"    {problem[:400]}" for problem in problems[:20])
        raise Failed(f"{store}: {len(problems)} problems:\n{kinds}")
    return sum(model.steps.values())


def expect_found(plants, problems):
    """Checks that the judgement has found each planted defect."""
    planted = ", ".join(f"{count} times {defect}" for defect, count in plants.counts.items())
    print(f"    planted: {planted}; {len(problems)} problems were found", flush=True)
    if missed := plants.missed(problems):
        raise Failed(f"the judgement does not find: {', '.join(missed)}")


def tallied(counter):
    return ", ".join(f"{count} {name}" for name, count in counter.most_common())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--store", choices=STORES, nargs="*", default=list(STORES))
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--households", type=int, default=30)
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=600)
    parser.add_argument("--freeze", action="store_true", help="some kills are pauses (SIGSTOP) that outlast a lease")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--plant", action="store_true")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    options = parser.parse_args()
    print(f"model: seed {options.seed}", flush=True)
    loop, steps = Loop(), 0
    for store in options.store:
        with tempfile.TemporaryDirectory() as folder:
            try:
                steps += run(options, store, loop, folder)
            except Failed as problem:
                print(f"model: seed {options.seed}: {problem}", file=sys.stderr)
                return 1
    print(f"cases: {steps}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
