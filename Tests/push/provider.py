"""What the servers that act as push services have in common: they check a request, record it, and answer as scripted."""

import asyncio
import json
import time
from typing import NamedTuple

import jwt
from http2 import Reply, Server

# Bytes of a payload: the limit of all three services.
PAYLOAD_BYTES_MAX = 4096


class Push(NamedTuple):
    """A push message as it arrived at a provider, whose checks it passed."""

    platform: str
    # The token, or the path of the subscription.
    device: str
    # "alert", "badge" or "withdrawal".
    kind: str
    tag: str | None
    badge: int | None
    title: str | None
    text: str | None
    withdrawn: tuple
    data: dict
    request: object
    reply: Reply = Reply()

    def __repr__(self):
        shown = {name: getattr(self, name) for name in self._fields if name not in ("request", "reply", "data", "device")}
        return f"<{shown} to {self.device[:20]}, answered {self.reply.fate or self.reply.status}>"

    @property
    def at(self):
        return self.request.at

    @property
    def is_accepted(self):
        return not self.reply.fate and self.reply.status < 300


class Refusal(Exception):
    """The provider refuses a request that breaks its rules."""

    def __init__(self, status, reason):
        super().__init__(f"{status} {reason}")
        self.status = status
        self.reason = reason


class Held:
    """A reply that a script holds back until `release`, which is called on the loop."""

    def __init__(self, reply):
        self.reply = reply
        self.event = asyncio.Event()

    def release(self):
        self.event.set()

    async def later(self):
        await self.event.wait()
        return self.reply


class Provider:
    """A push service.

    - pushes: the messages that passed the checks, with the answers.
    - problems: the requests that a correct service never sends.
    - script: a function that may return another reply to a message than that it was accepted.
    """

    platform = ""

    def __init__(self, accounts, clock=time.time):
        self.accounts = accounts
        self.clock = clock
        self.server = Server(self.answer, accounts.certificate)
        self.pushes = []
        self.problems = []
        self.script = None
        self.listener = None
        self.signatures = {}

    def answer(self, request):
        try:
            push = self.read(request)
        except Refusal as refusal:
            self.problems.append(f"{self.platform}: {refusal}: {request.path[:100]}")
            return self.refused(refusal)
        if isinstance(push, Reply):
            return push
        reply = (self.script and self.script(push)) or self.accepted(push)
        held = reply if isinstance(reply, Held) else None
        push = push._replace(reply=held.reply if held else reply)
        self.pushes.append(push)
        if self.listener:
            self.hear(push)
        return held.later() if held else reply

    def hear(self, push):
        """Calls the listener. Its mistakes must not end the connection."""
        try:
            self.listener(push)
        except Exception as problem:  # pylint: disable=broad-except
            self.problems.append(f"the listener: {problem!r}")

    def read(self, request):
        """Checks a request and reads its message. Returns a reply for a request that is not a message.

        Raises Refusal."""
        raise NotImplementedError

    def accepted(self, push):
        raise NotImplementedError

    def refused(self, refusal):
        raise NotImplementedError

    def claims(self, token, key, algorithm, name):
        """Returns header and claims of a signed token. Only the first check of each token verifies its signature.

        Raises ValueError."""
        if (token, name) not in self.signatures:
            try:
                claims = jwt.decode(token, key, [algorithm], options={
                    "verify_aud": False, "verify_exp": False, "verify_iat": False, "verify_sub": False})
                self.signatures[token, name] = jwt.get_unverified_header(token), claims
            except jwt.PyJWTError as problem:
                raise ValueError(str(problem)) from None
        return self.signatures[token, name]


def parsed(body):
    """Returns a JSON object; None for anything else."""
    try:
        document = json.loads(body)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def json_reply(status, document, **headers):
    names = {name.replace("_", "-"): str(value) for name, value in headers.items()}
    return Reply(status, {"content-type": "application/json", **names}, json.dumps(document).encode())


def is_digits(text):
    return text.isascii() and text.isdigit()
