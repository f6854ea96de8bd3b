"""Cases about heartbeats."""

from kit.citing import cites


@cites("S-BEAT-1")
def test_idle_stream_has_a_heartbeat(user):
    assert user.open().heartbeat().comments


@cites("S-BEAT-2")
def test_heartbeat_is_only_a_comment(user):
    stream = user.open()
    stream.heartbeat()
    later = stream.blocks[stream.blocks.index(next(block for block in stream.blocks if block.comments)):]
    assert all(block.is_comment for block in later), later


@cites("S-BEAT-2")
def test_idle_stream_has_no_events(user):
    stream = user.open()
    stream.heartbeat()
    stream.heartbeat()
    assert [event.name for event in stream.events] == ["stream:ready"]


@cites("S-BEAT-3")
def test_configuration_has_the_interval(bellhop):
    assert bellhop.configuration()["stream"]["heartbeatSeconds"] >= 1


@cites("S-BEAT-5")
def test_heartbeats_continue(user):
    stream = user.open()
    for _ in range(3):
        stream.heartbeat()


@cites("S-BEAT-5")
def test_heartbeats_continue_after_an_event(user):
    stream = user.open()
    stream.heartbeat()
    user.send(1)
    user.drain(stream)
    stream.heartbeat()
