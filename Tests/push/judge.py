"""The judgement of the model: what arrives at the push services, and what phones show at the end."""

import bisect
import collections
from datetime import datetime

from household import PUSHED

# How long a message is on its way, from the moment when the service reads its content until it arrives; and the time in
# which the service stores an answer. Both are some milliseconds. A message may wait a second for its connection
# (`PushLimits.waitMax`), and a busy machine adds to that (`Lag`).
WAY_SECONDS = 2.0
# How long a former user counts as a possible receiver of a message that names no user.
FORMER_SECONDS = 20


class Lag:
    """How late this process and the replicas were, by time: on a busy machine both wait for a processor."""

    def __init__(self):
        self.times, self.lags = [], []

    def note(self, now, lag):
        if lag > 0.005:
            self.times.append(now)
            self.lags.append(lag)

    def near(self, at):
        """Returns the longest delay that a message may have met which arrived at a time."""
        first, last = bisect.bisect_left(self.times, at - 2 * WAY_SECONDS), bisect.bisect_right(self.times, at + WAY_SECONDS)
        late = [lag for now, lag in zip(self.times[last:last + 200], self.lags[last:last + 200]) if now - lag <= at]
        return max([*self.lags[first:last], *late], default=0.0)

    @property
    def longest(self):
        return max(self.lags, default=0.0)


class Judge:
    """Compares messages and phones with what the households have done."""

    def __init__(self, model, after_seconds):
        self.model, self.after_seconds = model, after_seconds
        self.lag = Lag()
        # Alerts that arrived before the answer to the request that caused them.
        self.waiting = collections.defaultdict(list)
        # The first message to each token that its push service no longer knows.
        self.gone = {}
        # The right result for a message that was on its way: the text, when it arrived, and for how many seconds it was wrong.
        self.claims = []
        # Seconds: after it was seen, after the phone was signed out or its token replaced, since the number was right.
        self.late, self.left, self.old_numbers = [], [], []
        self.repeated = collections.Counter()
        self.number_count = self.wrong_numbers = self.unnamed = 0
        self.problems = []

    # MARK: A message

    def arrived(self, push):
        household, phone = self.model.tokens[push.device]
        if push.platform == "webpush" and push.kind != "alert":
            self.problems.append(f"a browser would have to show something for {push}")
        is_about_note = push.kind == "alert" and push.title != "Test" and not is_conversation(push)
        if is_about_note and push.tag not in household.notes:
            self.waiting[push.tag].append(push)
            return
        self.judge(household, phone, push, household.notes[push.tag] if is_about_note else None)

    def early(self, household, note):
        """Judges what arrived before the answer to the request that created a notification."""
        for push in self.waiting.pop(note.id, ()):
            self.judge(household, self.model.tokens[push.device][1], push, note)

    def judge(self, household, phone, push, note):
        user = note.user if note else self.owner(household, phone, push)
        # The service was ended before it stored that the token is gone, so to the service the registration goes on.
        gone = self.gone.get(push.device)
        is_told_again = gone is not None and self.is_unstored(gone, push)
        if is_told_again:
            self.repeated["to a token that is gone, after a kill or a stop"] += 1
        elif (replaced := phone.replaced.get(push.device)) is not None:
            self.claim(self.left, push, replaced, "sent to a replaced token")
        if user is None:
            self.problems.append(f"a message for a phone that nobody registered: {push}")
        elif user in (phone.user, phone.joining):
            self.judge_time(household, user, push, note)
            self.judge_number(household, user, push)
            self.show(household, phone, user, push)
        elif user in phone.left:
            if not is_told_again:
                self.claim(self.left, push, phone.left[user], f"sent for {user}, who had signed out")
            self.judge_number(household, user, push)
        else:
            self.problems.append(f"a message for {user}, who never had the phone: {push}")
        if push.reply.status in (404, 410) and not push.reply.fate:
            self.gone.setdefault(push.device, push)
            if phone.token == push.device:
                phone.leave()

    def claim(self, figures, push, since, text, is_number=False):
        """Notes that a message was on its way at a time, after which it should not have been sent."""
        if (seconds := push.at - since) > 0:
            figures.append(seconds)
            self.claims.append((push.at, seconds, text, push, is_number))

    def owner(self, household, phone, push):
        """Returns the user of a message that is about no notification.

        Withdrawals name notifications. Others name nobody: after a move they may be for the former user or the new one,
        and the number tells."""
        for tag in push.withdrawn:
            if tag in household.notes:
                return household.notes[tag].user
        current = phone.user or phone.joining
        left = sorted(phone.left.items(), key=lambda item: -item[1])
        users = [user for user, at in left if push.at - at <= FORMER_SECONDS or current is None]
        users = [user for user in [current, *users] if user is not None and user != self.sender(household, push)]
        if len(users) < 2:
            return users[0] if users else current
        self.unnamed += 1

        def age(user):
            found = household.counts[user].age(push.badge, push.at, household.expected.get(user))
            return float("inf") if found is None else found

        # The number of the present user may have changed while the message was on its way.
        return next((user for user in users if age(user) <= WAY_SECONDS), None) or min(users, key=age)

    @staticmethod
    def sender(household, push):
        """Returns who has written the message that an alert shows. It is sent to the others."""
        if not is_conversation(push):
            return None
        return next((sender for sender, text, _ in reversed(household.messages) if text == push.text), None)

    def judge_time(self, household, user, push, note):
        seen_at = note.seen_at if note else household.read_at[user] if is_conversation(push) else None
        if seen_at is not None:
            self.claim(self.late, push, seen_at, "sent after it was seen")
        if note and note.stream and note.stream.is_open and household.streams.get(user) is note.stream:
            created = datetime.fromisoformat(note.created_at.replace("Z", "+00:00")).timestamp()
            waited = push.at + self.model.offset - created
            if waited < self.after_seconds - 0.02:
                self.problems.append(f"sent {waited:.3f} s after its creation to a user with a stream")

    def judge_number(self, household, user, push):
        self.number_count += 1
        if push.badge is None:
            self.wrong_numbers += 1
            self.problems.append(f"no number: {push}")
            return
        count = household.counts[user]
        age = count.age(push.badge, push.at, household.expected.get(user))
        if age is None:
            self.wrong_numbers += 1
            self.problems.append(f"the number {push.badge} is wrong, {user} had {count.values[-5:]}: {push}")
        else:
            text = f"the number {push.badge} is wrong, {user} has {count.now}"
            self.claim(self.old_numbers, push, push.at - age, text, is_number=True)

    def show(self, household, phone, user, push):
        """Changes what a phone shows. A push service that has not answered may have delivered the message."""
        key = phone.since, user, push.tag, push.text if is_conversation(push) else None
        if push.reply.status in (400, 413) and not push.reply.fate:
            phone.dropped.add(key)
            phone.is_badge_unknown = True
            if push.kind == "withdrawal":
                phone.screen -= set(push.withdrawn)
        if not push.is_accepted and not (push.reply.fate and self.model.choices.random() < 0.5):
            return
        if push.platform == "webpush" or push.kind == "withdrawal":
            phone.screen -= set(push.withdrawn)
        if push.kind != "withdrawal":
            phone.badge, phone.is_badge_unknown = push.badge, False
        if push.kind != "alert" or push.title == "Test":
            return
        phone.screen.add(push.tag)
        if is_conversation(push):
            phone.texts[user] = phone.since, push.text
        if earlier := phone.alerts.get(key):
            self.repeated[self.reason(earlier[-1], push)] += 1
        phone.alerts.setdefault(key, []).append(push)

    def reason(self, first, second):
        """Returns why a phone was sent an alert again: the service did not learn, or did not store, that the first was
        accepted."""
        if first.reply.fate:
            return "again without an answer"
        if self.is_unstored(first, second):
            return "again after a kill or a stop"
        ended = self.model.ended_at(first)
        ends = "" if ended is None else f", its connection ended {ended - first.at:.3f} s after it"
        kills = ", ".join(f"{kill - first.at:.3f} to {back - first.at:.3f} s" for kill, back in self.model.kills[-2:])
        self.problems.append(f"sent again after {second.at - first.at:.3f} s{ends}, the last kills were {kills}: {second}")
        return "again for no reason"

    def is_unstored(self, first, second):
        """Whether the service was ended soon after the answer to a message, and before a second one. The connection of the
        first had ended by the time the service was back, unless the service only stood still. It may have ended earlier: a service that waits for a processor
        stores the answer later."""
        ended = self.model.ended_at(first)
        ends = [end for end in self.model.kills if ended is not None and first.at <= ended <= end[1]]
        # A service that stands still keeps its connections.
        for kill, back in ends + [end for end in self.model.freezes if first.at <= end[1]]:
            if kill <= second.at:
                text = f"sent again, though the first was answered {kill - first.at:.3f} s before the service was ended"
                self.claims.append((first.at, kill - first.at, text, second, False))
                return True
        return False

    # MARK: The end

    def judge_claims(self):
        """Refuses what cannot have been on its way for so long."""
        for at, seconds, text, push, is_number in self.claims:
            if seconds > WAY_SECONDS + 3 * self.lag.near(at):
                self.wrong_numbers += is_number
                self.problems.append(f"{text}, {seconds:.3f} s ago (lag {self.lag.near(at):.3f} s): {push}")

    def judge_end(self, rows):
        """Compares all phones with the model; returns the number of notifications that each had to show.

        - rows: the rows of the outbox that wait, as (user, device, type, subject)."""
        self.judge_claims()
        for tag, pushes in self.waiting.items():
            self.problems.append(f"an alert about a notification that does not exist: {tag} {pushes}")
        return sum(self.judge_phone(household, phone, rows) for household in self.model.households
                   for phone in household.phones if phone.user is not None)

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
        if (user, phone.name, "badge", "") not in rows:
            self.judge_icon(household, phone)
        return len(due)

    def judge_icon(self, household, phone):
        """Checks the number on an icon. It is the total."""
        user, total = phone.user, household.counts[phone.user].now
        if phone.platform == "webpush" or phone.is_badge_unknown:
            return
        if phone.badge is None:
            # Nothing has arrived. That is right if nothing was to be sent.
            if household.changed_at[user] > phone.since:
                self.wrong_numbers += 1
                self.problems.append(f"{phone.name} of {user} got no number when the total became {total}")
        elif phone.badge != total:
            self.wrong_numbers += 1
            self.problems.append(f"{phone.name} of {user} shows {phone.badge}, not {total}")

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


def is_conversation(push):
    return push.kind == "alert" and push.tag.startswith("conversation:")
