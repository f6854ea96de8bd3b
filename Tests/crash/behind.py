"""Replicas that are behind: suspended, or cut off from the database. What they must do when they are back.

`erase` is a scenario of replicas.py: a replica is suspended while users are erased on another one, and events that name
them are erased. It proves that, when the replica continues,

  - it accepts no token of an erased user, from its first answer on,
  - every stream that missed an erased event is told to resync, and no stream receives an event that names the user.
"""

import contextlib
import json
import os
import signal
import time

from harness.tokens import token
from harness.waiting import Failed, seconds_until, wait_until
from witnesses import TIMES

# The tokens of erased users are refused this many seconds after the replica is back.
REFUSAL_SECONDS = 2
QUESTIONS = (("GET", "/v1/me", None), ("GET", "/v1/badges", None), ("POST", "/v1/stream-tickets", {}))


def erase(stage, working, suspended, name, listeners):
    """Erases a user on one replica while the other one is suspended. Returns the seconds until all is known there."""
    backend = token(stage.secret, "backend", "service_role")
    old = token(stage.secret, name, iat=int(time.time()) - 60)

    def ask(replica, method, path, body=None, bearer=backend):
        status, content = replica.request(method, path, bearer, body)
        if status >= 300:
            raise Failed(f"{method} {path} at {replica.name} answered {status}: {content[:300]!r}")
        return json.loads(content)

    for method, path, body in QUESTIONS:
        ask(suspended, method, path, body, old)
    with standing_still(suspended):
        for stream in listeners.streams:
            # The backend's own event, which merely names the user.
            ask(working, "POST", "/v1/publish", {
                "event": "tidings", "to": [f"user:{stream.user}"], "data": {"who": name}})
        ask(working, "DELETE", f"/v1/users/{name}")
        path = f"/v1/users/{name}/erasure"
        wait_until(lambda: ask(working, "GET", path)["state"] == "done", "the erasure to end", listeners.problems)
        resyncs = {stream: resyncs_of(stream) for stream in listeners.streams}
    took = wait_until_refused(suspended, [old], listeners.problems)
    took += wait_until_told(resyncs, listeners.problems)
    told = [stream.user for stream in listeners.streams for fact in facts_of(stream) if name in str(fact.data)]
    if told:
        raise Failed(f"streams received events that name {name} after its erasure: {told[:5]}")
    return took


@contextlib.contextmanager
def standing_still(replica):
    replica.process.send_signal(signal.SIGSTOP)
    try:
        # The signal is delivered when all threads have stopped.
        os.waitpid(replica.process.pid, os.WUNTRACED)
        yield
    finally:
        replica.process.send_signal(signal.SIGCONT)


def wait_until_refused(replica, bearers, problems=()):
    """Waits until a replica that was behind refuses tokens for good. Returns the seconds."""
    took = seconds_until(
        lambda: all([refuses(replica, bearer) for bearer in bearers]), f"{replica.name} to refuse the tokens", problems)
    return TIMES.note("refusing the tokens of an erased user", took, REFUSAL_SECONDS)


def wait_until_told(resyncs, problems=()):
    """Waits until each stream has received more resyncs than before. Returns the seconds."""
    return seconds_until(
        lambda: all(resyncs_of(stream) > before for stream, before in resyncs.items()),
        "every stream to be told of the gap", problems)


def refuses(replica, bearer):
    """Whether a replica refuses a token for good. It may refuse it for the time being, but must not accept it."""
    answers = [replica.request(method, path, bearer, body)[0] for method, path, body in QUESTIONS]
    if wrong := [status for status in answers if status not in (401, 503)]:
        raise Failed(f"{replica.name} accepts a token of an erased user: {wrong}")
    return set(answers) == {401}


def resyncs_of(stream):
    return sum(mark[3] is not None for connection in stream.connections for mark in connection.marks)


def facts_of(stream):
    return [fact for connection in stream.connections for fact in connection.facts]
