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
import concurrent.futures
import signal
import sys
import tempfile
import time

import apns
import fcm
import keys
import late
import servers
from accounts import OTHER_TOPIC
from harness.waiting import Failed, wait_until
from http2 import Loop, Reply
from phones import CLOSE, RESET, SILENCE, Phone, Script, expect, last_replica, notify, see
from stage import STORES, Stage
from traces import MARK, PATTERNS, found_in, stream


# MARK: Trials. Each returns a line about its result and raises an error for a difference.


def roads(stage):
    """Alerts, messages of conversations and tests reach a phone of each kind."""
    phones = [Phone(stage, "ada", "apns"), Phone(stage, "ada", "fcm"), Phone(stage, "ada", "webpush")]
    other_token = MARK + "ab" * 22
    stage.providers.apns.topics[other_token] = OTHER_TOPIC
    other = Phone(stage, "ada", "apns", token=other_token, app=OTHER_TOPIC)
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
    # A phone that was sent no number in the last 30 s gets it at once, also if it rises by something that is not sent.
    quiet = [Phone(stage, "vince", platform) for platform in ("apns", "fcm")]
    unsent = notify(stage, "vince", "NORMAL")
    for phone in quiet:
        push = phone.wait(1)[0]
        expect((push.kind, push.badge) == ("badge", 1), "the number alone", push)
    stage.settle()
    see(stage, "vince", unsent)
    expect(len(stage.outbox("type = 'badge' AND user_id = 'vince'")) == 2, "a number for each phone, after a pause")
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
        ("apns", apns.error("BadDeviceToken"), "waits"),
        ("apns", apns.error("DeviceTokenNotForTopic"), "waits"),
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
        ("fcm", fcm.error("SENDER_ID_MISMATCH"), "waits"),
        ("fcm", fcm.error("INVALID_ARGUMENT", "message.token"), "removed"),
        ("fcm", fcm.error("INVALID_ARGUMENT"), "removed"),
        ("fcm", fcm.error("INVALID_ARGUMENT", "message.android.ttl"), "dropped"),
        ("fcm", fcm.error("QUOTA_EXCEEDED", retry_after=7), "repeated"),
        ("fcm", fcm.error("UNAVAILABLE", retry_after=7), "repeated"),
        ("fcm", fcm.error("INTERNAL"), "repeated"),
        ("webpush", Reply(404), "removed"),
        ("webpush", Reply(410), "removed"),
        ("webpush", Reply(413), "dropped"),
        ("webpush", Reply(403), "waits"),
        ("webpush", Reply(429, {"retry-after": "7"}), "repeated"),
        ("webpush", Reply(406, {"retry-after": "7"}), "repeated"),
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
    apple, phone = stage.providers.apns, Phone(stage, "rosa", "apns")
    notify(stage, "rosa")
    phone.wait(1)
    stage.loop.call(apple.expire)
    notify(stage, "rosa", replica=last_replica(stage))
    first, second = phone.wait(2)
    tokens = {push.request.headers["authorization"] for push in (first, second)}
    expect(second.is_accepted and len(tokens) == 2, "it is accepted with a new token", second)
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


def freeze(stage):
    """A push service freezes, or takes no more bytes, and its connection stays open. After a timeout without a byte,
    messages leave by a new connection."""
    script, platforms, fates = Script(stage), ("apns", "fcm", "webpush"), ("freeze", "unread", "window")
    for fate in fates:
        phones = [Phone(stage, f"frida-{fate}", platform) for platform in platforms]
        for phone in phones:
            script.replies[phone.token].append(Reply(fate=fate))
        notification = notify(stage, f"frida-{fate}")
        for phone in phones:
            first, second = phone.wait(2)[:2]
            expect(second.tag == notification and second.is_accepted, f"{phone.platform} gets it", second)
            expect(first.request.connection != second.request.connection, "by another connection", phone.pushes)
    return f"{len(fates) * len(platforms)} connections"


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
    files = [path for path in stage.store.folder.rglob("*") if path.is_file()]
    files += [*stage.logs(), stage.store.backup()]
    tokens = {push.device for push in stage.providers.pushes}
    found = [(path.name, pattern) for path in files for pattern in found_in(path, PATTERNS)]
    expect(not found, f"{len(found)} tokens were found", found[:5])
    # The search works: the database has the ids of the devices, and so has the backup.
    named = [path for path in files if found_in(path, {b"a-device-to-find"})]
    expect(len(named) >= 2, "the search finds what is there", named)
    return f"{len(tokens)} tokens in {len(files)} files: 0 found"


# Groups of trials, each with a service and push services of its own. They mostly wait, so the groups run together. The
# search for tokens is the last of each.
GROUPS = [
    [roads, withdrawals, moves, refusals, access, outage, traces],
    [connections, freeze, late.late_refusals, presence, keys.wrong_accounts, renewal, late.late_answers, late.seen_meanwhile, traces],
    [late.kill, keys.rotation, late.returned, traces],
    [keys.unreadable, late.frozen, traces],
]
# These need a second replica, or transactions that run at the same time.
ONLY_ON_POSTGRESQL = {late.seen_meanwhile, late.frozen}
NAMES = sorted({trial.__name__ for group in GROUPS for trial in group})


def run(options, store, group):
    """Runs a group of trials on a store; returns their number."""
    count, loop = 0, Loop()
    with tempfile.TemporaryDirectory() as folder, Stage(options.binary, folder, store, loop, BELLHOP_LOG_LEVEL="debug") as stage:
        for trial in group:
            if store == "sqlite" and trial in ONLY_ON_POSTGRESQL:
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
    parser.add_argument("--only", nargs="*", choices=NAMES)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        count = servers.check()
        groups = [[trial for trial in group if not options.only or trial.__name__ in options.only] for group in GROUPS]
        runs = [(store, group) for store in options.store for group in groups if group]
        with concurrent.futures.ThreadPoolExecutor(len(runs)) as pool:
            for done in [pool.submit(run, options, store, group) for store, group in runs]:
                count += done.result()
    except Failed as problem:
        print(f"push: {problem}", file=sys.stderr)
        return 1
    print(f"cases: {count}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
