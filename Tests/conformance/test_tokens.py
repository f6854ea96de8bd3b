"""Cases about the token of a stream."""

import base64
import json
import time

import jwt
import pytest
from kit.citing import cites
from kit.service import PATH

DAY = 86_400


def opened_with(bellhop, token, scheme="Bearer"):
    return bellhop.request("GET", PATH, [("Authorization", f"{scheme} {token}")])


def refusal(answer):
    return answer.status, answer.json["code"]


@cites("S-TOKEN-1")
@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_bearer_token_opens_a_stream(bellhop, user, scheme):
    assert bellhop.connect(headers=[("Authorization", f"{scheme} {user.token}")]).status == 200


@cites("S-TOKEN-2", "S-TOKEN-14")
def test_request_without_credentials_is_refused(bellhop):
    answer = bellhop.request("GET", PATH)
    assert refusal(answer) == (401, "unauthenticated")
    assert answer.header("www-authenticate").startswith("Bearer")


@cites("S-TOKEN-3", "S-TOKEN-14")
def test_expired_token_is_refused(bellhop, user):
    answer = opened_with(bellhop, user.another_token(exp=int(time.time()) - 1))
    assert refusal(answer) == (401, "invalid_token.expired")
    assert answer.header("www-authenticate").startswith("Bearer")


@cites("S-TOKEN-4")
def test_token_with_a_foreign_signature_is_refused(bellhop, user):
    claims = jwt.decode(user.token, options={"verify_signature": False})
    foreign = jwt.encode(claims, "the secret of another service, at least 32 bytes", algorithm="HS256")
    assert refusal(opened_with(bellhop, foreign)) == (401, "invalid_token.not_ours")


@cites("S-TOKEN-4")
def test_token_with_changed_claims_is_refused(bellhop, user):
    head, _, signature = user.token.split(".")
    claims = {"sub": "someone-else", "exp": int(time.time()) + 60}
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    assert refusal(opened_with(bellhop, f"{head}.{payload}.{signature}")) == (401, "invalid_token.not_ours")


@cites("S-TOKEN-5")
@pytest.mark.parametrize("claim", ["nbf", "iat"])
def test_token_of_the_future_is_refused(bellhop, user, claim):
    answer = opened_with(bellhop, user.another_token(**{claim: int(time.time()) + 600}))
    assert refusal(answer) == (401, "invalid_token.not_yet_valid")


@cites("S-TOKEN-6")
@pytest.mark.parametrize("text", ["", "x", "a.b.c", "a.b"])
def test_text_that_is_no_token_is_refused(bellhop, text):
    assert refusal(opened_with(bellhop, text)) == (401, "invalid_token")


@cites("S-TOKEN-6")
@pytest.mark.parametrize("claim", ["sub", "exp"])
def test_token_without_a_required_claim_is_refused(bellhop, user, claim):
    assert refusal(opened_with(bellhop, user.another_token(**{claim: None}))) == (401, "invalid_token")


@cites("S-TOKEN-7")
def test_token_without_a_signature_is_refused(bellhop, user):
    claims = jwt.decode(user.token, options={"verify_signature": False})
    assert opened_with(bellhop, jwt.encode(claims, None, algorithm="none")).status == 401


@cites("S-TOKEN-8")
def test_revoked_token_is_refused(bellhop):
    user = bellhop.user(jti=bellhop.name("token"))
    bellhop.revoke(tokenId=user.claims["jti"])
    assert refusal(user.request("GET", PATH)) == (401, "invalid_token.revoked")


@cites("S-TOKEN-9")
def test_other_scheme_is_refused_in_spite_of_a_cookie(bellhop, user):
    answer = bellhop.request("GET", PATH, [("Authorization", "Basic a2l0"), ("Cookie", f"bellhop_token={user.token}")])
    assert answer.status == 401


@cites("S-TOKEN-9")
def test_invalid_token_is_refused_in_spite_of_a_ticket(bellhop, user):
    ticket = user.request("POST", "/v1/stream-tickets").json["ticket"]
    refused = bellhop.request("GET", f"{PATH}?ticket={ticket}", [("Authorization", "Bearer x")])
    assert refused.status == 401
    assert bellhop.connect(f"{PATH}?ticket={ticket}").status == 200, "the ticket was used up"


@cites("S-TOKEN-10")
def test_token_that_is_valid_for_too_long_is_refused(bellhop, user):
    assert opened_with(bellhop, user.another_token(exp=int(time.time()) + 91 * DAY)).status == 401


@cites("S-TOKEN-11")
@pytest.mark.parametrize("name", ["token", "access_token", "authorization", "jwt"])
def test_token_in_the_query_opens_nothing(bellhop, user, name):
    assert bellhop.request("GET", f"{PATH}?{name}={user.token}").status in (401, 422)


@cites("S-TOKEN-12")
def test_events_of_another_user_do_not_arrive(bellhop, user):
    other = bellhop.user()
    stream = user.open()
    other.send(1)
    assert user.steps(stream) == []


@cites("S-TOKEN-12")
def test_event_for_a_key_of_backends_does_not_reach_users(bellhop, user):
    stream = user.open()
    bellhop.publish({"event": "kit:step", "to": ["tenant:admin"], "data": {"number": 1}})
    assert user.steps(stream) == []


@cites("S-TOKEN-13")
def test_events_of_another_tenant_do_not_arrive(bellhop, user):
    twin = bellhop.user(user.id, tenant=bellhop.name("tenant"))
    own, foreign = user.open(), twin.open()
    bellhop.publish({"event": "kit:step", "to": ["everyone"], "data": {"number": 1}})
    user.send(2)
    assert user.steps(own) == [1, 2]
    assert_only_end_arrives(bellhop, twin, foreign)


def assert_only_end_arrives(bellhop, twin, stream):
    """Publishes in the tenant of the twin, so that its stream receives an end."""
    backend = bellhop.user("conformance-backend", tenant=twin.metadata["tenant"], metadata={"user_role": "service_role"})
    answer = backend.request("POST", "/v1/publish", [{"event": "kit:end", "to": [twin.key], "data": None}])
    assert answer.status == 202
    assert stream.until("kit:end") == []
