"""Cases about the bytes of a stream."""

import json

import pytest
from kit.citing import cites

# Characters that break careless encoders: controls, separators that are line ends elsewhere, and all lengths of UTF-8.
TEXTS = {
    "quotes": 'a "quoted" \\ text', "line ends": "a\nb\r\nc\rd", "separators": "a\u2028b\u2029c\u0085d", "nul": "a\u0000b",
    "controls": "".join(map(chr, range(1, 32))), "umlauts": "Grüße", "kana": "かな", "emoji": "👩‍👩‍👧 𝄞", "bom": "\ufeffa",
    "noncharacter": "a\ufffeb", "fields": "data: x\nid: y\nevent: z\n\n", "empty": "",
}


def traffic(user):
    """Returns a stream with a variety of events."""
    stream = user.open()
    for text in TEXTS.values():
        user.bellhop.publish(user.event(1, data={"number": 1, "text": text}))
    user.drain(stream)
    stream.heartbeat()
    return stream


@cites("S-FRAME-1")
def test_body_is_utf_8_without_a_byte_order_mark(user):
    stream = traffic(user)
    assert not stream.raw.startswith(b"\xef\xbb\xbf")
    complete = stream.raw[: stream.raw.rindex(b"\n") + 1]
    complete.decode("utf-8", errors="strict")


@cites("S-FRAME-2")
def test_lines_end_with_lf(user):
    assert b"\r" not in traffic(user).raw


@cites("S-FRAME-3")
def test_lines_are_known_fields_or_comments(user):
    for block in traffic(user).blocks:
        for line in block.lines:
            assert line.partition(b":")[0] in (b"", b"event", b"data", b"id", b"retry"), line


@cites("S-FRAME-4")
def test_event_has_one_name_and_data(user):
    for event in (block for block in traffic(user).blocks if block.name is not None or block.data is not None):
        fields = [line.partition(b":")[0] for line in event.lines]
        assert fields.count(b"event") == 1, event
        assert fields.count(b"data") >= 1, event


@cites("S-FRAME-5")
def test_data_is_one_json_value(user):
    for event in traffic(user).events:
        json.loads(event.data)


@cites("S-FRAME-6")
@pytest.mark.parametrize("name", TEXTS)
def test_published_text_arrives_unchanged(user, name):
    stream = user.open()
    user.bellhop.publish(user.event(1, data={"number": 1, "text": TEXTS[name]}))
    (event,) = user.drain(stream)
    assert json.loads(event.data)["text"] == TEXTS[name]


@cites("S-FRAME-6")
@pytest.mark.parametrize("value", [None, True, 0, -1.5, 2**53, "text", [], {}, [1, [2, {"a": None}]], {"é": {"": []}}])
def test_published_value_arrives_unchanged(user, value):
    stream = user.open()
    user.bellhop.publish({"event": "kit:value", "to": [user.key], "data": value})
    (event,) = user.drain(stream)
    assert json.loads(event.data) == value


@cites("S-FRAME-6")
def test_long_data_arrives_whole(bellhop, user):
    text = "x" * (bellhop.configuration()["publish"]["dataBytesMax"] - 100)
    stream = user.open()
    bellhop.publish(user.event(1, data={"number": 1, "text": text}))
    (event,) = user.drain(stream)
    assert json.loads(event.data)["text"] == text


@cites("S-FRAME-7")
def test_stream_begins_with_the_pause_before_reconnecting(bellhop, user):
    stream = user.open()
    assert stream.blocks[0].retry == str(bellhop.configuration()["stream"]["retryMilliseconds"])


@cites("S-FRAME-8")
@pytest.mark.parametrize("name", ["order:moved", "a", "kit.v2:some_thing-else", "x" * 64])
def test_event_has_the_published_name(user, name):
    stream = user.open()
    user.bellhop.publish({"event": name, "to": [user.key], "data": 1})
    (event,) = user.drain(stream)
    assert event.name == name


@cites("S-FRAME-11")
@pytest.mark.parametrize("name", ["stream:ready", "stream:closing", "badges:update", "notification:created", "stream"])
def test_reserved_name_cannot_be_published(bellhop, user, name):
    answer = bellhop.backend.request("POST", "/v1/publish", {"event": name, "to": [user.key], "data": {}})
    assert answer.status == 422


@cites("S-FRAME-11")
@pytest.mark.parametrize("name", ["a\nid: 1", "a\rdata: 1", "a b", ""])
def test_name_cannot_break_the_framing(bellhop, user, name):
    answer = bellhop.backend.request("POST", "/v1/publish", {"event": name, "to": [user.key], "data": {}})
    assert answer.status == 422
