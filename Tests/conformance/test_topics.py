"""Cases about topics."""

import pytest
from kit.citing import cites
from kit.service import PATH


@cites("S-TOPIC-1")
def test_stream_without_topics_carries_personal_events(bellhop, user):
    stream = user.open()
    user.send(1)
    draft = {"userId": user.id, "category": "system", "priority": "NORMAL", "title": "A", "message": "B"}
    assert bellhop.backend.request("POST", "/v1/notifications", draft).status == 201
    names = [event.name for event in user.drain(stream)]
    assert names[0] == "kit:step"
    assert {"notification:created", "badges:update"} <= set(names)


@cites("S-TOPIC-1")
def test_stream_with_topics_carries_personal_events_too(bellhop, user):
    stream = user.open(topics=[f"room:{bellhop.name('room')}"])
    user.send(1)
    assert user.steps(stream) == [1]


@cites("S-TOPIC-2")
def test_event_of_a_topic_reaches_its_subscribers(bellhop, user):
    room = f"room:{bellhop.name('room')}"
    stream = user.open(topics=[room])
    user.send(1, topic=room)
    assert user.steps(stream) == [1]


@cites("S-TOPIC-2")
def test_event_of_a_topic_reaches_no_other_stream(bellhop, user):
    room = f"room:{bellhop.name('room')}"
    stream = user.open(topics=[f"room:{bellhop.name('room')}"])
    user.send(1, topic=room)
    assert user.steps(stream) == []


@cites("S-TOPIC-3")
@pytest.mark.parametrize("topic", ["nothing:1", "room", "room:", ":1", "room:%20", "room:a%0Ab"])
def test_unknown_topic_is_refused(user, topic):
    answer = user.request("GET", f"{PATH}?topics={topic}")
    assert answer.status == 422
    assert answer.json["errors"][0]["pointer"] == "?topics"


@cites("S-TOPIC-4", "S-TOPIC-5")
def test_topic_without_its_key_is_forbidden(bellhop, user):
    desk = f"desk:{bellhop.name('desk')}"
    answer = user.request("GET", f"{PATH}?topics=room:a,{desk}")
    assert (answer.status, answer.json["code"]) == (403, "topic.forbidden")
    assert [desk in error["detail"] for error in answer.json["errors"]] == [True]


@cites("S-TOPIC-4")
def test_topic_with_its_key_is_allowed(bellhop):
    desk = f"desk:{bellhop.name('desk')}"
    admin = bellhop.user(metadata={"user_role": "admin"})
    stream = admin.open(topics=[desk])
    admin.send(1, topic=desk)
    assert admin.steps(stream) == [1]


@cites("S-TOPIC-6")
def test_number_of_topics_is_limited(bellhop, user):
    maximum = bellhop.configuration()["stream"]["topicsMax"]
    topics = [f"room:{number}" for number in range(maximum + 1)]
    assert len(user.open(topics=topics[:-1]).about["topics"]) == maximum + 1
    assert user.request("GET", f"{PATH}?topics={','.join(topics)}").status == 422


@cites("S-TOPIC-7")
def test_state_of_a_topic_follows_the_first_event(bellhop, user):
    shop = bellhop.shop()
    stream = user.open(topics=[f"queue:{shop}"])
    assert f'"shopId":"{shop}"' in stream.next().data


@cites("S-TOPIC-7")
def test_state_of_a_topic_follows_the_replay(bellhop, user):
    shop = bellhop.shop()
    stream = user.open()
    user.send(1, 2)
    resumed = user.open(topics=[f"queue:{shop}"], last=stream.last_id)
    assert [resumed.next().name for _ in range(3)] == ["kit:step", "kit:step", "queue:update"]


@cites("S-TOPIC-8")
def test_long_topic_is_refused(user):
    assert user.open(topics=["room:" + "x" * 128]).status == 200
    assert user.request("GET", f"{PATH}?topics=room:{'x' * 156}").status == 422


@cites("S-TOPIC-9")
def test_topic_may_precede_its_thing(bellhop, user):
    stream = user.open(topics=[f"queue:{bellhop.name('shop')}"])
    assert stream.status == 200
    user.send(1)
    assert [event.name for event in user.drain(stream)] == ["kit:step"]


@cites("S-TOPIC-10")
def test_subscription_does_not_widen_access(bellhop, user):
    """A row of the topic's name is visible to its owner only, also for a stream that asks for the whole table."""
    other = bellhop.user()
    stream = user.open()
    answer = user.request("PUT", f"/v1/streams/{stream.name}/subscriptions", {"tables": [{"table": "notes"}]})
    assert answer.status == 200
    bellhop.changes(note(bellhop, other))
    assert [event.name for event in user.drain(stream)] == []


def note(bellhop, owner, kind="INSERT", **columns):
    """Returns a change of a row that its owner may see."""
    row = {"id": bellhop.name("note"), "owner": owner.id, "tenant": bellhop.tenant, **columns}
    return {"type": kind, "schema": "public", "table": "notes", "record": row, "old_record": None}
