"""Cases about the expiry and the renewal of a token."""

import datetime
import json
import time

import pytest
from kit.citing import cites
from kit.service import PATH


def soon(seconds=3):
    return int(time.time()) + seconds


def moment(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)


def renew(user, stream, token, **options):
    return user.request("PUT", f"/v1/streams/{stream.name}/token", {"token": token}, **options)


def expiry(event):
    return datetime.datetime.fromisoformat(json.loads(event.data)["expiresAt"])


@cites("S-EXPIRE-1", "S-EXPIRE-2")
@pytest.mark.parametrize("seconds", [5, 20, 31])
def test_expiring_precedes_the_end_of_the_token(bellhop, seconds):
    end = soon(seconds)
    assert expiry(bellhop.user(exp=end).open().next("stream:expiring")) == moment(end)


@cites("S-EXPIRE-3")
def test_expiring_is_sent_once(bellhop):
    stream = bellhop.user(exp=soon()).open()
    assert [event.name for event in stream.rest()] == ["stream:expiring", "stream:closing"]


@cites("S-EXPIRE-4")
def test_fresh_token_causes_no_warning(user):
    stream = user.open()
    stream.heartbeat()
    stream.heartbeat()
    assert [event.name for event in stream.events] == ["stream:ready"]


@cites("S-RENEW-1")
def test_renewal_returns_the_end_of_the_new_token(user):
    stream, end = user.open(), soon(7200)
    answer = renew(user, stream, user.another_token(exp=end))
    assert answer.status == 200
    assert datetime.datetime.fromisoformat(answer.json["expiresAt"]) == moment(end)


@cites("S-RENEW-2")
def test_renewed_stream_outlives_the_old_token(bellhop, eventually):
    user = bellhop.user(exp=soon(2))
    old = user.bearer
    stream = user.open()
    user.claims = {}
    user.token = user.another_token()
    assert renew(user, stream, user.token).status == 200
    eventually(lambda: bellhop.request("GET", "/v1/badges", [old]).status == 401, "the old token to expire")
    # The service ends streams of expired tokens several times a second, so a heartbeat later it would have ended.
    stream.heartbeat()
    stream.heartbeat()
    user.send(1)
    assert user.steps(stream) == [1]


@cites("S-RENEW-3")
def test_token_of_another_user_does_not_renew(bellhop, user):
    assert renew(user, user.open(), bellhop.user().token).status == 403


@cites("S-RENEW-3")
def test_token_of_another_tenant_does_not_renew(bellhop, user):
    twin = bellhop.user(user.id, tenant=bellhop.name("tenant"))
    assert renew(user, user.open(), twin.token).status == 403


@cites("S-RENEW-4")
def test_invalid_token_does_not_renew(user):
    stream = user.open()
    for token in (user.another_token(exp=soon(-1)), "a.b.c", user.token[:-3] + "abc"):
        answer = renew(user, stream, token)
        assert answer.status == 422
        assert answer.json["errors"][0]["pointer"] == "/token"
    user.send(1)
    assert user.steps(stream) == [1]


@cites("S-RENEW-5")
def test_stream_of_another_user_cannot_be_renewed(bellhop, user):
    stream, other = user.open(), bellhop.user()
    assert renew(other, stream, other.token).status == 404


@cites("S-RENEW-5")
def test_unknown_stream_cannot_be_renewed(user):
    answer = user.request("PUT", "/v1/streams/unknown/token", {"token": user.token})
    assert answer.status == 404


@cites("S-RENEW-6")
def test_newest_token_counts_also_if_it_expires_sooner(user):
    stream = user.open()
    assert renew(user, stream, user.another_token(exp=soon())).status == 200
    assert json.loads(stream.next("stream:closing").data)["reason"] == "expired"


@cites("S-RENEW-7")
def test_revoked_token_does_not_renew(bellhop, user):
    stream, jti = user.open(), bellhop.name("token")
    bellhop.revoke(tokenId=jti)
    assert renew(user, stream, user.another_token(jti=jti)).status == 422


@cites("S-EXPIRE-3", "S-RENEW-2")
def test_renewed_stream_is_warned_for_the_new_token(bellhop):
    user = bellhop.user(exp=soon(20))
    stream = user.open()
    stream.next("stream:expiring")
    end = soon(25)
    assert renew(user, stream, user.another_token(exp=end)).status == 200
    assert expiry(stream.next("stream:expiring")) == moment(end)


@cites("S-TOKEN-3")
def test_old_token_opens_nothing_after_its_end(bellhop, eventually):
    user = bellhop.user(exp=soon(1))
    eventually(lambda: user.request("GET", PATH).status == 401, "the token to expire")
