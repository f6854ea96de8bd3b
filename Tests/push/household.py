"""A household of the model: users who share phones and a conversation, what they do, and what their phones show.

All steps of a household run one after the other, so its state between two steps is known exactly. During a step, and
while its request is repeated, both the state before and the state after are possible.
"""

import asyncio
import bisect
import secrets
import time
import uuid

from client import Client, Stream

PUSHED = {"HIGH", "URGENT"}
PLATFORMS = ["apns", "apns", "fcm", "fcm", "webpush"]
# The steps and how often each occurs.
STEPS = {
    "notify": 30, "message": 18, "see": 15, "read": 9, "stream": 8, "register": 5, "see_all": 3, "check": 3, "delete": 2,
    "move": 2, "sign_out": 2, "unsee": 1, "test": 1,
}


class Count:
    """The total of a user's badge over time."""

    def __init__(self):
        self.values = [0]
        # From when each value was possible, and until when; by the monotonic clock.
        self.since = [0.0]
        self.until = []

    @property
    def now(self):
        return self.values[-1]

    def change(self, value, start):
        """Notes that a step, which began at `start` and has just ended, changed the total."""
        if value != self.now:
            self.values.append(value)
            self.since.append(start)
            self.until.append(time.monotonic())

    def age(self, value, at, expecting=None):
        """Returns for how many seconds a value had been replaced by another at a time; None if it was not the total then
        or before.

        - expecting: the total after the step that runs now."""
        if value == expecting:
            return 0.0
        for index in range(bisect.bisect_right(self.since, at) - 1, -1, -1):
            if self.values[index] == value:
                return max(0.0, at - self.until[index]) if index < len(self.until) else 0.0
        return None


class Note:
    """A notification."""

    def __init__(self, identifier, user, priority, created, has_stream):
        self.id, self.user, self.priority, self.created = identifier, user, priority, created
        # The stream that its user had when it was created.
        self.stream = has_stream
        # By the monotonic clock: when the answer said that it was seen.
        self.seen_at = None
        self.was_seen = False


class Phone:
    """A device with its screen."""

    def __init__(self, platform, name):
        self.platform, self.name = platform, name
        self.token = self.browser = None
        # The user of the running registration, and when it began: a monotonic time.
        self.user = None
        self.since = 0.0
        # The user whose registration is under way: the service may know it before its answer arrives.
        self.joining = None
        # When the registration of a former user ended, and when a former token was replaced.
        self.left, self.replaced = {}, {}
        self.screen = set()
        # The number on the icon; None if the registration has brought no number yet. It is unknown after a message that the
        # push service has refused.
        self.badge, self.is_badge_unknown = None, False
        # The accepted alerts by registration and subject.
        self.alerts = {}
        self.texts = {}
        self.dropped = set()

    def clear(self):
        self.screen.clear()
        self.badge, self.is_badge_unknown = None, False

    def join(self, user, start):
        """Begins the registration of another user. The app clears its screen. The service knows of it before the answer
        arrives, or only then: so long, messages for the former user arrive too."""
        self.leave(at=float("inf"))
        self.joining, self.since = user, start
        self.left.pop(user, None)

    def joined(self):
        """Ends a registration: from now on, nothing may be sent to former users and to former tokens."""
        now = time.monotonic()
        self.left = {user: min(at, now) for user, at in self.left.items()}
        self.replaced = {token: min(at, now) for token, at in self.replaced.items()}
        self.user, self.joining = self.joining or self.user, None

    def leave(self, at=None):
        """Ends the registration: the app clears its screen."""
        if self.user is not None:
            self.left[self.user] = at or time.monotonic()
        self.user = None
        self.clear()


class Household:
    """Some users with their phones."""

    def __init__(self, model, number, choices):
        self.model, self.choices = model, choices
        self.name = f"h{number}"
        self.users = [f"{self.name}-{name}" for name in ("ada", "ben", "cleo")]
        self.bearers = {user: model.stage.user(user) for user in self.users}
        self.client = Client(model.stage.replicas, model.refusals)
        self.counts = {user: Count() for user in self.users}
        # Totals that the running step may lead to.
        self.expected = {}
        self.notes = {}
        self.unseen = {user: {} for user in self.users}
        self.seen = {user: [] for user in self.users}
        self.phones = [Phone(platform, f"{self.name}-{index}-{platform}") for index, platform in enumerate(PLATFORMS)]
        self.streams = {}
        self.conversation = str(uuid.UUID(int=choices.getrandbits(128), version=4))
        self.messages = []
        self.read_to = dict.fromkeys(self.users, 0)
        # When the answer said that all messages were read.
        self.read_at = dict.fromkeys(self.users)
        # When the total of a user changed last.
        self.changed_at = dict.fromkeys(self.users, 0.0)
        self.step_count = 0

    async def ask(self, user, method, path, body=None, **options):
        replica = self.choices.randrange(len(self.client.replicas))
        bearer = self.model.stage.backend if user is None else self.bearers[user]
        return await self.client.ask(bearer, method, path, body, replica, **options)

    async def play(self, steps):
        """Runs a number of random steps."""
        members = {"id": self.conversation, "memberIds": self.users[1:], "kind": "group"}
        await self.ask(self.users[0], "POST", "/v1/conversations", members, expect=(200, 201, 409))
        names, weights = list(STEPS), list(STEPS.values())
        for _ in range(steps):
            if time.monotonic() > self.model.ends_at:
                break
            step = self.choices.choices(names, weights)[0]
            self.model.steps[step] += 1
            await getattr(self, step)(self.choices.choice(self.users))
            self.expected = {}
            self.step_count += 1
            # Some are quick; some leave the time for messages to arrive.
            if self.choices.random() < 0.25:
                await asyncio.sleep(self.choices.choice([0.01, 0.1, 0.5, 1.5]))
        for stream in self.streams.values():
            stream.close()
        self.client.close_all()

    # MARK: Totals

    def unread(self, user):
        return sum(sender != user for sender, *_ in self.messages[self.read_to[user]:])

    def total(self, user):
        return len(self.unseen[user]) + self.unread(user)

    def changed(self, user, start):
        """Notes the total of a user after a step."""
        total = self.total(user)
        if total != self.counts[user].now:
            self.changed_at[user] = start
        self.counts[user].change(total, start)

    # MARK: Notifications

    async def notify(self, user):
        start = time.monotonic()
        priority = self.choices.choices(["HIGH", "URGENT", "NORMAL"], [6, 2, 2])[0]
        self.expected = {user: self.counts[user].now + 1}
        draft = {"userId": user, "category": "visit", "priority": priority, "title": "T", "message": "M"}
        stream = self.streams.get(user)
        answer = await self.ask(None, "POST", "/v1/notifications", draft, key=secrets.token_hex(12))
        note = Note(answer["notification"]["id"], user, priority, start, stream)
        note.created_at = answer["notification"]["createdAt"]
        self.notes[note.id] = note
        self.unseen[user][note.id] = note
        self.changed(user, start)
        if priority in PUSHED:
            self.model.judge.early(self, note)

    def mark_seen(self, user, notes, start):
        for note in notes:
            note.was_seen, note.seen_at = True, time.monotonic()
            del self.unseen[user][note.id]
        self.changed(user, start)

    async def see(self, user):
        if not self.unseen[user]:
            return
        note = self.choices.choice(list(self.unseen[user].values())[-3:])
        start, self.expected = time.monotonic(), {user: self.counts[user].now - 1}
        change = self.choices.choice([{"seen": True}, {"read": True}, {"archived": True}])
        await self.ask(user, "PATCH", f"/v1/notifications/{note.id}", change)
        self.mark_seen(user, [note], start)
        self.seen[user].append(note)

    async def see_all(self, user):
        if not self.unseen[user]:
            return
        newest = list(self.unseen[user])[-1]
        start, self.expected = time.monotonic(), {user: self.unread(user)}
        await self.ask(user, "PATCH", "/v1/notifications", {"upTo": newest, "set": {"seen": True}})
        self.mark_seen(user, list(self.unseen[user].values()), start)

    async def delete(self, user):
        if not self.unseen[user]:
            return
        note = self.choices.choice(list(self.unseen[user].values()))
        start, self.expected = time.monotonic(), {user: self.counts[user].now - 1}
        await self.ask(user, "DELETE", f"/v1/notifications/{note.id}", expect=(200, 204, 404))
        self.mark_seen(user, [note], start)

    async def unsee(self, user):
        if not self.seen[user]:
            return
        note = self.seen[user].pop()
        start, self.expected = time.monotonic(), {user: self.counts[user].now + 1}
        await self.ask(user, "PATCH", f"/v1/notifications/{note.id}", {"seen": False})
        note.seen_at = None
        self.unseen[user][note.id] = note
        # The bulk change of the model relies on the order.
        self.unseen[user] = dict(sorted(self.unseen[user].items()))
        self.changed(user, start)

    # MARK: Messages

    async def message(self, user):
        start, text = time.monotonic(), f"{self.name} says {len(self.messages)}"
        others = [other for other in self.users if other != user]
        self.expected = {other: self.counts[other].now + 1 for other in others}
        self.messages.append((user, text, start))
        self.read_at.update(dict.fromkeys(others))
        body = {"id": f"{self.name}-m{len(self.messages)}", "text": text}
        await self.ask(user, "POST", f"/v1/conversations/{self.conversation}/messages", body)
        for other in others:
            self.changed(other, start)

    async def read(self, user):
        if not self.unread(user):
            return
        start, position = time.monotonic(), len(self.messages)
        self.expected = {user: len(self.unseen[user])}
        path = f"/v1/conversations/{self.conversation}/read-position"
        await self.ask(user, "PUT", path, {"sequence": position})
        self.read_to[user] = position
        self.read_at[user] = time.monotonic()
        self.changed(user, start)

    # MARK: Streams

    async def stream(self, user):
        stream = self.streams.pop(user, None)
        if stream and stream.is_open:
            stream.close()
            return
        stream = Stream(self.choices.choice(self.client.replicas), self.bearers[user])
        if await stream.open():
            self.streams[user] = stream

    async def check(self, user):
        """Compares the badge with the model's total."""
        total = (await self.ask(user, "GET", "/v1/badges"))["total"]
        if total != self.counts[user].now:
            raise AssertionError(f"{user} has {total}, and the model {self.counts[user].now}")

    # MARK: Phones

    async def register(self, user):
        """Registers a phone that nobody uses, or the new token of one that is used."""
        phone = self.choices.choice(self.phones)
        if phone.user is None or phone.token is None or phone.token in self.model.dead or self.choices.random() < 0.3:
            self.model.give_token(self, phone)
        await self.put(phone, phone.user or user)

    async def put(self, phone, user):
        subscription = phone.browser and phone.browser.subscription(self.model.stage.providers.webpush.server.url)
        address = {"subscription": subscription} if subscription else {"token": phone.token}
        body = {"platform": phone.platform, **address}
        if phone.user != user:
            phone.join(user, time.monotonic())
        await self.ask(user, "PUT", f"/v1/devices/{phone.name}", body)
        phone.joined()
        if phone.token in self.model.dead:
            # The provider said so while the request ran, or before it did.
            phone.leave()

    async def move(self, user):
        """Another user signs in on a phone, without the former signing out."""
        used = [phone for phone in self.phones if phone.user not in (None, user) and phone.token not in self.model.dead]
        if used:
            await self.put(self.choices.choice(used), user)

    async def sign_out(self, user):
        used = [phone for phone in self.phones if phone.user == user]
        if not used:
            return
        phone = self.choices.choice(used)
        await self.ask(user, "DELETE", f"/v1/devices/{phone.name}", expect=(204, 404))
        phone.leave()

    async def test(self, user):
        used = [phone for phone in self.phones if phone.user == user]
        if used:
            await self.ask(user, "POST", f"/v1/devices/{self.choices.choice(used).name}/test", expect=(202, 404))


def figures(values):
    """Returns the number, the median, the 99th percentile and the maximum of seconds, as text."""
    if not values:
        return "0"
    ordered = sorted(values)
    p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    return f"{len(ordered)} (median {ordered[len(ordered) // 2] * 1000:.0f} ms, p99 {p99 * 1000:.0f} ms, max {ordered[-1] * 1000:.0f} ms)"
