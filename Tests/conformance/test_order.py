"""Cases about the order of events."""

from kit.citing import cites
from kit.service import numbers


@cites("S-ORDER-1")
def test_events_arrive_in_the_order_of_their_requests(user):
    stream = user.open()
    for number in range(30):
        user.send(number)
    assert user.steps(stream) == list(range(30))


@cites("S-ORDER-1")
def test_events_of_topics_and_of_the_user_share_one_order(bellhop, user):
    room = f"room:{bellhop.name('room')}"
    stream = user.open(topics=[room])
    for number in range(0, 20, 2):
        user.send(number)
        user.send(number + 1, topic=room)
    assert user.steps(stream) == list(range(20))


@cites("S-ORDER-2")
def test_events_of_one_request_keep_their_order(user):
    stream = user.open()
    user.send(*range(100))
    assert user.steps(stream) == list(range(100))


@cites("S-ORDER-3")
def test_event_arrives_once(user):
    stream = user.open()
    user.send(1, 2, 3)
    assert sorted(user.steps(stream)) == [1, 2, 3]
    stream.heartbeat()
    assert sorted(numbers(stream.events)) == [1, 2, 3]


@cites("S-ORDER-3")
def test_event_for_several_keys_of_a_user_arrives_once(bellhop, user):
    stream = user.open()
    bellhop.publish({"event": "kit:step", "to": [user.key, "everyone", user.key], "data": {"number": 1}})
    assert user.steps(stream) == [1]


@cites("S-ORDER-4")
def test_event_reaches_every_stream_of_the_user(user):
    streams = [user.open() for _ in range(5)]
    user.send(1)
    for stream in streams:
        assert stream.next("kit:step").data == '{"number":1}'


@cites("S-ORDER-4")
def test_event_for_everyone_reaches_every_user(bellhop):
    streams = [bellhop.user().open() for _ in range(5)]
    bellhop.publish({"event": "kit:everyone", "to": ["everyone"], "data": 1})
    for stream in streams:
        assert stream.next("kit:everyone").data == "1"
