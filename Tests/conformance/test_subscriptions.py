"""Cases about the subscriptions of an open stream."""

import json

import pytest
from kit.citing import cites


def address(stream):
    return f"/v1/streams/{stream.name}/subscriptions"


def put(user, stream, **members):
    return user.request("PUT", address(stream), members)


def change(bellhop, row, kind="INSERT"):
    record = None if kind == "DELETE" else row
    return {"type": kind, "schema": "public", "table": "notes", "record": record, "old_record": row if record is None else None}


def row_of(user, **columns):
    bellhop = user.bellhop
    return {"id": bellhop.name("note"), "owner": user.id, "tenant": bellhop.tenant, **columns}


def rows(events):
    return [json.loads(event.data) for event in events if event.name == "table:change"]


@pytest.fixture
def room(bellhop):
    return f"room:{bellhop.name('room')}"


@cites("S-SUB-1")
def test_subscriptions_of_a_stream_are_listed(user, room):
    stream = user.open(topics=[room])
    answer = user.request("GET", address(stream))
    assert (answer.status, answer.json) == (200, {"topics": ["personal", room], "tables": []})


@cites("S-SUB-1")
def test_table_subscriptions_are_listed(user):
    stream = user.open()
    put(user, stream, tables=[{"id": "a", "table": "notes", "filter": "kind=eq.x"}])
    (table,) = user.request("GET", address(stream)).json["tables"]
    assert (table["id"], table["table"], table["filter"]) == ("a", "notes", "kind=eq.x")


@cites("S-SUB-2")
def test_topics_are_replaced_on_the_open_stream(bellhop, user, room):
    other = f"room:{bellhop.name('room')}"
    stream = user.open(topics=[room])
    assert put(user, stream, topics=[other]).json["topics"] == ["personal", other]
    user.send(1, topic=room)
    user.send(2, topic=other)
    assert user.steps(stream) == [2]


@cites("S-SUB-3")
def test_omitted_topics_stay(user, room):
    stream = user.open(topics=[room])
    assert put(user, stream, tables=[]).json["topics"] == ["personal", room]
    user.send(1, topic=room)
    assert user.steps(stream) == [1]


@cites("S-SUB-3")
def test_omitted_tables_stay(bellhop, user):
    stream = user.open()
    put(user, stream, tables=[{"id": "a", "table": "notes"}])
    assert [table["id"] for table in put(user, stream, topics=[]).json["tables"]] == ["a"]
    bellhop.changes(change(bellhop, row_of(user)))
    assert len(rows(user.drain(stream))) == 1


@cites("S-SUB-4")
def test_request_without_a_member_is_refused(user):
    assert put(user, user.open()).status == 422


@cites("S-SUB-5")
@pytest.mark.parametrize("wrong", [{"topics": ["nothing:1"]}, {"topics": [], "tables": [{"table": "notes", "filter": "x"}]}])
def test_refused_request_changes_nothing(user, room, wrong):
    stream = user.open(topics=[room])
    assert put(user, stream, **wrong).status == 422
    assert user.request("GET", address(stream)).json["topics"] == ["personal", room]
    user.send(1, topic=room)
    assert user.steps(stream) == [1]


@cites("S-SUB-6")
@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_stream_of_another_user_is_not_found(bellhop, user, method):
    body = {"topics": []} if method == "PUT" else None
    assert bellhop.user().request(method, address(user.open()), body).status == 404


@cites("S-SUB-6")
def test_unknown_stream_is_not_found(user):
    assert user.request("GET", "/v1/streams/unknown/subscriptions").status == 404


@cites("S-SUB-6")
def test_ended_stream_is_not_found(user, eventually):
    stream = user.open()
    stream.close()
    eventually(lambda: user.request("GET", address(stream)).status == 404, "the end of the stream")


@cites("S-SUB-7")
def test_states_of_added_topics_are_sent(bellhop, user):
    shop = bellhop.shop()
    stream = user.open()
    assert put(user, stream, topics=[f"queue:{shop}"]).status == 200
    assert json.loads(stream.next("queue:update").data)["shopId"] == shop


@cites("S-SUB-8")
@pytest.mark.parametrize("kind", ["INSERT", "UPDATE", "DELETE"])
def test_change_of_a_row_arrives(bellhop, user, kind):
    stream = user.open()
    assert put(user, stream, tables=[{"id": "mine", "table": "notes"}]).status == 200
    row = row_of(user, text="a")
    if kind != "INSERT":
        bellhop.changes(change(bellhop, row))
    last = change(bellhop, {**row, "text": "b"} if kind == "UPDATE" else row, kind)
    bellhop.changes({**last, "old_record": row} if kind == "UPDATE" else last)
    found = rows(user.drain(stream))[-1]
    assert (found["subscriptionIds"], found["type"], found["table"]) == (["mine"], kind, "notes")


@cites("S-SUB-9")
def test_row_outside_the_filter_does_not_arrive(bellhop, user):
    stream = user.open()
    put(user, stream, tables=[{"id": "a", "table": "notes", "filter": "kind=eq.yes"}])
    bellhop.changes(change(bellhop, row_of(user, kind="no")))
    bellhop.changes(change(bellhop, row_of(user, kind="yes")))
    assert [row["record"]["kind"] for row in rows(user.drain(stream))] == ["yes"]


@cites("S-SUB-10")
def test_position_without_tables_is_refused(user):
    stream = user.open()
    assert put(user, stream, topics=[], lastEventId=stream.last_id).status == 422


@cites("S-SUB-11")
def test_missed_rows_precede_the_new_position(bellhop, user):
    old = user.open()
    user.send(1)
    user.drain(old)
    old.close()
    row = row_of(user)
    bellhop.changes(change(bellhop, row))
    stream = user.open()
    assert put(user, stream, tables=[{"id": "a", "table": "notes"}], lastEventId=old.last_id).status == 200
    event = stream.next("table:change")
    assert (event.id, json.loads(event.data)["record"]["id"]) == (None, row["id"])
    following = stream.take()
    assert [line.partition(b":")[0] for line in following.lines] == [b"id"]
    assert user.drain(user.open(last=following.id)) == []


@cites("S-SUB-11")
def test_rows_that_cannot_be_replayed_are_a_gap(user):
    stream = user.open()
    assert put(user, stream, tables=[{"id": "a", "table": "notes"}], lastEventId="unreadable").status == 200
    assert json.loads(stream.next("stream:resync").data) == {"reason": "gap"}


@cites("S-SUB-12")
@pytest.mark.parametrize(("members", "pointer"), [
    ({"topics": ["room:a", "nothing:1"]}, "/topics/1"),
    ({"tables": [{"table": "notes"}, {"table": "absent"}]}, "/tables/1/table"),
    ({"tables": [{"table": "notes", "filter": "kind"}]}, "/tables/0/filter"),
])
def test_refusal_names_the_place(user, members, pointer):
    answer = put(user, user.open(), **members)
    assert answer.status == 422
    assert [error["pointer"] for error in answer.json["errors"]] == [pointer]


@cites("S-SUB-12")
def test_refusal_names_the_forbidden_topic(bellhop, user):
    answer = put(user, user.open(), topics=["room:a", f"desk:{bellhop.name('desk')}"])
    assert (answer.status, answer.json["errors"][0]["pointer"]) == (403, "/topics/1")


@cites("S-SUB-13")
def test_stream_counts_its_traffic(user):
    stream = user.open()
    user.send(1, 2, 3)
    user.drain(stream)
    figures = user.request("GET", f"/v1/streams/{stream.name}").json
    assert figures["events"] == len(stream.events)
    assert figures["bytes"] == sum(len(block.encoded()) for block in stream.blocks if not block.is_heartbeat)


@cites("S-SUB-14")
def test_row_of_another_user_does_not_arrive(bellhop, user):
    other = bellhop.user()
    stream = user.open()
    put(user, stream, tables=[{"id": "a", "table": "notes"}])
    bellhop.changes(change(bellhop, row_of(other)), change(bellhop, row_of(user)))
    assert [row["record"]["owner"] for row in rows(user.drain(stream))] == [user.id]
