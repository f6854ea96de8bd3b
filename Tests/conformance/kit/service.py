"""The service under test, and its users."""

import itertools
import json
import secrets
import subprocess
import time
import urllib.parse

import jwt
from harness.services import Service
from harness.waiting import Failed

from .wire import Address, Stream, exchange

PATH = "/v1/stream"
# An origin whose pages may call the kit's own service.
ORIGIN = "https://app.example"
JSON_TYPE = ("Content-Type", "application/json")


class Signer:
    """Signs tokens with a secret, or by a command that reads claims and prints a token."""

    def __init__(self, secret=None, command=None):
        self.secret = secret
        self.command = command

    def sign(self, **claims):
        now = int(time.time())
        claims = {"iat": now, "exp": now + 3600, **claims}
        claims = {name: value for name, value in claims.items() if value is not None}
        if not self.command:
            return jwt.encode(claims, self.secret, algorithm="HS256")
        done = subprocess.run(
            self.command, shell=True, input=json.dumps(claims), check=True, capture_output=True, text=True)
        return done.stdout.strip()


class Bellhop:
    """A running service. Every case has its own users, in a tenant of the run."""

    def __init__(self, url, signer, process=None):
        self.url = url
        self.address = Address.of(url)
        self.signer = signer
        self.process = process
        self.run = secrets.token_hex(4)
        self.tenant = f"conformance-{self.run}"
        self.streams = []
        self.numbers = itertools.count(1)
        self.backend = User(self, "conformance-backend", {"user_role": "service_role"})

    def name(self, prefix):
        """Returns a name that no other case uses."""
        return f"{prefix}-{self.run}-{next(self.numbers)}"

    def user(self, identifier=None, tenant=None, metadata=None, **claims):
        return User(self, identifier or self.name("user"), {**(metadata or {}), "tenant": tenant or self.tenant}, **claims)

    def request(self, method, path, headers=(), body=None):
        return exchange(self.address, method, path, headers, body)

    def connect(self, path=PATH, headers=(), **options):
        """Sends the request of a stream; returns the answer without judging it."""
        stream = Stream(self.address, path, headers, **options)
        self.streams.append(stream)
        return stream

    def configuration(self):
        return self.request("GET", "/v1/config").json

    def publish(self, *events):
        """Publishes events in one request, and expects that the service accepts them."""
        answer = self.backend.request("POST", "/v1/publish", list(events))
        if answer.status != 202:
            raise Failed(f"the service does not publish: {answer.status} {answer.body!r}")
        return answer

    def changes(self, *changes):
        answer = self.backend.request("POST", "/v1/changes", list(changes))
        if answer.status not in (200, 202):
            raise Failed(f"the service does not take changes: {answer.status} {answer.body!r}")
        return answer

    def revoke(self, **revocation):
        answer = self.backend.request("POST", "/v1/revocations", revocation)
        if answer.status != 201:
            raise Failed(f"the service does not revoke: {answer.status} {answer.body!r}")

    def shop(self):
        """Creates a shop, whose queue is a topic with a state."""
        shop = self.name("shop")
        answer = self.backend.request("PUT", f"/v1/shops/{shop}", {"name": "Shop", "timeZone": "UTC"})
        if answer.status not in (200, 201):
            raise Failed(f"the service creates no shop: {answer.status} {answer.body!r}")
        return shop

    def close(self):
        for stream in self.streams:
            stream.close()
        self.streams.clear()


class User:
    """A user with a token."""

    def __init__(self, bellhop, identifier, metadata, **claims):
        self.bellhop = bellhop
        self.id = identifier
        self.metadata = {"tenant": bellhop.tenant, **metadata}
        self.claims = claims
        self.token = self.another_token()

    def another_token(self, **claims):
        return self.bellhop.signer.sign(**{"sub": self.id, "app_metadata": self.metadata, **self.claims, **claims})

    @property
    def bearer(self):
        return ("Authorization", f"Bearer {self.token}")

    @property
    def key(self):
        return f"user:{self.id}"

    def request(self, method, path, body=None, headers=()):
        encoded = None if body is None else json.dumps(body).encode()
        content = [] if body is None else [JSON_TYPE]
        return self.bellhop.request(method, path, [self.bearer, *content, *headers], encoded)

    def connect(self, topics=None, last=None, headers=(), query=None, **options):
        """Opens a stream, without a check of its answer."""
        parameters = dict(query or {})
        if topics is not None:
            parameters["topics"] = ",".join(topics)
        text = urllib.parse.urlencode(parameters)
        sent = [self.bearer, *([("Last-Event-ID", last)] if last is not None else []), *headers]
        return self.bellhop.connect(f"{PATH}?{text}" if text else PATH, sent, **options)

    def open(self, *arguments, **options):
        """Opens a stream and reads its first event, `stream:ready`."""
        stream = self.connect(*arguments, **options)
        if stream.status != 200:
            stream.rest()
            raise Failed(f"the stream is refused: {stream.status} {stream.raw!r}")
        stream.ready = stream.next()
        if stream.ready.name != "stream:ready":
            raise Failed(f"the first event is {stream.ready.name}")
        stream.about = json.loads(stream.ready.data)
        stream.name = stream.about["streamId"]
        return stream

    def event(self, number, **members):
        """Returns an event for this user, to be published."""
        return {"event": "kit:step", "data": {"number": number}, **({} if "topic" in members else {"to": [self.key]}), **members}

    def send(self, *numbers, **members):
        """Publishes an event for each number, in one request."""
        self.bellhop.publish(*(self.event(number, **members) for number in numbers))

    def drain(self, stream):
        """Returns the events of the stream up to now: before those of a last event that this method publishes."""
        name = f"kit:end-{next(self.bellhop.numbers)}"
        self.bellhop.publish({"event": name, "to": [self.key], "data": None})
        return stream.until(name)

    def steps(self, stream):
        """Returns the numbers of the events up to now."""
        return numbers(self.drain(stream))


def numbers(events):
    """Returns the numbers of the kit's own events, in the order of their arrival."""
    return [json.loads(event.data)["number"] for event in events if event.name == "kit:step"]


class OwnService(Service):
    """A process of the service that the kit starts, restarts and stops."""

    def __init__(self, binary, folder, tables):
        super().__init__(binary, folder)
        self.environment |= {
            "BELLHOP_TABLES": str(tables), "BELLHOP_HEARTBEAT_SECONDS": "1", "BELLHOP_RATE_LIMIT_USER": "1000000",
            "BELLHOP_CORS_ORIGINS": ORIGIN,
        }
