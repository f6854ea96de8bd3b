"""Cases about revocations."""

import datetime
import json
import time

from kit.citing import cites


def ends_as_revoked(stream):
    return json.loads(stream.next("stream:closing").data)["reason"] == "revoked"


@cites("S-REVOKE-1")
def test_streams_of_a_revoked_token_end(bellhop):
    user = bellhop.user(jti=bellhop.name("token"))
    streams = [user.open(), user.open()]
    bellhop.revoke(tokenId=user.claims["jti"])
    assert all(ends_as_revoked(stream) for stream in streams)


@cites("S-REVOKE-1")
def test_streams_of_another_token_of_the_user_go_on(bellhop):
    user = bellhop.user(jti=bellhop.name("token"))
    ended = user.open()
    user.token = user.another_token(jti=bellhop.name("token"))
    stream = user.open()
    bellhop.revoke(tokenId=user.claims["jti"])
    assert ends_as_revoked(ended)
    user.send(1)
    assert user.steps(stream) == [1]


@cites("S-REVOKE-2")
def test_streams_of_a_revoked_session_end(bellhop):
    user = bellhop.user(session_id=bellhop.name("session"))
    stream = user.open()
    bellhop.revoke(sessionId=user.claims["session_id"])
    assert ends_as_revoked(stream)


@cites("S-REVOKE-3")
def test_streams_of_older_tokens_end(bellhop):
    now = int(time.time())
    user = bellhop.user(iat=now - 100)
    older = user.open()
    user.token = user.another_token(iat=now - 10)
    newer = user.open()
    before = datetime.datetime.fromtimestamp(now - 50, datetime.timezone.utc).isoformat().replace("+00:00", "Z")
    bellhop.revoke(userId=user.id, issuedBefore=before)
    assert ends_as_revoked(older)
    user.send(1)
    assert user.steps(newer) == [1]


@cites("S-REVOKE-4")
def test_streams_of_other_users_go_on(bellhop, user):
    other = bellhop.user(jti=bellhop.name("token"))
    ended, stream = other.open(), user.open()
    bellhop.revoke(tokenId=other.claims["jti"])
    assert ends_as_revoked(ended)
    user.send(1)
    assert user.steps(stream) == [1]


@cites("S-REVOKE-4")
def test_same_token_id_in_another_tenant_goes_on(bellhop):
    name = bellhop.name("token")
    twin = bellhop.user(tenant=bellhop.name("tenant"), jti=name)
    own, foreign = bellhop.user(jti=name).open(), twin.open()
    bellhop.revoke(tokenId=name)
    assert ends_as_revoked(own)
    foreign.heartbeat()
    assert [event.name for event in foreign.events] == ["stream:ready"]


@cites("S-REVOKE-5")
def test_user_cannot_revoke(user):
    assert user.request("POST", "/v1/revocations", {"tokenId": "x"}).status == 403
