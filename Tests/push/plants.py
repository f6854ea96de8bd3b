"""Defects that a run of the model plants, one after the other, to see that its judgement finds each of them."""

import time

# What the judgement must say about each.
SAYINGS = {
    "a wrong number": "is wrong",
    "a lost alert": "lost",
    "an alert twice": "sent again",
    "a missing withdrawal": "not withdrawn",
    "an alert after it was seen": "sent after it was seen",
    "an alert for a former user": "who had signed out",
    "a token in the log": "tokens are in",
}
# Each defect is planted in one of so many messages that can have it. Many lost alerts are seen before the end, and then
# they are no defect.
EVERY = 4
# Later than any message is on its way on a machine that is not busy.
LATE_SECONDS = 4


class Plants:
    """Falsifies messages between the push services and the judgement."""

    def __init__(self, judge):
        self.judge = judge
        self.counts = dict.fromkeys(SAYINGS, 0)
        self.turns = dict.fromkeys(SAYINGS, 0)
        self.held = []

    def is_turn(self, defect):
        self.turns[defect] += 1
        if self.turns[defect] % EVERY != 1:
            return False
        self.counts[defect] += 1
        return True

    def arrived(self, push):
        """Passes a message on, with or without a defect."""
        self.release()
        if not push.is_accepted:
            return self.judge.arrived(push)
        household, phone = self.judge.model.tokens[push.device]
        is_note = push.kind == "alert" and push.tag in household.notes
        if push.kind == "withdrawal" and push.withdrawn[0] in phone.screen and self.is_turn("a missing withdrawal"):
            return None
        if is_note and self.is_turn("a lost alert"):
            return None
        if is_note and self.is_turn("an alert twice"):
            self.judge.arrived(push)
        elif push.kind == "badge" and self.is_turn("a wrong number"):
            push = push._replace(badge=self.wrong(household, phone, push))
        elif is_note:
            self.held.append((push, household, phone))
        return self.judge.arrived(push)

    @property
    def late_seconds(self):
        """How late a message must be that cannot have been on its way."""
        return LATE_SECONDS + 4 * self.judge.lag.longest

    def wrong(self, household, phone, push):
        """Returns the next higher number that the user's total has not been for a while."""
        count, number = household.counts.get(phone.user or phone.joining), push.badge + 1
        while count and (age := count.age(number, push.at)) is not None and age < self.late_seconds:
            number += 1
        return number

    def release(self):
        """Sends alerts that are long seen, or whose user has long signed out, once more."""
        now, rest = time.monotonic(), []
        late_at = now - self.late_seconds
        for push, household, phone in self.held:
            note = household.notes[push.tag]
            late = push._replace(request=push.request._replace(at=now))
            if note.seen_at and note.seen_at < late_at and phone.user == note.user and phone.token == push.device:
                if self.is_turn("an alert after it was seen"):
                    self.judge.arrived(late)
            elif phone.left.get(note.user, now) < late_at:
                if self.is_turn("an alert for a former user"):
                    self.judge.arrived(late)
            else:
                rest.append((push, household, phone))
        self.held = rest

    def write_token(self, log, token):
        """Writes a token to the log of the service."""
        self.counts["a token in the log"] += 1
        with log.open("a", encoding="utf-8") as file:
            file.write(f"planted: {token}\n")

    def missed(self, problems):
        """Returns the defects that were planted nowhere, or that no problem names."""
        return [defect for defect, saying in SAYINGS.items()
                if not self.counts[defect] or not any(saying in problem for problem in problems)]
