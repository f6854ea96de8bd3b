"""Trials of the keys: of those that encrypt tokens of devices, and of those that sign requests."""

import threading

from accounts import pem
from cryptography.hazmat.primitives.asymmetric import ec
from harness.waiting import wait_until
from phones import Phone, expect, notify
from stage import new_key
from traces import new_token

UNREADABLE = "Devices are encrypted with a key that BELLHOP_PUSH_KEYS does not contain."


def rotation(stage):
    """The key that encrypts tokens is replaced as Docs/push.md tells. On PostgreSQL, users register and are notified
    meanwhile."""
    phones, new = [Phone(stage, "rita", platform) for platform in ("apns", "fcm", "webpush")], new_key()
    stage.restart(BELLHOP_PUSH_KEYS=f"{new},{stage.key}")
    notify(stage, "rita")
    for phone in phones:
        phone.wait(1)
    if stage.store.name == "sqlite":
        stage.stop()
        said = stage.command("push", "rotate")
        stage.replicas[0].start()
    else:
        said = rotate_under_way(stage)
    expect("Devices encrypted with the first key: " in said, "the command", said)
    stage.restart(BELLHOP_PUSH_KEYS=new)
    stage.key = new
    notify(stage, "rita")
    for phone in phones:
        expect(phone.wait(2)[1].is_accepted, "without the old key", phone.pushes)
    return said.strip()


def rotate_under_way(stage):
    """Rotates while a phone registers a new token, after the command has read the old one: the new token stays."""
    phone, said = Phone(stage, "rolf", "apns", name="zz-the-last-row"), []
    # The command waits for this lock when it has read all devices.
    with stage.store.session() as session:
        session.run("BEGIN; SELECT id FROM devices WHERE user_id = 'rita' FOR UPDATE")
        command = threading.Thread(target=lambda: said.append(stage.command("push", "rotate")))
        command.start()
        wait_until(stage.store.is_waiting_for_a_lock, "the command to wait for the lock")
        first = notify(stage, "rolf")
        phone.wait(1)
        phone.token = new_token()
        phone.register()
        session.run("COMMIT")
    command.join()
    second = notify(stage, "rolf")
    expect(phone.wait(1)[0].tag == second, "the new token gets the next message", first, stage.providers.pushes[-3:])
    return said[0]


def unreadable(stage):
    """The service starts with another key than the one that encrypted the tokens. It says so in one line, and sends the
    messages when the key is back. Of replicas, one with the key sends them."""
    new = new_key()
    phones = [Phone(stage, f"una-{number}", "apns") for number in range(4)]
    if len(stage.replicas) == 1:
        stage.restart(BELLHOP_PUSH_KEYS=new)
        # The sender says it after its start.
        wait_until(lambda: UNREADABLE in stage.replicas[0].log(), "the warning")
        log = stage.replicas[0].log()
        expect(log.count(UNREADABLE) == 1 and "Add the former key behind the new one" in log, "one line", log)
        tags = [notify(stage, phone.user) for phone in phones]
        # A message for another device shows that the sender has looked.
        Phone(stage, "uwe", "apns").wait_for(notify(stage, "uwe"))
        waiting = stage.outbox("user_id LIKE 'una-%' AND attempts = 0 AND state = 0")
        expect(len(waiting) == 4, "the messages wait", stage.outbox())
        stage.restart(BELLHOP_PUSH_KEYS=f"{new},{stage.key}")
    else:
        # The first replica is restarted with the new key. The other one cannot open the addresses that it encrypts.
        stage.replicas[1].stop()
        stage.replicas[1].environment["BELLHOP_PUSH_KEYS"] = f"{new},{stage.key}"
        stage.replicas[1].start()
        for phone in phones:
            phone.register(replica=1)
        tags = [notify(stage, phone.user, replica=0) for phone in phones]
    for phone, tag in zip(phones, tags):
        expect([push.tag for push in phone.wait(1)] == [tag], "it arrives once", phone.pushes)
    stage.restart(BELLHOP_PUSH_KEYS=f"{new},{stage.key}")
    return f"{len(phones)} messages waited for the key"


def wrong_accounts(stage):
    """The key of Apple's account is another one. The log says so in one line, the metric shows it, and the message
    waits."""
    replica, path = stage.replicas[0], stage.folder / "other.p8"
    path.write_bytes(pem(ec.generate_private_key(ec.SECP256R1())))
    stage.restart(BELLHOP_APNS_KEY=str(path))
    count = len(replica.log_path.read_text())
    phone = Phone(stage, "willy", "apns")
    stage.ask("POST", f"/v1/devices/{phone.name}/test", stage.user("willy"))
    wait_until(lambda: stage.outbox("user_id = 'willy' AND attempts = 1 AND leased_until = 0 AND next_at > tried_at + 50000000"),
               "the message to wait for an operator")
    lines = "".join(path.read_text() for path in stage.logs())[count:].splitlines()
    lines = [line for line in lines if "A push service does not accept the key or another setting. See Docs/push.md." in line]
    expect(len(lines) == 1 and "InvalidProviderToken" in lines[0] and "apns" in lines[0], "one line", lines)
    shown = [replica.request("GET", "/metrics", stage.backend)[1] for replica in stage.replicas]
    expect(any(b'bellhop_push_misconfigured{platform="apns"} 1' in text for text in shown), "the metric")
    expect(all("InvalidProviderToken" in problem for problem in stage.providers.problems), "problems", stage.providers.problems)
    stage.providers.apns.problems.clear()
    stage.restart(BELLHOP_APNS_KEY=str(stage.providers.accounts.apple_path))
    return lines[0].split("] ", 1)[-1][:100]
