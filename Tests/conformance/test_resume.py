"""Cases about resuming."""

import json
import threading

from kit.citing import cites
from kit.service import numbers


def replayed(user, position, **options):
    """Returns the numbers of the events that a new stream receives after a position."""
    return user.steps(user.open(last=position, **options))


@cites("S-RESUME-1")
def test_missed_events_are_replayed(user):
    stream = user.open()
    user.send(1)
    user.drain(stream)
    stream.close()
    user.send(2, 3)
    user.send(4)
    assert replayed(user, stream.last_id) == [2, 3, 4]


@cites("S-RESUME-1")
def test_replay_of_many_events_is_complete(user):
    stream = user.open()
    for start in range(0, 900, 100):
        user.send(*range(start, start + 100))
    assert replayed(user, stream.last_id) == list(range(900))


@cites("S-RESUME-1")
def test_replay_of_many_bytes_is_complete(bellhop, user):
    stream = user.open()
    for start in range(0, 40, 10):
        bellhop.publish(*(user.event(1, data={"number": n, "text": "x" * 16_000}) for n in range(start, start + 10)))
    assert replayed(user, stream.last_id) == list(range(40))


@cites("S-RESUME-2")
def test_events_up_to_the_id_are_not_repeated(user):
    stream = user.open()
    user.send(*range(10))
    events = user.drain(stream)
    for number in (0, 4, 9):
        assert replayed(user, events[number].id) == list(range(number + 1, 10))


@cites("S-RESUME-2")
def test_newest_id_replays_nothing(user):
    stream = user.open()
    user.send(1, 2)
    user.drain(stream)
    resumed = user.open(last=stream.last_id)
    assert resumed.about["replayed"] == 0
    assert user.drain(resumed) == []


@cites("S-RESUME-3")
def test_replayed_events_equal_the_first_delivery(bellhop, user):
    stream = user.open()
    position = stream.last_id
    for text in ("Grüße", "a\nb", "👩‍👩‍👧"):
        bellhop.publish(user.event(1, data={"number": 1, "text": text}))
        bellhop.publish({"event": "kit:other", "to": [user.key], "data": [text]})
    live = user.drain(stream)
    again = user.drain(user.open(last=position))
    assert again[: len(live)] == live


@cites("S-RESUME-4")
def test_ready_has_the_position_before_the_replay(user):
    stream = user.open()
    user.send(1, 2, 3)
    position = user.drain(stream)[0].id
    assert user.open(last=position).ready.id == position


@cites("S-RESUME-5")
def test_nothing_is_replayed_without_an_id(user):
    user.open()
    user.send(1, 2)
    stream = user.open()
    assert stream.about["replayed"] == 0
    assert user.steps(stream) == []


@cites("S-RESUME-6")
def test_empty_id_is_no_id(user):
    user.open()
    user.send(1, 2)
    stream = user.open(last="")
    assert user.drain(stream) == []


@cites("S-RESUME-7")
def test_parameter_resumes_like_the_header(user):
    stream = user.open()
    user.send(1, 2)
    position = user.drain(stream)[0].id
    assert user.steps(user.open(query={"lastEventId": position})) == [2]


@cites("S-RESUME-8")
def test_id_of_another_user_grants_no_access(bellhop, user):
    other = bellhop.user()
    stream = other.open()
    other.send(1, 2)
    user.send(3)
    other.drain(stream)
    assert replayed(user, stream.ready.id) == [3]


@cites("S-RESUME-8")
def test_id_of_another_tenant_grants_no_access(bellhop, user):
    stream = user.open()
    user.send(1, 2)
    twin = bellhop.user(user.id, tenant=bellhop.name("tenant"))
    resumed = twin.open(last=stream.last_id)
    resumed.heartbeat()
    assert numbers(resumed.events) == []


@cites("S-RESUME-9")
def test_events_during_a_replay_are_neither_lost_nor_repeated(user):
    stream = user.open()
    for start in range(0, 300, 100):
        user.send(*range(start, start + 100))
    writer = threading.Thread(target=lambda: [user.send(number) for number in range(300, 340)])
    writer.start()
    resumed = user.open(last=stream.last_id)
    writer.join()
    assert user.steps(resumed) == list(range(340))


@cites("S-RESUME-9")
def test_events_of_every_break_arrive_once(user):
    stream, received = user.open(), []
    for round_ in range(8):
        user.send(2 * round_)
        received += user.steps(stream)
        stream.close()
        user.send(2 * round_ + 1)
        stream = user.open(last=stream.last_id)
    received += user.steps(stream)
    assert received == list(range(16))


@cites("S-RESUME-10")
def test_replay_has_the_events_of_the_named_topics(bellhop, user):
    named, other = f"room:{bellhop.name('room')}", f"room:{bellhop.name('room')}"
    stream = user.open()
    user.send(1, topic=named)
    user.send(2, topic=other)
    user.send(3)
    assert replayed(user, stream.last_id, topics=[named]) == [1, 3]


@cites("S-RESUME-11")
def test_replay_survives_a_restart(process):
    user = process.user()
    stream = user.open()
    user.send(1, 2)
    position = user.drain(stream)[0].id
    user.send(3)
    process.process.stop()
    process.process.start()
    assert replayed(user, position) == [2, 3]


@cites("S-RESUME-11")
def test_replay_survives_a_kill(process):
    user = process.user()
    stream = user.open()
    user.send(1, 2, 3)
    process.process.kill()
    process.process.start()
    assert replayed(user, stream.last_id) == [1, 2, 3]


@cites("S-RESUME-12")
def test_id_of_ready_is_a_position(user):
    stream = user.open()
    user.send(1)
    assert replayed(user, stream.ready.id) == [1]


@cites("S-RESUME-12")
def test_id_of_resync_is_a_position(user):
    resync = user.open(last="unreadable").next("stream:resync")
    user.send(1)
    resumed = user.open(last=resync.id)
    assert [event.name for event in user.drain(resumed)] == ["kit:step"]


@cites("S-RESUME-13")
def test_same_request_has_the_same_replay(user):
    stream = user.open()
    user.send(*range(5))
    user.drain(stream)
    first, second = (user.open(last=stream.ready.id) for _ in range(2))
    again = [[first.next("kit:step") for _ in range(5)], [second.next("kit:step") for _ in range(5)]]
    assert again[0] == again[1]


@cites("S-RESUME-15")
def test_id_from_another_stream_is_a_position(user):
    first, second = user.open(), user.open()
    user.send(1, 2)
    first.close()
    position = user.drain(second)[0].id
    assert replayed(user, position) == [2]


@cites("S-RESUME-15")
def test_id_of_an_invisible_event_is_a_position(bellhop, user):
    """The position belongs to an event that this user never receives."""
    other = bellhop.user()
    stream = other.open()
    other.send(7)
    position = other.drain(stream)[0].id
    user.send(1)
    assert json.loads(user.open(last=position).next().data) == {"number": 1}
