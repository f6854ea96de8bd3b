"""Trials of attempts that nobody ended, and of answers that arrive when their attempt is over."""

import signal

import apns
import fcm
from harness.waiting import Failed, wait_until
from http2 import Reply
from phones import SILENCE, Phone, Script, expect, notify
from provider import Held
from traces import new_token


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
    phone.token = new_token()
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
    # The first refusals make new tokens. The others are late. Apple refuses all former tokens from now on: a message that
    # another replica sends again with one of them is refused too.
    stage.loop.call(stage.providers.apns.expire)
    for group in (phones[:2], phones[2:]):
        for phone in group:
            stage.loop.call(helds[phone].release)
        for phone in group:
            expect(phone.wait(2)[1].is_accepted, "it is accepted with the new token", phone.pushes)
    for platform in ("apns", "fcm"):
        refused, accepted = ({phone.pushes[turn].request.headers["authorization"] for phone in phones
                              if phone.platform == platform} for turn in range(2))
        tokens = accepted - refused
        expect(len(tokens) <= len(stage.replicas), f"one new token for {platform}", tokens)
    stage.restart(BELLHOP_PUSH_TIMEOUT_SECONDS="2")
    return f"{len(phones)} late refusals"


def late_answers(stage):
    """The provider answers after the timeout, when the message is sent again: the late answer has no effect."""
    script = Script(stage)
    phones = [Phone(stage, "lena", platform) for platform in ("apns", "fcm", "webpush")]
    gone = {"apns": apns.error("BadDeviceToken"), "fcm": fcm.error("UNREGISTERED"), "webpush": Reply(410)}
    helds = [stage.loop.call(lambda phone=phone: Held(gone[phone.platform])) for phone in phones]
    for phone, held in zip(phones, helds):
        script.replies[phone.token].append(held)
    notify(stage, "lena")
    for phone in phones:
        phone.wait(1)
    # Afterwards the next attempts may run already, with other leases.
    leases = {lease for *_, lease in stage.outbox("user_id = 'lena'")}
    wait_until(lambda: not any(lease in leases for *_, lease in stage.outbox("user_id = 'lena' AND leased_until > 0")),
               lambda: f"the timeouts: {stage.outbox()}")
    for held in helds:
        stage.loop.call(held.release)
    for phone in phones:
        expect(phone.wait(2)[1].is_accepted and phone.is_registered, "it is sent again", phone.pushes)
    stage.settle()
    expect(all(len(phone.pushes) == 2 for phone in phones), "and once only")
    return f"{len(phones)} answers after the timeout"


def frozen(stage):
    """A replica stands still while it waits for an answer. Its lease ends, and the other one sends the message. When the
    first one goes on, the answer to its request has no effect."""
    script, phones = Script(stage), [Phone(stage, f"fred-{number}", "apns") for number in range(4)]
    helds = {phone: stage.loop.call(lambda: Held(apns.error("ServiceUnavailable"))) for phone in phones}
    for phone in phones:
        script.replies[phone.token].append(helds[phone])
        notify(stage, phone.user)
    for phone in phones:
        phone.wait(1)
    stage.replicas[0].process.send_signal(signal.SIGSTOP)
    try:
        # The messages of the other replica end with its timeout. The messages of the first one end with their leases.
        for phone in phones:
            expect(phone.wait(2)[1].is_accepted, "the other replica sends it", phone.pushes)
        wait_until(lambda: len(stage.outbox("user_id LIKE 'fred-%' AND state = 1")) == 4, lambda: f"{stage.outbox()}")
    finally:
        stage.replicas[0].process.send_signal(signal.SIGCONT)
    for phone in phones:
        stage.loop.call(helds[phone].release)
    # It refuses requests until it knows the latest revocations.
    wait_until(stage.replicas[0].is_ready, "the replica to know the revocations")
    mark = notify(stage, "fred-0")
    pushes = phones[0].wait(3)
    stage.settle()
    if [len(phone.pushes) for phone in phones] != [3, 2, 2, 2] or pushes[2].tag != mark:
        raise Failed(f"the late answers have an effect: {[phone.pushes for phone in phones]}")
    return f"{len(phones)} messages of a replica that stood still"


def seen_meanwhile(stage):
    """A message is seen at the moment when its second attempt begins. A browser then gets nothing: its withdrawal waits
    for the next alert."""
    script, phone = Script(stage), Phone(stage, "sven", "webpush")
    script.replies[phone.token].append(Reply(503, {"retry-after": "1"}))
    notification = notify(stage, "sven")
    phone.wait(1)
    wait_until(lambda: stage.outbox("user_id = 'sven' AND attempts = 1 AND leased_until = 0"), "the result to be stored")
    with stage.store.session() as session:
        # What the transaction of seeing does to the row. It ends after the sender has found the lane due.
        session.run(f"""BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('user:default:sven', 0));
            UPDATE outbox SET type = 'withdrawal', slot = 'withdrawal {notification}', version = version + 1,
            due_at = due_at + 2592000000000 WHERE subject = '{notification}'""")
        wait_until(stage.store.is_waiting_for_a_lock, "the sender to begin the attempt")
        session.run("COMMIT")
    mark = notify(stage, "sven")
    push = phone.wait(2)[1]
    expect((push.tag, push.withdrawn) == (mark, (notification,)), "the next alert takes the withdrawal along", phone.pushes)
    return "a browser"
