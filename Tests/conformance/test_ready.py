"""Cases about the first event of a stream."""

from kit.citing import cites

MEMBERS = {"streamId", "userId", "tenant", "identity", "topics", "replayed", "badges", "serverTime"}


@cites("S-READY-1")
def test_first_event_is_ready(user):
    assert user.connect().next().name == "stream:ready"


@cites("S-READY-1")
def test_first_event_is_ready_also_before_a_replay(user):
    stream = user.open()
    position = stream.last_id
    user.send(1, 2, 3)
    assert user.connect(last=position).next().name == "stream:ready"


@cites("S-READY-2")
def test_ready_is_sent_once(user):
    stream = user.open()
    user.send(1, 2)
    user.drain(stream)
    stream.heartbeat()
    assert [event.name for event in stream.events].count("stream:ready") == 1


@cites("S-READY-3")
def test_ready_has_an_id(user):
    assert user.open().ready.id


@cites("S-READY-4")
def test_ready_has_its_members(user):
    assert set(user.open().about) - {"omittedKeys"} == MEMBERS


@cites("S-READY-5")
def test_ready_names_user_and_tenant_of_the_token(bellhop, user):
    about = user.open().about
    assert (about["userId"], about["tenant"]) == (user.id, bellhop.tenant)


@cites("S-READY-6")
def test_ready_lists_topics_in_the_order_of_the_request(bellhop, user):
    topics = [f"room:{bellhop.name('b')}", f"room:{bellhop.name('a')}", f"queue:{bellhop.name('shop')}"]
    assert user.open(topics=topics).about["topics"] == ["personal", *topics]


@cites("S-READY-7")
def test_stream_ids_differ(bellhop, user):
    streams = [user.open(), user.open(), bellhop.user().open()]
    assert len({stream.name for stream in streams}) == 3


@cites("S-READY-8")
def test_counts_of_ready_are_those_of_badges(bellhop, user):
    draft = {"userId": user.id, "category": "system", "priority": "NORMAL", "title": "A", "message": "B"}
    assert bellhop.backend.request("POST", "/v1/notifications", draft).status == 201
    badges = user.open().about["badges"]
    current = user.request("GET", "/v1/badges").json
    assert badges["bell"] == 1
    assert {**badges, "asOf": None} == {**current, "asOf": None}


@cites("S-READY-9")
def test_replayed_counts_the_events_of_the_replay(user):
    stream = user.open()
    user.send(*range(7))
    assert user.open(last=stream.last_id).about["replayed"] == 7


@cites("S-READY-9")
def test_replayed_is_zero_without_a_replay(user):
    user.open()
    user.send(1, 2)
    assert user.open().about["replayed"] == 0
