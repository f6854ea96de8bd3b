"""Phones of users at a stage, scripted replies, and the requests of a backend."""

import collections
import secrets

from harness.waiting import Failed, wait_until
from http2 import Reply
from traces import new_token

# Replies that say nothing: the client cannot know whether the message was accepted.
RESET, CLOSE, SILENCE = (Reply(fate=fate) for fate in ("reset", "close", "silence"))


class Phone:
    """A device of a user, registered at a stage."""

    def __init__(self, stage, user, platform, name=None, token=None, app=None):
        self.stage, self.user, self.platform = stage, user, platform
        self.name = name or f"{platform}-{secrets.token_hex(4)}"
        self.browser = stage.providers.webpush.subscribe() if platform == "webpush" else None
        self.token = self.browser.path if self.browser else token or new_token()
        self.app = app
        self.register()

    def register(self, replica=0):
        body = {"platform": self.platform, "token": self.token}
        if self.browser:
            subscription = self.browser.subscription(self.stage.providers.webpush.server.url)
            body = {"platform": self.platform, "subscription": subscription}
        if self.app:
            body |= {"app": self.app, "environment": "sandbox"}
        return self.stage.ask("PUT", f"/v1/devices/{self.name}", self.stage.user(self.user), body, replica)

    @property
    def pushes(self):
        """The messages that arrived for it."""
        return [push for push in self.stage.providers.pushes if push.device == self.token]

    @property
    def rows(self):
        """Its rows of the outbox."""
        return self.stage.outbox(f"device_id = '{self.name}'")

    @property
    def is_registered(self):
        items = self.stage.ask("GET", "/v1/devices", self.stage.user(self.user))["items"]
        return self.name in [item["id"] for item in items]

    def wait(self, count):
        """Waits until this number of messages has arrived; returns them."""
        wait_until(lambda: len(self.pushes) >= count, lambda: f"{count} messages for {self.name}, not {self.pushes}: {self.rows}")
        return self.pushes

    def wait_for(self, tag):
        """Waits until an alert has arrived; returns it."""
        return wait_until(lambda: next((push for push in self.pushes if push.tag == tag), None), f"the alert {tag}")


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
        raise Failed(f"{what}: {str(shown)[:3000]}" if shown else what)


def last_replica(stage):
    return len(stage.replicas) - 1
