"""Cases about replays that are not possible."""

import json

import pytest
from kit.citing import cites

UNREADABLE = ["x", "0", "-", "a-b", "a-" + "b" * 12, "é", "{}", "x" * 64, "abc_def-0000000000000"]


def reason(event):
    assert event.name == "stream:resync"
    return json.loads(event.data)["reason"]


def of_log(stream, position):
    """Returns an id with the epoch of the service."""
    return stream.ready.id.rpartition("-")[0] + "-" + position


@cites("S-GAP-1")
@pytest.mark.parametrize("last", UNREADABLE)
def test_unreadable_id_is_a_gap(user, last):
    assert reason(user.open(last=last.encode().decode("latin-1")).next()) == "gap"


@cites("S-GAP-1")
def test_long_id_is_a_gap(user):
    assert reason(user.open(last="a" * 1000).next()) == "gap"


@cites("S-GAP-2")
def test_id_of_another_log_is_another_epoch(user):
    position = user.open().ready.id.rpartition("-")[2]
    assert reason(user.open(last=f"foreign-{position}").next()) == "epoch"


@cites("S-GAP-3")
@pytest.mark.parametrize("position", ["0000000000000", "zzzzzzzzzzzzz", "1234567890abc"])
def test_made_up_position_is_a_gap(user, position):
    assert reason(user.open(last=of_log(user.open(), position)).next()) == "gap"


@cites("S-GAP-4")
def test_too_many_events_are_a_gap(user):
    stream = user.open()
    position = stream.ready.id
    for start in range(0, 1100, 100):
        user.send(*range(start, start + 100))
    assert reason(user.open(last=position).next()) == "gap"


@cites("S-GAP-5")
def test_resync_follows_ready(bellhop, user):
    stream = user.open(last="unreadable", topics=[f"queue:{bellhop.shop()}"])
    assert stream.next().name == "stream:resync"
    assert stream.next().name == "queue:update"


@cites("S-GAP-6")
@pytest.mark.parametrize("last", ["unreadable", "foreign-0000000000000"])
def test_nothing_is_replayed_after_a_gap(user, last):
    user.open()
    user.send(1, 2)
    stream = user.open(last=last)
    assert stream.about["replayed"] == 0
    assert user.steps(stream) == []


@cites("S-GAP-7")
def test_complete_replay_has_no_resync(user):
    stream = user.open()
    user.send(1, 2)
    resumed = user.open(last=stream.last_id)
    assert "stream:resync" not in [event.name for event in user.drain(resumed)]


@cites("S-GAP-7")
def test_first_stream_has_no_resync(user):
    assert user.drain(user.open()) == []


@cites("S-GAP-8")
def test_stream_goes_on_after_a_gap(user):
    stream = user.open(last="unreadable")
    user.send(1, 2)
    assert user.steps(stream) == [1, 2]


@cites("S-GAP-9")
def test_resync_has_an_id(user):
    assert user.open(last="unreadable").next("stream:resync").id


@cites("S-GAP-10")
def test_slow_reader_learns_that_events_are_missing(bellhop, user):
    """The client reads nothing while more is published than sockets and the service hold."""
    stream = user.open(receive_bytes=4096)
    text = "x" * 16_000
    for start in range(0, 1200, 60):
        bellhop.publish(*(user.event(1, data={"number": n, "text": text}) for n in range(start, start + 60)))
    bellhop.publish({"event": "kit:last", "to": [user.key], "data": None})
    received, expected = [], 0
    while (block := stream.take()) is not None and block.name not in ("stream:resync", "stream:closing", "kit:last"):
        if block.name == "kit:step":
            received.append(json.loads(block.data)["number"])
            expected += 1
    assert received == list(range(expected)), "events are missing before the notice"
    if block is not None and block.name == "kit:last":
        assert expected == 1200, "events are missing without a notice"
    if block is not None and block.name == "stream:resync":
        assert reason(block) == "overflow"
