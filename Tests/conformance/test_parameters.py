"""Cases about the query of a stream."""

import pytest
from kit.citing import cites
from kit.service import PATH


def refused(user, query):
    return user.request("GET", f"{PATH}?{query}")


@cites("S-PARAM-1")
@pytest.mark.parametrize("name", ["topic", "last-event-id", "Topics", "x"])
def test_unknown_parameter_is_refused(user, name):
    answer = refused(user, f"{name}=1")
    assert answer.status == 422
    assert [error["pointer"] for error in answer.json["errors"]] == [f"?{name}"]


@cites("S-PARAM-2")
@pytest.mark.parametrize("query", ["lastEventId=a&lastEventId=b", "ticket=a&ticket=b"])
def test_repeated_parameter_is_refused(user, query):
    assert refused(user, query).status == 422


@cites("S-PARAM-3")
def test_lists_of_repeated_topics_are_joined(bellhop, user):
    one, two = bellhop.name("room"), bellhop.name("room")
    stream = bellhop.connect(f"{PATH}?topics=room:{one}&topics=room:{two}", [user.bearer])
    assert f'"topics":["personal","room:{one}","room:{two}"]' in stream.next("stream:ready").data


@cites("S-PARAM-4")
def test_header_wins_over_the_parameter(user):
    stream = user.open()
    user.send(1, 2)
    first, second = user.drain(stream)
    resumed = user.open(last=second.id, query={"lastEventId": first.id})
    assert user.steps(resumed) == []


@cites("S-PARAM-5")
def test_spaces_and_empty_items_are_ignored(bellhop, user):
    room = bellhop.name("room")
    stream = bellhop.connect(f"{PATH}?topics=,%20room:{room}%20,,", [user.bearer])
    assert f'"topics":["personal","room:{room}"]' in stream.next("stream:ready").data


@cites("S-PARAM-6")
def test_repeated_topic_counts_once(bellhop, user):
    room = f"room:{bellhop.name('room')}"
    assert user.open(topics=[room, room]).about["topics"] == ["personal", room]


@cites("S-PARAM-6")
def test_personal_may_be_named(user):
    assert user.open(topics=["personal"]).about["topics"] == ["personal"]


@cites("S-PARAM-7")
def test_credentials_are_checked_before_topics(bellhop):
    assert bellhop.request("GET", f"{PATH}?topics=nothing:1").status == 401


@cites("S-PARAM-8")
@pytest.mark.parametrize("query", ["topics=room%3A{}", "%74opics=room:{}", "topics=%72oom%3a{}"])
def test_parameters_are_decoded(bellhop, user, query):
    room = bellhop.name("room")
    stream = bellhop.connect(f"{PATH}?{query.format(room)}", [user.bearer])
    assert f'"topics":["personal","room:{room}"]' in stream.next("stream:ready").data


@cites("S-PARAM-9")
def test_empty_header_leaves_the_parameter(user):
    stream = user.open()
    user.send(1, 2)
    assert user.steps(user.open(last="", query={"lastEventId": stream.last_id})) == [1, 2]
