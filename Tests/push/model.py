#!/usr/bin/env python3
"""Random steps of many users with several phones each, against a model of what every phone must show: notifications,
messages, what is seen here or there, streams, registrations, moved and signed-out phones, errors of the push services,
kill -9 and restarts. On SQLite, and with two replicas on PostgreSQL.

    Tests/push/model.py --binary .build/debug/bellhop [--store sqlite] [--steps 3000] [--households 30] [--kills 2]
        [--whole] [--minutes 20] [--seed 1]

It checks that

  - every pushed notification and message reaches every phone of its user, and each phone once,
  - every number on an icon was the user's total when the message was sent,
  - what was seen is removed from every other phone, and nothing else is,
  - nothing is sent after it was seen, after a phone was signed out, or too early for a user with a stream; messages that
    were on their way are counted,
  - no token is in the database, its log, a backup or the logs of the service.

It ends after --minutes, even if steps are left. At the end it waits for retries. With --whole it also waits for everything that has a pause of its own, such as numbers
(30 s); without, a waiting row of the outbox explains a difference. The choices follow from the seed, which is printed.
"""

import argparse
import asyncio
import collections
import pathlib
import random
import sys
import tempfile
import time
from datetime import datetime

import apns
import fcm
from harness.waiting import Failed
from household import PUSHED, Household, figures
from http2 import Loop, Reply
from stage import STORES, Stage
from traces import PATTERNS, found_in, new_token

AFTER_SECONDS = 1
# A message on its way arrives in this time, or never: a lease and a timeout of the service.
WAY_SECONDS = 40
# A repeated message is explained by a kill that followed the first one in this time.
KILL_SECONDS = 10


class Model:
    """The households, and what arrives at the push services."""

    def __init__(self, stage, options, store):
        self.stage, self.options = stage, options
        self.choices = random.Random(f"{options.seed}-{store}-providers")
        self.offset = time.time() - time.monotonic()
        self.steps = collections.Counter()
        self.replies = collections.Counter()
        self.kinds = collections.Counter()
        # The household and phone of each token, the tokens that no longer exist, and alerts that arrived before the
        # answer to the request that caused them.
        self.tokens, self.dead, self.waiting = {}, set(), collections.defaultdict(list)
        self.kills = []
        # Seconds: after it was seen, after the phone was signed out, and since the number was right.
        self.late, self.left, self.old_numbers = [], [], []
        self.repeated = collections.Counter()
        self.own_delay = 0.0
        self.ends_at = time.monotonic() + options.minutes * 60
        self.problems = []
        seeds = random.Random(f"{options.seed}-{store}")
        self.households = [Household(self, n, random.Random(seeds.random())) for n in range(options.households)]
        for provider in stage.providers.all:
            provider.script, provider.listener = self.decide, self.arrived

    # MARK: Phones and push services

    def give_token(self, household, phone):
        """Gives a phone a new token. Its former one keeps working, unless the push service has removed it."""
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
            return {"apns": apns.error("BadCollapseId"), "fcm": fcm.error("INVALID_ARGUMENT"),
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
        kinds = {"accepted": 930, "busy": 20, "down": 10, "gone": 8, "refused": 4, "reset": 4, "close": 2, "silence": 2}
        return self.choices.choices(list(kinds), list(kinds.values()))[0]

    def arrived(self, push):
        household, phone = self.tokens[push.device]
        self.kinds[f"{push.kind} by {push.platform}"] += 1
        if push.platform == "webpush" and push.kind != "alert":
            self.problems.append(f"a browser would have to show something for {push}")
        is_about_note = push.kind == "alert" and push.title != "Test" and not push.tag.startswith("conversation:")
        if is_about_note and push.tag not in household.notes:
            self.waiting[push.tag].append(push)
            return
        self.judge(household, phone, push, household.notes[push.tag] if is_about_note else None)

    def early(self, household, note):
        """Judges what arrived before the answer to the request that created a notification."""
        for push in self.waiting.pop(note.id, ()):
            self.judge(household, self.tokens[push.device][1], push, note)

    # MARK: Judgement of a message

    def judge(self, household, phone, push, note):
        user = note.user if note else self.owner(household, phone, push)
        if user is not None and user == phone.joining and user != phone.user:
            self.judge_number(household, user, push)
        elif user is None or phone.user != user:
            known = [phone.left[user]] if user in phone.left else list(phone.left.values())
            if known:
                self.left.append(push.at - max(known))
            else:
                self.problems.append(f"a message for a phone that nobody registered: {push}")
        else:
            self.judge_time(household, user, push, note)
            self.judge_number(household, user, push)
            self.show(household, phone, user, push)
        if push.reply.status in (404, 410) and not push.reply.fate and phone.token == push.device:
            phone.leave()

    def owner(self, household, phone, push):
        """Returns the user of a message that names none. One for a former user may have been on its way when another
        user registered the phone: then its number is the former user's."""
        def is_right(user):
            age = household.counts[user].age(push.badge, push.at, household.expected.get(user))
            return age is not None and age <= WAY_SECONDS + self.own_delay

        former = [user for user, left in phone.left.items() if push.at - left <= WAY_SECONDS + self.own_delay]
        users = [user for user in (phone.user, phone.joining, *former) if user is not None]
        return next(filter(is_right, users), phone.user) if push.badge is not None else phone.user

    def judge_time(self, household, user, push, note):
        seen_at = note.seen_at if note else household.read_at[user] if is_conversation(push) else None
        if seen_at is not None and seen_at < push.at:
            self.late.append(push.at - seen_at)
        if note and note.stream and note.stream.is_open and household.streams.get(user) is note.stream:
            created = datetime.fromisoformat(note.created_at.replace("Z", "+00:00")).timestamp()
            if push.at + self.offset < created + AFTER_SECONDS - 0.02:
                self.problems.append(f"sent {push.at + self.offset - created:.3f} s after its creation to a user with a stream")

    def judge_number(self, household, user, push):
        if push.badge is None:
            self.problems.append(f"no number: {push}")
            return
        age = household.counts[user].age(push.badge, push.at, household.expected.get(user))
        if age is None or age > WAY_SECONDS + self.own_delay:
            self.problems.append(f"the number {push.badge} is wrong ({age}), {user} has {household.counts[user].now}: {push}")
        elif age > 0:
            self.old_numbers.append(age)

    def show(self, household, phone, user, push):
        """Changes what a phone shows. A push service that has not answered may have delivered the message."""
        key = phone.since, user, push.tag, push.text if is_conversation(push) else None
        if push.reply.status in (400, 413) and not push.reply.fate:
            phone.dropped.add(key)
            phone.badge = None
            if push.kind == "withdrawal":
                phone.screen -= set(push.withdrawn)
        if not push.is_accepted and not (push.reply.fate and self.choices.random() < 0.5):
            return
        if push.platform == "webpush" or push.kind == "withdrawal":
            phone.screen -= set(push.withdrawn)
        if push.kind != "withdrawal":
            phone.badge = push.badge
        if push.kind != "alert" or push.title == "Test":
            return
        phone.screen.add(push.tag)
        if is_conversation(push):
            phone.texts[user] = phone.since, push.text
        if earlier := phone.alerts.get(key):
            self.repeated[self.reason(earlier[-1], push)] += 1
        phone.alerts.setdefault(key, []).append(push)

    def reason(self, first, second):
        """Returns why a phone was sent an alert again."""
        if first.reply.fate:
            return "again without an answer"
        # What the ended process had sent is read from the connection a moment later, on a busy machine much later.
        for kill, back in self.kills:
            if first.at - self.own_delay <= back and kill <= min(second.at, first.at + KILL_SECONDS + self.own_delay):
                return "again after a kill or a stop"
        self.problems.append(f"sent again after {second.at - first.at:.3f} s: {second}")
        return "again for no reason"

    # MARK: The run

    async def play(self):
        start = time.monotonic()
        each = self.options.steps // len(self.households)
        playing = [asyncio.ensure_future(household.play(each)) for household in self.households]
        disturbing = asyncio.ensure_future(self.disturb(each * len(self.households), playing))
        watching = asyncio.ensure_future(self.watch())
        done, _ = await asyncio.wait(playing, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
        await disturbing
        watching.cancel()
        return time.monotonic() - start

    async def watch(self):
        """Measures how late this process itself is, on a busy machine. Prints each tenth of the steps."""
        tenth = 1
        while True:
            if (done := sum(self.steps.values())) * 10 >= tenth * self.options.steps and tenth < 10:
                tenth += 1
                print(f"  {self.stage.store.name}: {done} steps", flush=True)
            start = time.monotonic()
            await asyncio.sleep(0.02)
            self.own_delay = max(self.own_delay, time.monotonic() - start - 0.02)

    async def disturb(self, steps, playing):
        """Kills or restarts a replica after each part of the steps."""
        for number in range(self.options.kills):
            goal = steps * (number + 1) // (self.options.kills + 1)
            while sum(self.steps.values()) < goal and not all(task.done() for task in playing):
                await asyncio.sleep(0.05)
            replica = self.stage.replicas[number % len(self.stage.replicas)]
            self.kills.append((time.monotonic(), float("inf")))
            await asyncio.to_thread(replica.stop if number % 4 == 3 else replica.kill)
            await asyncio.to_thread(replica.start)
            self.kills[-1] = self.kills[-1][0], time.monotonic()

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

    # MARK: Judgement of the end

    def judge_end(self):
        """Compares all phones with the model; returns the number of notifications that each had to show."""
        columns = {(user, device, kind, subject) for kind, subject, user, device, *_ in self.stage.outbox("state = 0")}
        expected = 0
        for tag, pushes in self.waiting.items():
            self.problems.append(f"an alert about a notification that does not exist: {tag} {pushes}")
        for household in self.households:
            for phone in household.phones:
                if phone.user is not None:
                    expected += self.judge_phone(household, phone, columns)
        return expected

    def judge_phone(self, household, phone, rows):
        user, tag = phone.user, f"conversation:{household.conversation}"
        due = [note for note in household.notes.values()
               if note.user == user and note.priority in PUSHED and note.created > phone.since and not note.was_seen]
        known = {key[2] for key in [*phone.alerts, *phone.dropped] if key[:2] == (phone.since, user)}
        lost = [note.id for note in due if note.id not in known]
        allowed = set(household.unseen[user]) | ({tag} if household.unread(user) else set())
        extra = [shown for shown in phone.screen - allowed if (user, phone.name, "withdrawal", shown) not in rows]
        shown = {key[2] for key in phone.alerts if key[:2] == (phone.since, user)}
        missing = [note.id for note in due if note.id in shown and note.id not in phone.screen]
        for what, tags in (("lost", lost), ("not withdrawn", extra), ("withdrawn though unseen", missing)):
            if tags:
                self.problems.append(f"{phone.name} of {user}: {what}: {tags}")
        self.judge_talk(household, phone, tag)
        total, is_pending = household.counts[user].now, (user, phone.name, "badge", "") in rows
        if phone.badge not in (None, total) and phone.platform != "webpush" and user not in household.rose_quietly:
            if not is_pending:
                self.problems.append(f"{phone.name} of {user} shows {phone.badge}, not {total}")
        return len(due)

    def judge_talk(self, household, phone, tag):
        """Checks that a phone shows the last message that its user has not read."""
        user = phone.user
        sent = [(time_, text) for sender, text, time_ in household.messages[household.read_to[user]:] if sender != user]
        if not sent or sent[-1][0] < phone.since:
            return
        text = sent[-1][1]
        if (phone.since, user, tag, text) in phone.dropped:
            return
        if phone.texts.get(user) != (phone.since, text):
            self.problems.append(f"{phone.name} of {user}: the message “{text}” is lost: {phone.texts.get(user)}")
        elif tag not in phone.screen:
            self.problems.append(f"{phone.name} of {user}: the message “{text}” was withdrawn though it is unread")

    def judge_files(self):
        """Returns the files in which a token is."""
        stage = self.stage
        backup = stage.store.backup()
        files = [path for path in pathlib.Path(stage.store.folder).rglob("*") if path.is_file()]
        files += [*stage.logs(), backup]
        found = [path.name for path in files if found_in(path, PATTERNS)]
        if found:
            self.problems.append(f"tokens are in {found}")
        # The search works: the ids of the devices are there.
        if not any(found_in(path, {b"-apns"}) for path in files):
            self.problems.append("the search for tokens finds nothing, not even ids of devices")
        return len(found), len(files)


def is_conversation(push):
    return push.kind == "alert" and push.tag.startswith("conversation:")


def run(options, store, loop, folder):
    """Runs the model on a store; returns the number of steps."""
    stage = Stage(options.binary, folder, store, loop, BELLHOP_PUSH_AFTER_SECONDS=str(AFTER_SECONDS),
                  BELLHOP_PUSH_TIMEOUT_SECONDS="10", BELLHOP_NOTIFICATIONS_KEPT="2000")
    with stage:
        model = loop.call(lambda: Model(stage, options, store))
        try:
            seconds = loop.run(model.play())
            waited = loop.run(model.settle())
        except AssertionError as problem:
            raise Failed(str(problem)) from None
        found, files = model.judge_files()
        stage.stop()
        expected = model.judge_end()
        problems = [*stage.providers.problems, *model.problems]
    steps = sum(model.steps.values())
    print(f"""  {store}: {steps} steps in {seconds:.1f} s, then {waited:.1f} s for retries: {tallied(model.steps)}
    sent: {tallied(model.kinds)}
    answers: {tallied(model.replies)}; {len(model.kills)} kills and stops
    repeated: {tallied(model.repeated) or "0"}
    late: {figures(model.late)} after it was seen, {figures(model.left)} after the phone was signed out
    numbers: 0 wrong if no problem follows; replaced while on their way: {figures(model.old_numbers)}
    this process itself was at most {model.own_delay * 1000:.0f} ms late
    at the end {expected} notifications on phones; tokens in {found} of {files} files""", flush=True)
    if problems:
        kinds = "\n".join(f"    {problem[:400]}" for problem in problems[:20])
        raise Failed(f"{store}: {len(problems)} problems:\n{kinds}")
    return steps


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
    parser.add_argument("--whole", action="store_true")
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
