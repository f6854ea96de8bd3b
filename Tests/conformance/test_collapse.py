"""Cases about states that collapse in a replay."""

from kit.citing import cites


def replay_of(user, stream, **options):
    return user.steps(user.open(last=stream.ready.id, **options))


@cites("S-COLLAPSE-1")
def test_replay_has_the_newest_event_of_a_state(user):
    stream = user.open()
    for number in range(5):
        user.send(number, collapse="state")
    assert replay_of(user, stream) == [4]


@cites("S-COLLAPSE-1")
def test_newest_event_of_one_request_wins(user):
    stream = user.open()
    user.send(1, 2, 3, collapse="state")
    assert replay_of(user, stream) == [3]


@cites("S-COLLAPSE-2")
def test_other_names_are_other_states(user):
    stream = user.open()
    user.send(1, collapse="one")
    user.send(2, collapse="two")
    user.send(3, collapse="one")
    assert replay_of(user, stream) == [2, 3]


@cites("S-COLLAPSE-2")
def test_other_topics_have_other_states(bellhop, user):
    rooms = [f"room:{bellhop.name('room')}" for _ in range(2)]
    stream = user.open()
    user.send(1, topic=rooms[0], collapse="state")
    user.send(2, topic=rooms[1], collapse="state")
    user.send(3, collapse="state")
    assert replay_of(user, stream, topics=rooms) == [1, 2, 3]


@cites("S-COLLAPSE-3")
def test_events_without_a_state_are_kept(user):
    stream = user.open()
    user.send(1, 1, 1)
    assert replay_of(user, stream) == [1, 1, 1]


@cites("S-COLLAPSE-4")
def test_newest_event_keeps_its_place_and_its_id(user):
    stream = user.open()
    user.send(1, collapse="state")
    user.send(2)
    user.send(3, collapse="state")
    user.send(4)
    live = {event.data: event.id for event in user.drain(stream)}
    resumed = user.open(last=stream.ready.id)
    events = [event for event in user.drain(resumed) if event.name == "kit:step"]
    assert [event.data for event in events] == ['{"number":2}', '{"number":3}', '{"number":4}']
    assert all(live[event.data] == event.id for event in events)
    assert user.steps(user.open(last=events[0].id)) == [3, 4]
