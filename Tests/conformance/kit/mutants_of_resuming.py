"""Mutants that break resuming, gaps, collapse, positions, subscriptions and descriptions."""


from .edits import (
    added_event, at, body, data_of, dropped, each_event, events, field_of, header, is_opening, refuse, resumed, sent, status,
    with_fields, without_parameter, without_position,
)
from .mutation import Mutant, Response

STEPS = "kit:step"


# MARK: Resuming


def one_too_many(request, proxy):
    """A replay begins with the event that the client has."""
    sent_before = proxy.memory.setdefault("events", {})

    def handle(block):
        if block.name == "stream:ready" and request.position in sent_before:
            return [block, sent_before[request.position]]
        if block.is_event and block.id and not block.name.startswith("stream:"):
            sent_before[block.id] = block
        return [block]
    return handle


def first_positions(request, proxy):
    """Notes the first position of each user."""
    noted = proxy.memory.setdefault("positions", {})

    def handle(block):
        if block.name == "stream:ready":
            noted.setdefault(request.token, block.id)
        return [block]
    return handle


def replays_without_id(request, proxy):
    first = proxy.memory.get("positions", {}).get(request.token)
    if is_opening(request) and not request.position and first:
        request.set("Last-Event-ID", first)


def replays_after_a_gap(request, proxy):
    first = proxy.memory.get("positions", {}).get(request.token)
    if is_opening(request) and first and request.position in ("unreadable", "foreign-0000000000000"):
        request.set("Last-Event-ID", first)


def empty_is_unreadable(request, _):
    if is_opening(request) and request.header("Last-Event-ID") == "":
        request.set("Last-Event-ID", "unreadable")


def loses_the_first(request, proxy):
    lost = []

    def handle(block):
        if block.name == STEPS and not lost:
            lost.append(block)
            return []
        return [block]
    return handle


def loses_at_times(request, proxy):
    """Every other replay lacks an event."""
    number = proxy.memory["replays"] = proxy.memory.get("replays", 0) + 1
    return loses_the_first(request, proxy) if number % 2 == 0 else lambda block: [block]


def only_own_positions(request, proxy):
    """A position is known only to the stream that came from it, so a new stream begins afresh."""
    if is_opening(request) and request.position and request.position not in proxy.memory.get("positions", {}).values():
        without_position(request, proxy)


RESUMING = [
    Mutant("forgets-positions",
           "S-RESUME-1 S-RESUME-7 S-RESUME-8 S-RESUME-10 S-RESUME-11 S-RESUME-12 S-RESUME-13 S-RESUME-15 S-READY-9 S-CLOSE-8 "
           "S-POS-2 S-ID-6", "nothing is replayed", request=without_position),
    Mutant("one-too-many", "S-RESUME-2 S-PARAM-4", "a replay begins with the event that the client has", stream=one_too_many),
    Mutant("renames-replays", "S-RESUME-3", "replayed events have another name",
           stream=resumed(events("kit:other", lambda block: [with_fields(block, event="kit:replayed")]))),
    Mutant("position-after-replay", "S-RESUME-4", "stream:ready has a later position",
           stream=resumed(field_of("stream:ready", id="later-0000000000000"))),
    Mutant("always-replays", "S-RESUME-5 S-RESUME-6 S-READY-9", "events are replayed without an id", request=replays_without_id, stream=first_positions),
    Mutant("empty-is-unreadable", "S-RESUME-6", "an empty id is a gap", request=empty_is_unreadable),
    Mutant("no-parameter", "S-RESUME-7 S-POS-2", "lastEventId is ignored", request=without_parameter("lastEventId")),
    Mutant("loses-in-replays", "S-RESUME-9 S-RESUME-1", "a replay lacks an event", stream=resumed(loses_the_first)),
    Mutant("loses-at-times", "S-RESUME-13", "every other replay lacks an event", stream=resumed(loses_at_times)),
    Mutant("unusable-positions", "S-RESUME-12", "positions of notices are unusable",
           stream=field_of("stream:(ready|resync)", id="x-0000000000000")),
]


# MARK: Gaps


def refuses_unreadable(request, proxy):
    epoch, _, position = (request.position or "").rpartition("-")
    if is_opening(request) and request.position and not (epoch.isalnum() and len(position) == 13):
        refuse(is_opening, "request.malformed", 400)(request, proxy)


def late_resync(request, proxy):
    held = []

    def handle(block):
        if block.name == "stream:resync":
            held.append(block)
            return []
        if block.is_event and held:
            return [block, held.pop()]
        return [block]
    return handle


def stops_after_resync(request, proxy):
    stopped = []

    def handle(block):
        stopped.extend([block] if block.name == "stream:resync" else [])
        return [] if stopped and block.name == STEPS else [block]
    return handle


def needless_resync(block):
    return [block, added_event("stream:resync", {"reason": "gap"}, block.id)]


GAPS = [
    Mutant("refuses-unreadable-ids", "S-GAP-1", "an unreadable id is an error", request=refuses_unreadable),
    Mutant("no-resync", "S-GAP-1 S-GAP-2 S-GAP-3 S-GAP-4 S-GAP-5 S-GAP-9 S-GAP-10 S-EPOCH-3 S-SUB-11", "stream:resync is swallowed",
           stream=dropped("stream:resync")),
    Mutant("no-reason-epoch", "S-GAP-2 S-EPOCH-3", "another log is a gap",
           stream=data_of("stream:resync", lambda about: {"reason": "gap"})),
    Mutant("late-resync", "S-GAP-5", "stream:resync follows another event", stream=late_resync),
    Mutant("replays-after-a-gap", "S-GAP-6", "events are replayed after a gap", request=replays_after_a_gap, stream=first_positions),
    Mutant("needless-resync", "S-GAP-7", "every stream begins with stream:resync", stream=events("stream:ready", needless_resync)),
    Mutant("stops-after-a-gap", "S-GAP-8", "a stream carries nothing after a gap", stream=stops_after_resync),
    Mutant("resync-without-id", "S-GAP-9", "stream:resync has no id", stream=field_of("stream:resync", id=None)),
]


# MARK: Collapse


def collapses_all(request, proxy):
    held = []

    def handle(block):
        if block.name == STEPS:
            held[:] = [block]
            return []
        parts = [*held, block] if block.is_event else [block]
        held[:] = [] if block.is_event else held
        return parts
    return handle


COLLAPSE = [
    Mutant("never-collapses", "S-COLLAPSE-1 S-COLLAPSE-2 S-COLLAPSE-4", "states are not collapsed",
           request=each_event(lambda event: event.pop("collapse", None))),
    Mutant("collapses-all", "S-COLLAPSE-2 S-COLLAPSE-3", "all events are one state", stream=resumed(collapses_all)),
]


# MARK: Positions


def stale_state(request, answer, proxy):
    if request.path == "/v1/badges" and answer.status == 200:
        answer.body = proxy.memory.setdefault(request.token, answer.body)


POSITIONS = [
    Mutant("no-position", "S-POS-1 S-POS-2 S-POS-4 S-POS-5", "reads have no position", answer=header("event-position", None, lambda _: True)),
    Mutant("position-of-writes", "S-POS-3", "writes have a position",
           answer=header("event-position", "x-0000000000000", lambda request: request.method == "POST")),
    Mutant("position-as-number", "S-POS-4", "a position is a number", answer=header("event-position", "42", at("/v1/badges"))),
    Mutant("stale-state", "S-POS-5", "reads return an old state", answer=stale_state),
]


# MARK: Subscriptions

SUBSCRIPTIONS = at(r"/v1/streams/[^/]+/subscriptions")
REPLACE = at(r"/v1/streams/[^/]+/subscriptions", "PUT")


def ignores_replacements(request, _):
    if REPLACE(request) and request.json is not None:
        topics = ["personal", *request.json.get("topics", [])]
        request.answer = Response.of_json(200, {"topics": topics, "tables": request.json.get("tables", [])})


def clears_the_rest(value):
    return {"topics": [], "tables": [], **value}


def valid_part(value):
    value["topics"] = [topic for topic in value.get("topics", []) if topic.startswith("room:")]
    value["tables"] = [table for table in value.get("tables", []) if "filter" not in table]


def without_filters(value):
    for table in value.get("tables", []):
        table.pop("filter", None)


def rows_of_the_last(value):
    """Gives all rows to the owner of the last one."""
    for change in value:
        change["record"]["owner"] = value[-1]["record"]["owner"]


def hides_subscriptions(request, answer, _):
    if SUBSCRIPTIONS(request) and request.method == "GET" and answer.status == 200:
        answer.json = {"topics": ["personal"], "tables": []}


def without_last_event_id(value):
    value.pop("lastEventId", None)


SUBSCRIBING = [
    Mutant("hides-subscriptions", "S-SUB-1", "subscriptions are not listed", answer=hides_subscriptions),
    Mutant("ignores-replacements", "S-SUB-1 S-SUB-2 S-SUB-7 S-SUB-9", "new subscriptions have no effect", request=ignores_replacements),
    Mutant("clears-the-rest", "S-SUB-3", "an omitted member is cleared", request=sent(REPLACE, clears_the_rest)),
    Mutant("accepts-any-replacement", "S-SUB-4 S-SUB-10 S-SUB-12", "invalid replacements are accepted", answer=status(422, 200, REPLACE)),
    Mutant("applies-the-valid-part", "S-SUB-5", "the valid part of a request is applied", request=sent(REPLACE, valid_part)),
    Mutant("shows-any-stream", "S-SUB-6", "streams of others are shown", answer=status(404, 200, SUBSCRIPTIONS)),
    Mutant("no-rows", "S-SUB-8 S-SUB-3 S-SUB-14", "changes of rows do not arrive", stream=dropped("table:change")),
    Mutant("ignores-filters", "S-SUB-9", "filters are ignored", request=sent(REPLACE, without_filters)),
    Mutant("no-missed-rows", "S-SUB-11", "missed rows are not sent", request=sent(REPLACE, without_last_event_id)),
    Mutant("no-figures", "S-SUB-13", "a stream counts nothing",
           answer=body(at(r"/v1/streams/[^/]+", "GET"), lambda value: {**value, "events": 0})),
    Mutant("rows-of-others", "S-SUB-14", "rows of others arrive",
           request=sent(at("/v1/changes", "POST"), rows_of_the_last)),
]


# MARK: Descriptions

DOCUMENTS = at("/(openapi.yaml|asyncapi.json)")


def without_descriptions(request, _):
    if DOCUMENTS(request):
        request.answer = Response.of_json(404, {})


def without_ready(document):
    messages = document["components"]["messages"]
    document["components"]["messages"] = {key: message for key, message in messages.items() if message.get("name") != "stream:ready"}


def renamed_stream(request, answer, _):
    if request.path == "/openapi.yaml":
        answer.body = answer.body.replace(b"/v1/stream:", b"/v1/flow:")


DESCRIPTIONS = [
    Mutant("no-descriptions", "S-VER-1", "the service has no descriptions", request=without_descriptions),
    Mutant("undescribed-stream", "S-VER-1", "the description lacks the stream", answer=renamed_stream),
    Mutant("undescribed-event", "S-VER-2", "the description lacks an event", answer=body(at("/asyncapi.json"), without_ready)),
    Mutant("invalid-event", "S-VER-4", "an event does not match its schema",
           stream=data_of("stream:ready", lambda about: {**about, "replayed": "0"})),
]

MUTANTS = [*RESUMING, *GAPS, *COLLAPSE, *POSITIONS, *SUBSCRIBING, *DESCRIPTIONS]
