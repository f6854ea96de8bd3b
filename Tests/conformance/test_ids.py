"""Cases about the ids of events."""

import json
import re
import time

from kit.citing import cites

ID = re.compile(r"[A-Za-z0-9-]{1,64}")


@cites("S-ID-1")
def test_ids_have_the_characters_and_the_length_of_ids(user):
    stream = user.open()
    user.send(1, 2, 3)
    user.drain(stream)
    ids = [block.id for block in stream.blocks if block.id is not None]
    assert ids
    assert all(ID.fullmatch(text) for text in ids), ids


@cites("S-ID-2")
def test_events_of_the_log_have_different_ids(user):
    stream = user.open()
    user.send(*range(20))
    user.send(*range(20))
    ids = [event.id for event in user.drain(stream)]
    assert len(set(ids)) == 40


@cites("S-ID-3")
def test_event_has_the_same_id_on_every_stream(user):
    first, second = user.open(), user.open()
    user.send(1, 2, 3)
    user.drain(first)
    name = first.blocks[-1].name if first.blocks[-1].is_event else first.events[-1].name
    second.until(name)
    ids = [[event.id for event in stream.events if event.name == "kit:step"] for stream in (first, second)]
    assert ids[0] == ids[1]
    assert len(ids[0]) == 3


@cites("S-ID-3")
def test_event_has_the_same_id_in_a_replay(user):
    stream = user.open()
    position = stream.last_id
    user.send(1, 2, 3)
    live = [event.id for event in user.drain(stream)]
    replayed = [event.id for event in user.drain(user.open(last=position)) if event.name == "kit:step"]
    assert live == replayed


@cites("S-ID-4")
def test_published_event_has_an_id(user):
    stream = user.open()
    user.send(1)
    (event,) = user.drain(stream)
    assert event.id


@cites("S-ID-4")
def test_notification_has_an_id(bellhop, user):
    stream = user.open()
    draft = {"userId": user.id, "category": "system", "priority": "NORMAL", "title": "A", "message": "B"}
    assert bellhop.backend.request("POST", "/v1/notifications", draft).status == 201
    assert stream.next("notification:created").id


@cites("S-ID-5")
def test_warning_and_end_of_a_stream_have_no_ids(bellhop):
    stream = bellhop.user(exp=int(time.time()) + 3).open()
    assert stream.next("stream:expiring").id is None
    assert stream.next("stream:closing").id is None


@cites("S-ID-5")
def test_state_of_a_topic_has_no_id(bellhop, user):
    stream = user.open(topics=[f"queue:{bellhop.shop()}"])
    assert stream.next("queue:update").id is None


@cites("S-ID-6")
def test_block_with_only_an_id_moves_the_position(bellhop, user):
    """The service sends such a block after missed rows."""
    stream = user.open()
    subscription = {"tables": [{"table": "notes", "id": "kit"}], "lastEventId": stream.last_id}
    answer = user.request("PUT", f"/v1/streams/{stream.name}/subscriptions", subscription)
    assert answer.status == 200
    block = stream.find(lambda block: [line.partition(b":")[0] for line in block.lines] == [b"id"], "a block with only an id")
    user.send(1)
    user.drain(stream)
    resumed = user.open(last=block.id)
    assert json.loads(user.drain(resumed)[0].data) == {"number": 1}
