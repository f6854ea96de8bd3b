"""Cases about the position of a response."""

import re

import pytest
from kit.citing import cites

READS = ["/v1/badges", "/v1/notifications", "/v1/conversations", "/v1/shops"]


def position(user, path="/v1/badges"):
    return user.request("GET", path).header("event-position")


@cites("S-POS-1")
@pytest.mark.parametrize("path", READS)
def test_read_of_state_has_a_position(user, path):
    answer = user.request("GET", path)
    assert answer.status == 200
    assert answer.header("event-position")


@cites("S-POS-2")
def test_stream_continues_after_the_state(user):
    user.send(1)
    after_one = position(user)
    user.send(2, 3)
    assert user.steps(user.open(query={"lastEventId": after_one})) == [2, 3]


@cites("S-POS-2")
def test_stream_misses_nothing_between_state_and_opening(user):
    for number in range(10):
        current = position(user)
        user.send(number)
        stream = user.open(last=current)
        assert user.steps(stream) == [number]
        stream.close()


@cites("S-POS-3")
def test_write_has_no_position(bellhop, user):
    assert bellhop.publish(user.event(1)).header("event-position") is None
    assert user.request("POST", "/v1/stream-tickets").header("event-position") is None


@cites("S-POS-4")
def test_position_has_the_form_of_an_id(user):
    user.send(1)
    assert re.fullmatch(r"[A-Za-z0-9]{1,44}-[A-Za-z0-9]{13}", position(user))


@cites("S-POS-5")
def test_state_includes_acknowledged_writes(bellhop, user):
    for count in range(1, 6):
        draft = {"userId": user.id, "category": "system", "priority": "NORMAL", "title": "A", "message": "B"}
        assert bellhop.backend.request("POST", "/v1/notifications", draft).status == 201
        answer = user.request("GET", "/v1/badges")
        assert answer.json["bell"] == count
        stream = user.open(last=answer.header("event-position"))
        assert "notification:created" not in [event.name for event in user.drain(stream)]
        stream.close()
