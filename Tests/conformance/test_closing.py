"""Cases about the end of a stream."""

import json
import threading
import time

import pytest
from kit.citing import cites

REASONS = {"expired", "revoked", "shutdown", "unavailable", "slow"}


def expired(bellhop):
    """Returns a stream whose token expires, read to its end."""
    stream = bellhop.user(exp=int(time.time()) + 2).open()
    stream.rest()
    return stream


def revoked(bellhop):
    """Returns a stream whose token was revoked, read to its end."""
    user = bellhop.user(jti=bellhop.name("token"))
    stream = user.open()
    bellhop.revoke(tokenId=user.claims["jti"])
    stream.rest()
    return stream


def closing(stream):
    event = stream.events[-1]
    assert event.name == "stream:closing", event
    return json.loads(event.data)


@cites("S-CLOSE-1")
@pytest.mark.parametrize("end", [expired, revoked])
def test_end_has_a_reason_and_a_pause(bellhop, end):
    about = closing(end(bellhop))
    assert set(about) == {"reason", "retryAfterMs"}
    assert about["retryAfterMs"] >= 0


@cites("S-CLOSE-2")
def test_expired_token_ends_the_stream(bellhop):
    assert closing(expired(bellhop))["reason"] == "expired"


@cites("S-CLOSE-3")
def test_revoked_token_ends_the_stream(bellhop):
    assert closing(revoked(bellhop))["reason"] == "revoked"


@cites("S-CLOSE-1", "S-CLOSE-4")
def test_stopping_service_ends_the_streams(process):
    streams = [process.user().open() for _ in range(3)]
    stop = threading.Thread(target=process.process.stop)
    stop.start()
    for stream in streams:
        stream.rest()
        assert closing(stream)["reason"] == "shutdown"
    stop.join()


@cites("S-CLOSE-5")
@pytest.mark.parametrize("end", [expired, revoked])
def test_pause_is_also_a_retry(bellhop, end):
    stream = end(bellhop)
    retries = [block.retry for block in stream.blocks if block.retry is not None]
    assert retries[-1] == str(closing(stream)["retryAfterMs"])
    last = max(number for number, block in enumerate(stream.blocks) if block.retry is not None)
    assert last >= len(stream.blocks) - 2


@cites("S-CLOSE-6")
@pytest.mark.parametrize("end", [expired, revoked])
def test_closing_is_the_last_event(bellhop, end):
    stream = end(bellhop)
    assert stream.is_over
    assert stream.blocks[-1].name == "stream:closing"


@cites("S-CLOSE-7")
@pytest.mark.parametrize("end", [expired, revoked])
def test_reason_is_a_known_one(bellhop, end):
    assert closing(end(bellhop))["reason"] in REASONS


@cites("S-CLOSE-8")
def test_client_that_resumes_after_the_end_misses_nothing(bellhop):
    user = bellhop.user(jti=bellhop.name("token"))
    stream = user.open()
    user.send(1)
    first = user.steps(stream)
    bellhop.revoke(tokenId=user.claims["jti"])
    stream.rest()
    user.send(2)
    user.claims = {}
    user.token = user.another_token()
    assert first + user.steps(user.open(last=stream.last_id)) == [1, 2]


@cites("S-CLOSE-8")
def test_client_that_resumes_after_a_shutdown_misses_nothing(process):
    user = process.user()
    stream = user.open()
    user.send(1)
    first = user.steps(stream)
    process.process.stop()
    stream.rest()
    process.process.start()
    user.send(2)
    assert first + user.steps(user.open(last=stream.last_id)) == [1, 2]
