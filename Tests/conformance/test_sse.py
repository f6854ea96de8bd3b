"""Cases that every server of Server-Sent Events can pass. `--server` selects the server; the default is Bellhop.

They follow the WHATWG standard for server-sent events and RFC 9110. Their numbers are those of Bellhop's own sentences.
"""

import pytest
from kit.citing import cites

# Texts that broke encoders of other servers: line ends of all kinds, fields inside data, and characters of all lengths.
TEXTS = {
    "plain": "text", "umlauts": "Grüße", "emoji": "👩‍👩‍👧 𝄞", "two lines": "a\nb", "leading space": "  a", "colon": ":a", "fields": "id: x\nevent: y",
    "long": "x" * 15_000, "separators": "a\u2028b\u0085c",
}


@pytest.fixture
def channel(server):
    return server.channel()


@pytest.fixture
def stream(server, channel):
    """A stream whose subscription is in force."""
    return subscribed(server, channel)


def subscribed(server, channel, **options):
    """Returns a stream after its first own block, or after a heartbeat where a server begins with silence."""
    stream = server.connect(channel, **options)
    assert stream.status == 200
    stream.take()
    return stream


def next_text(server, stream):
    event = stream.find(lambda block: block.is_event and not server.is_own(block), "an event")
    return server.text_of(event)


@cites("S-OPEN-1")
def test_sse_status_and_content_type(stream):
    assert stream.status == 200
    assert stream.header("content-type").split(";")[0].strip().lower() == "text/event-stream"


@cites("S-OPEN-1")
def test_sse_charset_is_utf_8_or_absent(stream):
    kind = stream.header("content-type").lower().replace(" ", "").replace('"', "")
    assert kind in ("text/event-stream", "text/event-stream;charset=utf-8")


@cites("S-OPEN-2")
def test_sse_is_not_cached(stream):
    assert {"no-store", "no-cache"} & set((stream.header("cache-control") or "").replace(" ", "").split(","))


@cites("S-OPEN-3")
def test_sse_turns_off_buffering_of_proxies(stream):
    assert stream.header("x-accel-buffering") == "no"


@cites("S-OPEN-4")
def test_sse_has_no_length(stream):
    assert stream.header("content-length") is None


@cites("S-OPEN-9")
def test_sse_head_has_no_body_and_ends(server, channel):
    answer = server.request("HEAD", channel)
    assert answer.status in (200, 405)
    assert answer.body == b""
    if answer.status == 200:
        assert answer.header("content-type").startswith("text/event-stream")


@cites("S-OPEN-10")
def test_sse_refuses_other_methods_with_405(server, channel):
    answer = server.request("DELETE", channel)
    assert answer.status == 405


@cites("S-OPEN-10")
def test_sse_405_lists_the_methods(server, channel):
    answer = server.request("DELETE", channel)
    assert answer.status == 405
    assert "GET" in (answer.header("allow") or "")


@cites("S-ORDER-4")
def test_sse_event_arrives(server, channel, stream):
    server.publish(channel, "a")
    assert next_text(server, stream) == "a"


@cites("S-ORDER-4")
def test_sse_event_reaches_all_subscribers(server, channel, stream):
    others = [subscribed(server, channel) for _ in range(3)]
    server.publish(channel, "a")
    assert [next_text(server, each) for each in (stream, *others)] == ["a"] * 4


@cites("S-ORDER-1")
def test_sse_events_keep_their_order(server, channel, stream):
    for number in range(20):
        server.publish(channel, str(number), "kit:step")
    assert [next_text(server, stream) for _ in range(20)] == [str(number) for number in range(20)]


@cites("S-FRAME-6")
@pytest.mark.parametrize("name", TEXTS)
def test_sse_text_arrives_unchanged(server, channel, stream, name):
    server.publish(channel, TEXTS[name])
    assert next_text(server, stream) == TEXTS[name]


@cites("S-FRAME-4")
@pytest.mark.parametrize("end", [pytest.param("\n", id="LF"), pytest.param("\r", id="CR"), pytest.param("\r\n", id="CRLF")])
def test_sse_text_cannot_add_fields(server, channel, stream, end):
    server.publish(channel, f"a{end}id: forged{end}event: forged{end}{end}data: b")
    event = stream.find(lambda block: block.is_event and not server.is_own(block), "an event")
    assert event.name == "kit:text"
    assert event.id != "forged"


@cites("S-FRAME-8")
def test_sse_event_has_its_name(server, channel, stream):
    server.publish(channel, "a", "order:moved")
    assert stream.find(lambda block: block.data is not None and not server.is_own(block), "an event").name == "order:moved"


@cites("S-FRAME-1")
def test_sse_body_is_utf_8(server, channel, stream):
    server.publish(channel, TEXTS["emoji"])
    next_text(server, stream)
    stream.raw[: stream.raw.rindex(b"\n")].decode("utf-8", errors="strict")


@cites("S-FRAME-1")
def test_sse_has_no_byte_order_mark(server, channel, stream):
    server.publish(channel, "a")
    next_text(server, stream)
    assert not stream.raw.startswith(b"\xef\xbb\xbf")


@cites("S-FRAME-3")
def test_sse_lines_are_known_fields(server, channel, stream):
    server.publish(channel, "a")
    next_text(server, stream)
    names = {line.partition(b":")[0] for block in stream.blocks for line in block.lines}
    assert names <= {b"", b"event", b"data", b"id", b"retry"}


@cites("S-FRAME-7")
def test_sse_retry_is_digits(server, channel, stream):
    server.publish(channel, "a")
    next_text(server, stream)
    assert all(block.retry.isdigit() for block in stream.blocks if block.retry is not None)


@cites("S-FRAME-2")
def test_sse_uses_one_line_end(server, channel, stream):
    server.publish(channel, "a")
    next_text(server, stream)
    assert (stream.raw.count(b"\r\n") in (0, stream.raw.count(b"\n"))) and b"\r" not in stream.raw.replace(b"\r\n", b"")
    if server.name == "Bellhop":
        assert b"\r" not in stream.raw


@cites("S-ID-4")
def test_sse_event_has_an_id(server, channel, stream):
    server.publish(channel, "a", "kit:step")
    assert stream.find(lambda block: block.is_event and not server.is_own(block), "an event").id


@cites("S-ID-2")
def test_sse_ids_differ(server, channel, stream):
    for _ in range(5):
        server.publish(channel, "a")
    found = [stream.find(lambda block: block.is_event and not server.is_own(block), "an event") for _ in range(5)]
    assert len({event.id for event in found}) == 5


@cites("S-ID-3")
def test_sse_subscribers_receive_the_same_id(server, channel, stream):
    other = subscribed(server, channel)
    server.publish(channel, "a")
    found = [each.find(lambda block: block.is_event and not server.is_own(block), "an event") for each in (stream, other)]
    assert found[0].id == found[1].id


@cites("S-ID-1")
def test_sse_id_can_travel_in_a_header(server, channel, stream):
    """A client sends the id as the value of `Last-Event-ID`."""
    server.publish(channel, "a")
    event = stream.find(lambda block: block.is_event and not server.is_own(block), "an event")
    assert event.id
    assert all("!" <= letter <= "~" for letter in event.id)


@cites("S-RESUME-1")
def test_sse_last_event_id_resumes(server, channel, stream, stored):
    for number in range(5):
        server.publish(channel, str(number))
    found = [stream.find(lambda block: block.is_event and not server.is_own(block), "an event") for _ in range(5)]
    resumed = server.connect(channel, last=found[1].id)
    assert [next_text(server, resumed) for _ in range(3)] == ["2", "3", "4"]


@cites("S-RESUME-2")
def test_sse_last_event_id_repeats_nothing(server, channel, stream, stored):
    server.publish(channel, "0")
    last = stream.find(lambda block: block.is_event and not server.is_own(block), "an event")
    resumed = subscribed(server, channel, last=last.id)
    server.publish(channel, "1")
    assert next_text(server, resumed) == "1"


@cites("S-GAP-1")
@pytest.mark.parametrize("last", ["unreadable", "0", "-1", pytest.param("a" * 100, id="long")])
def test_sse_unknown_id_is_no_error(server, channel, last):
    """EventSource gives up for good after any status but 200, so an error would end the client."""
    assert server.connect(channel, last=last).status == 200


@cites("S-BEAT-1")
def test_sse_idle_stream_has_comments(stream):
    assert stream.heartbeat().comments


@cites("S-BEAT-2")
def test_sse_comments_are_no_events(server, stream):
    stream.heartbeat()
    stream.heartbeat()
    assert [event.name for event in stream.events if not server.is_own(event)] == []


@pytest.fixture
def stored(server):
    """Selects the cases that need a server with a log of events."""
    if not server.stores_events:
        pytest.skip("the library leaves the storing of events to the app")
