"""Cases about tickets."""

import datetime
import email.utils
import json
import time

import pytest
from kit.citing import cites
from kit.service import JSON_TYPE, PATH

ADDRESS = "/v1/stream-tickets"


def ticket_of(user, topics=None):
    answer = user.request("POST", ADDRESS, None if topics is None else {"topics": topics})
    assert answer.status == 201, answer.body
    return answer.json["ticket"]


def open_by(bellhop, ticket, query=""):
    stream = bellhop.connect(f"{PATH}?ticket={ticket}{query}")
    assert stream.status == 200
    return json.loads(stream.next("stream:ready").data)


@cites("S-TICKET-1")
def test_ticket_needs_no_body(user):
    answer = user.request("POST", ADDRESS)
    assert answer.status == 201
    assert set(answer.json) == {"ticket", "expiresAt"}


@cites("S-TICKET-1")
def test_ticket_takes_an_object(user):
    assert user.request("POST", ADDRESS, {}).status == 201


@cites("S-TICKET-2")
def test_ticket_opens_a_stream_of_its_user(bellhop, user):
    about = open_by(bellhop, ticket_of(user))
    assert (about["userId"], about["tenant"]) == (user.id, bellhop.tenant)


@cites("S-TICKET-3")
def test_ticket_opens_one_stream(bellhop, user):
    ticket = ticket_of(user)
    open_by(bellhop, ticket)
    again = bellhop.request("GET", f"{PATH}?ticket={ticket}")
    assert (again.status, again.json["code"]) == (401, "stream.ticket_invalid")


@cites("S-TICKET-4")
@pytest.mark.parametrize("ticket", ["", "x", "A" * 64, "%20"])
def test_unknown_ticket_is_refused(bellhop, ticket):
    answer = bellhop.request("GET", f"{PATH}?ticket={ticket}")
    assert (answer.status, answer.json["code"]) == (401, "stream.ticket_invalid")


@cites("S-TICKET-4")
def test_changed_ticket_is_refused(bellhop, user):
    ticket = ticket_of(user)
    changed = ("B" if ticket[0] == "A" else "A") + ticket[1:]
    assert bellhop.request("GET", f"{PATH}?ticket={changed}").status == 401


@cites("S-TICKET-5")
def test_stream_has_the_topics_of_the_ticket(bellhop, user):
    room = f"room:{bellhop.name('room')}"
    assert open_by(bellhop, ticket_of(user, [room]))["topics"] == ["personal", room]


@cites("S-TICKET-5")
def test_topics_of_the_query_replace_those_of_the_ticket(bellhop, user):
    one, two = f"room:{bellhop.name('room')}", f"room:{bellhop.name('room')}"
    assert open_by(bellhop, ticket_of(user, [one]), f"&topics={two}")["topics"] == ["personal", two]


@cites("S-TICKET-6")
def test_refused_topics_leave_the_ticket_usable(bellhop, user):
    ticket = ticket_of(user)
    assert bellhop.request("GET", f"{PATH}?ticket={ticket}&topics=nothing:1").status == 422
    open_by(bellhop, ticket)


@cites("S-TICKET-7")
def test_ticket_is_not_stored_by_caches(user):
    assert user.request("POST", ADDRESS).header("cache-control") == "no-store"


@cites("S-TICKET-8")
def test_ticket_of_a_revoked_token_is_refused(bellhop):
    user = bellhop.user(jti=bellhop.name("token"))
    ticket = ticket_of(user)
    bellhop.revoke(tokenId=user.claims["jti"])
    answer = bellhop.request("GET", f"{PATH}?ticket={ticket}")
    assert (answer.status, answer.json["code"]) == (401, "invalid_token.revoked")


@cites("S-TICKET-8")
def test_stream_by_ticket_ends_with_the_token(bellhop):
    user = bellhop.user(exp=int(time.time()) + 3)
    stream = bellhop.connect(f"{PATH}?ticket={ticket_of(user)}")
    assert json.loads(stream.next("stream:closing").data)["reason"] == "expired"


@cites("S-TICKET-9")
def test_ticket_expires_30_seconds_after_its_creation(user):
    answer = user.request("POST", ADDRESS)
    created = email.utils.parsedate_to_datetime(answer.header("date"))
    expires = datetime.datetime.fromisoformat(answer.json["expiresAt"])
    # `Date` has whole seconds, and may be older than the ticket by one.
    assert 29 <= (expires - created).total_seconds() <= 32


@cites("S-TICKET-10")
def test_ticket_requires_a_token(bellhop):
    assert bellhop.request("POST", ADDRESS, [JSON_TYPE], b"{}").status == 401


@cites("S-TICKET-11")
@pytest.mark.parametrize(("kind", "status"), [("desk", 403), ("nothing", 422)])
def test_topics_are_checked_when_the_ticket_is_created(bellhop, user, kind, status):
    answer = user.request("POST", ADDRESS, {"topics": [f"{kind}:{bellhop.name('topic')}"]})
    assert answer.status == status
    assert answer.json["errors"][0]["pointer"] == "/topics/0"
