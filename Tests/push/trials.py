#!/usr/bin/env python3
"""Runs the service against servers that act as APNs, FCM and a browser's push service, with TLS and HTTP/2. On SQLite,
and as two replicas on PostgreSQL:

  - every road works: alerts, numbers, withdrawals and tests reach phones and browsers, with what the services demand,
  - every error of a push service does what Docs/push.md says,
  - a kill loses nothing, and keys can be replaced,
  - no token of a device is in the database, its log, a backup or the logs of the service.

    Tests/push/trials.py --binary .build/debug/bellhop [--store sqlite] [--only roads …]

Needs the Python packages of the stage `tools`, and PostgreSQL.
"""

import argparse
import collections
import pathlib
import secrets
import signal
import sys
import tempfile
import time
import traceback

import apns
import fcm
import servers
from accounts import OTHER_TOPIC
from harness.waiting import Failed, wait_until
from http2 import Loop, Reply
from provider import Held
from stage import STORES, Stage, new_key
from traces import found_in, patterns_of, stream

# Replies that say nothing: the client cannot know whether the message was accepted.
RESET, CLOSE, SILENCE = (Reply(fate=fate) for fate in ("reset", "close", "silence"))


class Phone:
    """A device of a user, registered at a stage."""

    def __init__(self, stage, user, platform, name=None, token=None, app=None):
        self.stage, self.user, self.platform = stage, user, platform
        self.name = name or f"{platform}-{secrets.token_hex(4)}"
        self.browser = stage.providers.webpush.subscribe() if platform == "webpush" else None
        self.token = self.browser.path if self.browser else token or secrets.token_hex(32)
        self.app = app
        self.register()

    def register(self):
        body = {"platform": self.platform, "token": self.token}
        if self.browser:
            subscription = self.browser.subscription(self.stage.providers.webpush.server.url)
            body = {"platform": self.platform, "subscription": subscription}
        if self.app:
            body |= {"app": self.app, "environment": "sandbox"}
        return self.stage.ask("PUT", f"/v1/devices/{self.name}", self.stage.user(self.user), body)

    @property
    def pushes(self):
        """The messages that arrived for it."""
        return [push for push in self.stage.providers.pushes if push.device == self.token]

    @property
    def is_registered(self):
        items = self.stage.ask("GET", "/v1/devices", self.stage.user(self.user))["items"]
        return self.name in [item["id"] for item in items]

    def wait(self, count):
        """Waits until this number of messages has arrived; returns them."""
        wait_until(lambda: len(self.pushes) >= count, lambda: f"{count} messages for {self.name}, not {self.pushes}")
        return self.pushes


class Script:
    """The replies to the next messages for each device. Later ones are accepted."""

    def __init__(self, stage):
        self.replies = collections.defaultdict(collections.deque)
        for provider in stage.providers.all:
            provider.script = self.reply

    def reply(self, push):
        waiting = self.replies.get(push.device)
        return waiting.popleft() if waiting else None


def notify(stage, user, priority="HIGH", title="T", replica=0):
    """Creates a notification; returns its id."""
    draft = {"userId": user, "category": "visit", "priority": priority, "title": title, "message": "M"}
    return stage.ask("POST", "/v1/notifications", stage.backend, draft, replica)["notification"]["id"]


def see(stage, user, notification, replica=0):
    stage.ask("PATCH", f"/v1/notifications/{notification}", stage.user(user), {"seen": True}, replica)


def expect(condition, what, *shown):
    if not condition:
        raise Failed(f"{what}: {shown}" if shown else what)


def last_replica(stage):
    return len(stage.replicas) - 1


# MARK: Trials. Each returns a line about its result and raises an error for a difference.


def roads(stage):
    """Alerts, messages of conversations and tests reach a phone of each kind."""
    phones = [Phone(stage, "ada", "apns"), Phone(stage, "ada", "fcm"), Phone(stage, "ada", "webpush")]
    stage.providers.apns.topics["ab" * 32] = OTHER_TOPIC
    other = Phone(stage, "ada", "apns", token="ab" * 32, app=OTHER_TOPIC)
    notification = notify(stage, "ada", "URGENT", title="Zoë – “é”")
    for phone in [*phones, other]:
        push = phone.wait(1)[0]
        expect((push.kind, push.tag, push.badge) == ("alert", notification, 1), "an alert", push)
        expect((push.title, push.text) == ("Zoë – “é”", "M"), "its text", push)
        expect(push.data["id"] == notification, "its data", push)
    headers = phones[0].pushes[0].request.headers
    expect(headers["apns-priority"] == "10" and headers["apns-collapse-id"] == notification, "headers", headers)
    expect(phones[2].pushes[0].request.headers["urgency"] == "high", "urgency")
    conversation = stage.ask("POST", "/v1/conversations", stage.user("ben"), {"memberIds": ["ada"]})["id"]
    stage.ask("POST", f"/v1/conversations/{conversation}/messages", stage.user("ben"), {"text": "Hello"}, last_replica(stage))
    for phone in phones:
        push = phone.wait(2)[1]
        expect((push.kind, push.badge, push.text) == ("alert", 2, "Hello"), "a message", push)
        stage.ask("POST", f"/v1/devices/{phone.name}/test", stage.user("ada"))
        expect(phone.wait(3)[2].title == "Test", "a test")
    return f"{len(stage.providers.pushes)} messages"


def withdrawals(stage):
    """What was seen is removed from phones at once, and from a browser by its next alert. Numbers follow."""
    phones = [Phone(stage, "vera", platform) for platform in ("apns", "fcm", "webpush")]
    first = notify(stage, "vera")
    for phone in phones:
        phone.wait(1)
    stage.settle()
    see(stage, "vera", first, last_replica(stage))
    for phone in phones[:2]:
        push = phone.wait(2)[1]
        expect((push.kind, push.withdrawn, push.badge) == ("withdrawal", (first,), 0), "a withdrawal", push)
    expect(len(stage.outbox("type = 'badge' AND user_id = 'vera'")) == 2, "a number for each phone, after a pause")
    second = notify(stage, "vera")
    push = phones[2].wait(2)[1]
    expect((push.tag, push.withdrawn) == (second, (first,)), "the browser's next alert withdraws", push)
    # A phone that was sent no number in the last 30 s gets it at once.
    quiet = [Phone(stage, "vince", platform) for platform in ("apns", "fcm")]
    see(stage, "vince", notify(stage, "vince", "NORMAL"))
    for phone in quiet:
        push = phone.wait(1)[0]
        expect((push.kind, push.badge) == ("badge", 0), "the number alone", push)
    return "2 phones and a browser"


def moves(stage):
    """A token belongs to the user who registered it last."""
    phone = Phone(stage, "mia", "apns")
    secret = notify(stage, "mia")
    phone.wait(1)
    moved = Phone(stage, "noah", "apns", token=phone.token)
    expect(not phone.is_registered, "the former user's device")
    notify(stage, "mia")
    see(stage, "mia", secret)
    own = notify(stage, "noah", replica=last_replica(stage))
    pushes = moved.wait(2)
    stage.settle()
    expect(len(moved.pushes) == 2 and pushes[1].tag == own, "only the new user's messages arrive", pushes)
    stage.ask("DELETE", f"/v1/devices/{moved.name}", stage.user("noah"))
    notify(stage, "noah")
    stage.settle()
    expect(len(moved.pushes) == 2, "nothing arrives after signing out")
    return "one phone, two users"


# The replies of the services, and what each does: "removed" removes the device, "dropped" the message, "repeated" sends it
# again, and "waits" sends it again when an operator may have mended a setting.
def errors():
    old = int(time.time() - 3600) * 1000
    return [
        ("apns", apns.error("Unregistered", timestamp=int(time.time() + 60) * 1000), "removed"),
        ("apns", apns.error("ExpiredToken", timestamp=int(time.time() + 60) * 1000), "removed"),
        ("apns", apns.error("Unregistered", timestamp=old), "repeated"),
        ("apns", apns.error("BadDeviceToken"), "removed"),
        ("apns", apns.error("DeviceTokenNotForTopic"), "removed"),
        ("apns", apns.error("PayloadTooLarge"), "dropped"),
        ("apns", apns.error("BadCollapseId"), "dropped"),
        ("apns", apns.error("BadPriority"), "dropped"),
        ("apns", apns.error("TopicDisallowed"), "waits"),
        ("apns", apns.error("InvalidProviderToken"), "waits"),
        ("apns", apns.error("TooManyRequests", retry_after=7), "repeated"),
        ("apns", apns.error("TooManyProviderTokenUpdates"), "repeated"),
        ("apns", apns.error("InternalServerError"), "repeated"),
        ("apns", apns.error("ServiceUnavailable", retry_after=7), "repeated"),
        ("apns", apns.error("Shutdown"), "repeated"),
        ("fcm", fcm.error("UNREGISTERED"), "removed"),
        ("fcm", fcm.error("SENDER_ID_MISMATCH"), "removed"),
        ("fcm", fcm.error("INVALID_ARGUMENT", "message.token"), "removed"),
        ("fcm", fcm.error("INVALID_ARGUMENT"), "dropped"),
        ("fcm", fcm.error("QUOTA_EXCEEDED", retry_after=7), "repeated"),
        ("fcm", fcm.error("UNAVAILABLE", retry_after=7), "repeated"),
        ("fcm", fcm.error("INTERNAL"), "repeated"),
        ("webpush", Reply(404), "removed"),
        ("webpush", Reply(410), "removed"),
        ("webpush", Reply(413), "dropped"),
        ("webpush", Reply(403), "waits"),
        ("webpush", Reply(429, {"retry-after": "7"}), "repeated"),
        ("webpush", Reply(500), "repeated"),
        ("webpush", Reply(503, {"retry-after": "7"}), "repeated"),
        *((platform, reply, "repeated") for platform in ("apns", "fcm", "webpush") for reply in (RESET, CLOSE, SILENCE)),
    ]


def refusals(stage):
    """Every error of a push service, for a user of its own each."""
    script, cases = Script(stage), []
    for number, (platform, reply, effect) in enumerate(errors()):
        phone = Phone(stage, f"case-{number}", platform)
        script.replies[phone.token].append(reply)
        cases.append((phone, reply, effect, notify(stage, phone.user, replica=number % len(stage.replicas))))
    for phone, reply, effect, notification in cases:
        try:
            check_effect(stage, phone, reply, effect, notification)
        except Failed as problem:
            raise Failed(f"{phone.platform}, {reply}, {effect}: {problem}") from None
    logs = "".join(path.read_text(errors="replace") for path in stage.logs())
    expect("A push service does not accept the key" in logs, "the log names the operator's mistake")
    return f"{len(cases)} errors"


def check_effect(stage, phone, reply, effect, notification):
    condition = f"user_id = '{phone.user}' AND type = 'notification'"
    phone.wait(1)
    if effect == "removed":
        wait_until(lambda: not phone.is_registered, "the device to be removed")
        expect(not stage.outbox(condition), "messages of a removed device")
    elif effect == "dropped":
        wait_until(lambda: not stage.outbox(condition), "the message to be dropped")
        expect(phone.is_registered and len(phone.pushes) == 1, "the device stays", phone.pushes)
    elif effect == "waits":
        wait_until(lambda: stage.outbox(f"{condition} AND leased_until = 0"), "the result to be stored")
        seconds = "(next_at - tried_at) / 1000000 >= 59"
        expect(stage.outbox(f"{condition} AND state = 0 AND {seconds}"), "it waits for a minute", stage.outbox(condition))
        expect(phone.is_registered, "the device stays")
    else:
        first, second = phone.wait(2)[:2]
        expect(second.tag == notification and second.is_accepted, "it is repeated", second)
        asked = float(reply.headers.get("retry-after", 0))
        expect(second.at - first.at >= asked, f"not before {asked} s have passed", second.at - first.at)
        expect(phone.is_registered, "the device stays")


def access(stage):
    """FCM's access tokens: refused, expired and unavailable ones."""
    google, script, phones = stage.providers.fcm, Script(stage), [Phone(stage, f"otto-{n}", "fcm") for n in range(4)]
    notify(stage, "otto-0")
    phones[0].wait(1)
    # Google revokes the token.
    stage.loop.call(google.access.clear)
    replies = collections.deque([Reply(503, {"retry-after": "3"}), Reply(200, {}, b"nonsense"), CLOSE])
    google.access_script = lambda: replies.popleft() if replies else None
    script.replies[phones[0].token].append(fcm.error("UNAUTHENTICATED"))
    google.problems.clear()
    for number in range(4):
        notify(stage, f"otto-{number}", replica=number % len(stage.replicas))
    for phone, count in zip(phones, (2, 1, 1, 1)):
        wait_until(lambda phone=phone, count=count: sum(push.is_accepted for push in phone.pushes) >= count,
                   lambda: f"the messages after the trouble: {replies} {google.problems} {stage.outbox()}")
    google.access_script = None
    # The revoked token was used by each replica until Google refused it.
    expect(all("UNAUTHENTICATED" in problem for problem in google.problems), "problems", google.problems)
    google.problems.clear()
    return f"{google.asked} tokens asked for"


def renewal(stage):
    """Apple says that the provider token is too old: the next attempt has a new one."""
    apple, phone, script = stage.providers.apns, Phone(stage, "rosa", "apns"), Script(stage)
    expired = apns.error("ExpiredProviderToken")
    script.replies[phone.token].append(expired)
    # Apple's clock moves with it. A new token so early is no mistake then.
    stage.loop.call(apple.tokens.clear)
    notify(stage, "rosa")
    phone.wait(1)
    stage.loop.call(apple.tokens.clear)
    first, second = phone.wait(2)[:2]
    expect(second.is_accepted, "it is accepted", second)
    tokens = {push.request.headers["authorization"] for push in (first, second)}
    if len(stage.replicas) == 1:
        expect(len(tokens) == 2, "a new token")
    return "one new token"


def connections(stage):
    """Many messages share one connection, and survive the end of it."""
    phones = [Phone(stage, f"crowd-{number}", platform) for number in range(20) for platform in ("apns", "fcm", "webpush")]
    for turn in range(3):
        for number in range(20):
            notify(stage, f"crowd-{number}", replica=number % len(stage.replicas))
        if turn == 1:
            for server in stage.providers.servers:
                stage.loop.call(server.retire)
    for phone in phones:
        wait_until(lambda phone=phone: len({push.tag for push in phone.pushes if push.is_accepted}) >= 3,
                   lambda phone=phone: f"three messages for {phone.name}: {phone.pushes}")
    used = {(push.platform, push.request.connection) for phone in phones for push in phone.pushes}
    # Before and after the retirement, for each replica. One that was being opened then may fail.
    expect(len(used) <= 3 * 3 * len(stage.replicas), "few connections", used)
    return f"{sum(len(phone.pushes) for phone in phones)} messages over {len(used)} connections"


def outage(stage):
    """All push services are down for a while."""
    phones = [Phone(stage, "olga", platform) for platform in ("apns", "fcm", "webpush")]
    stage.loop.run(stage.providers.stop())
    notification = notify(stage, "olga")
    wait_until(lambda: len(stage.outbox("user_id = 'olga' AND attempts > 0 AND leased_until = 0")) == 3, "failed attempts")
    seen = notify(stage, "olga")
    see(stage, "olga", seen)
    stage.loop.run(stage.providers.start())
    for phone in phones:
        pushes = phone.wait(1)
        expect(pushes[0].tag == notification and pushes[0].badge == 1, "the unseen one", pushes)
    stage.settle()
    expect(not any(push.tag == seen for phone in phones for push in phone.pushes), "nothing after it was seen")
    return "3 phones"


def kill(stage):
    """kill -9 while messages are on their way. They are sent again: by the next process, or by the other replica when
    the leases of the killed one have ended."""
    script, phones = Script(stage), [Phone(stage, f"kim-{n}", platform) for n in range(5) for platform in ("apns", "fcm", "webpush")]
    for phone in phones:
        script.replies[phone.token].append(SILENCE)
    for number in range(5):
        notify(stage, f"kim-{number}", replica=number % len(stage.replicas))
    for phone in phones:
        phone.wait(1)
    victims = stage.replicas[:1]
    for victim in victims:
        victim.kill()
    if len(stage.replicas) == 1:
        stage.replicas[0].start()
    for phone in phones:
        pushes = phone.wait(2)
        expect(pushes[1].is_accepted, "it is sent again", pushes)
    for victim in victims[: len(stage.replicas) - 1]:
        victim.start()
    stage.settle()
    expect(all(len(phone.pushes) == 2 for phone in phones), "and once only")
    return f"{len(phones)} messages, each sent again"


def returned(stage):
    """The provider says that the old token of a phone is gone, after the phone has registered a new one."""
    script, phone = Script(stage), Phone(stage, "rene", "apns")
    held = stage.loop.call(lambda: Held(apns.error("BadDeviceToken")))
    script.replies[phone.token].append(held)
    first, old = notify(stage, "rene"), phone.token
    phone.wait(1)
    phone.token = secrets.token_hex(32)
    phone.register()
    second = notify(stage, "rene")
    stage.loop.call(held.release)
    wait_until(lambda: len(phone.pushes) == 2, lambda: f"both at the new token: {phone.pushes} {stage.outbox()}")
    expect({push.tag for push in phone.pushes} == {first, second} and phone.is_registered, "both", phone.pushes, old)
    return "both messages arrive at the new token"


def late_refusals(stage):
    """Apple and Google refuse a token late, when the service has a newer one. It keeps the newer one."""
    # No answer that is held back counts as missing.
    stage.restart(BELLHOP_PUSH_TIMEOUT_SECONDS="60")
    script, phones = Script(stage), [Phone(stage, f"lars-{n}", platform) for n in range(3) for platform in ("apns", "fcm")]
    helds = {phone: stage.loop.call(lambda phone=phone: Held(
        apns.error("ExpiredProviderToken") if phone.platform == "apns" else fcm.error("UNAUTHENTICATED")))
        for phone in phones}
    for phone in phones:
        script.replies[phone.token].append(helds[phone])
    for number in range(3):
        notify(stage, f"lars-{number}")
    for phone in phones:
        phone.wait(1)
    # Apple's clock moves with the first refusal: a new token is no mistake then, but a second one is.
    stage.loop.call(stage.providers.apns.tokens.clear)
    for number in range(0, 6, 2):
        for phone in phones[number : number + 2]:
            stage.loop.call(helds[phone].release)
        for phone in phones[number : number + 2]:
            expect(phone.wait(2)[1].is_accepted, "it is accepted with the new token", phone.pushes)
    for platform in ("apns", "fcm"):
        tokens = {phone.pushes[1].request.headers["authorization"] for phone in phones if phone.platform == platform}
        expect(len(tokens) <= len(stage.replicas), f"one new token for {platform}", tokens)
    stage.restart(BELLHOP_PUSH_TIMEOUT_SECONDS="2")
    return f"{len(phones)} late refusals"


def rotation(stage):
    """The key that encrypts tokens is replaced while devices are registered, as Docs/push.md tells."""
    phones, new = [Phone(stage, "rita", platform) for platform in ("apns", "fcm", "webpush")], new_key()
    stage.restart(BELLHOP_PUSH_KEYS=f"{new},{stage.key}")
    notify(stage, "rita")
    for phone in phones:
        phone.wait(1)
    if stage.store.name == "sqlite":
        stage.stop()
    said = stage.command("push", "rotate")
    expect("Devices encrypted with the first key: " in said, "the command", said)
    if stage.store.name == "sqlite":
        stage.replicas[0].start()
    stage.restart(BELLHOP_PUSH_KEYS=new)
    stage.key = new
    notify(stage, "rita")
    for phone in phones:
        expect(phone.wait(2)[1].is_accepted, "without the old key", phone.pushes)
    return said.strip()


def presence(stage):
    """A user with a stream on any replica has time to see a notification, which then is not sent."""
    stage.restart(BELLHOP_PUSH_AFTER_SECONDS="3600")
    here, away = Phone(stage, "pia", "apns"), Phone(stage, "paul", "apns")
    with stream(stage.replicas[-1], stage.user("pia")):
        first = notify(stage, "pia")
        notify(stage, "paul")
        expect(away.wait(1)[0].kind == "alert", "the user without a stream")
        wait_until(lambda: stage.outbox("user_id = 'pia' AND due_at >= created_at + 3600000000"), "it to be postponed")
        see(stage, "pia", first)
        stage.settle()
    expect(not any(push.kind == "alert" for push in here.pushes), "nothing that was seen", here.pushes)
    stage.restart(BELLHOP_PUSH_AFTER_SECONDS="0")
    return "a stream on another replica" if len(stage.replicas) > 1 else "a stream"


def traces(stage):
    """No token is in the database, its log, a backup or a log of the service."""
    Phone(stage, "tess", "apns", name="a-device-to-find")
    files = [path for path in pathlib.Path(stage.store.folder).rglob("*") if path.is_file()]
    files += [*stage.logs(), stage.store.backup()]
    tokens = {push.device for push in stage.providers.pushes}
    patterns = patterns_of(tokens, stage.providers.webpush.browsers)
    found = [(path.name, pattern) for path in files for pattern in found_in(path, patterns)]
    expect(not found, f"{len(found)} tokens were found", found[:5])
    # The search works: the database has the ids of the devices, and so has the backup.
    named = [path for path in files if found_in(path, {b"a-device-to-find"})]
    expect(len(named) >= 2, "the search finds what is there", named)
    return f"{len(tokens)} tokens in {len(files)} files: 0 found"


TRIALS = [
    roads, withdrawals, moves, refusals, access, renewal, connections, outage, returned, late_refusals, kill, rotation,
    presence, traces,
]


def run(options, store, loop, folder):
    """Runs the trials on a store; returns their number."""
    count = 0
    with Stage(options.binary, folder, store, loop, BELLHOP_LOG_LEVEL="debug") as stage:
        for trial in TRIALS:
            if options.only and trial.__name__ not in options.only:
                continue
            start = time.monotonic()
            for provider in stage.providers.all:
                provider.script = None
            try:
                line = trial(stage)
                expect(not stage.providers.problems, "what the push services refuse", stage.providers.problems[:5])
            except Failed as problem:
                raise Failed(f"{store}, {trial.__name__}: {problem}") from None
            print(f"  {store}: {trial.__name__}: {line} ({time.monotonic() - start:.1f} s)", flush=True)
            count += 1
        stage.stop()
    return count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--store", choices=STORES, nargs="*", default=list(STORES))
    parser.add_argument("--only", nargs="*", choices=[trial.__name__ for trial in TRIALS])
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    loop = Loop()
    try:
        count = servers.check()
        for store in options.store:
            with tempfile.TemporaryDirectory() as folder:
                count += run(options, store, loop, folder)
    except Failed as problem:
        traceback.print_exc()
        print(f"push: {problem}", file=sys.stderr)
        return 1
    print(f"cases: {count}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
