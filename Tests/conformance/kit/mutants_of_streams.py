"""Mutants that break what a stream carries: framing, the first event, ids, order, topics, heartbeats and its end."""


from .edits import (
    added_event, at, body, data_of, dropped, each_event, events, every, field_of, is_opening, refuse, status, with_fields, without_parameter,
)
from .mutation import Mutant, Response
from .mutants_of_openings import publishes_to_all
from .sse import block_of

OWN = r"(?!stream:|badges:|notification:|kit:end|kit:last).*"
STEPS = "kit:step"
STATES = "queue:update"
PUBLISH = at("/v1/publish", "POST")


# MARK: Framing


def with_mark(request, proxy):
    """Begins the body with a byte order mark."""
    first = [b"\xef\xbb\xbf"]

    def handle(block):
        return [first.pop(), block] if first else [block]
    return handle


def in_latin(block):
    return [block.encoded().decode().encode("latin-1", errors="replace")]


def with_invalid_bytes(block):
    return [b": \xff\n" + block.encoded()]


def with_crlf(block):
    return [block.encoded().replace(b"\n", b"\r\n")]


def unnamed(block):
    return [with_fields(block, event=None)]


def cut(block):
    return [with_fields(block, data=block.data[:-1] + " x")]


FRAMING = [
    Mutant("byte-order-mark", "S-FRAME-1", "the body begins with a byte order mark", stream=with_mark),
    Mutant("latin-1", "S-FRAME-1 S-FRAME-6", "the body is not UTF-8", stream=every(in_latin)),
    Mutant("invalid-bytes", "S-FRAME-1", "comments contain bytes that are not UTF-8", stream=events(OWN, with_invalid_bytes)),
    Mutant("crlf", "S-FRAME-2", "lines end with CRLF", stream=every(with_crlf)),
    Mutant("unknown-field", "S-FRAME-3", "events have a field time", stream=field_of(".*", time="1")),
    Mutant("unnamed-events", "S-FRAME-4", "events have no name", stream=events(OWN, unnamed)),
    Mutant("cut-data", "S-FRAME-5", "data is not JSON", stream=events(OWN, cut)),
    Mutant("changed-data", "S-FRAME-6 S-RESUME-3", "data is wrapped in a list", stream=data_of(OWN, lambda value: [value])),
    Mutant("other-retry", "S-FRAME-7", "retry has a unit", stream=every(lambda block: [with_fields(block, retry="1s")] if block.retry else [block])),
    Mutant("upper-case-names", "S-FRAME-8", "names are in upper case",
           stream=events(OWN, lambda block: [with_fields(block, event=block.name.upper())])),
    Mutant("publishes-reserved-names", "S-FRAME-11", "any name can be published", answer=status(422, 202, PUBLISH)),
]


# MARK: The first event


def before_ready(block):
    return [added_event("stream:hello", {}), block]


def sorted_topics(about):
    about["topics"] = sorted(about["topics"])


def zeros(about):
    about["badges"] = {**about["badges"], "bell": 0, "total": 0}


READY = [
    Mutant("hello-first", "S-READY-1", "another event precedes stream:ready", stream=events("stream:ready", before_ready)),
    Mutant("ready-twice", "S-READY-2", "stream:ready is sent twice", stream=events("stream:ready", lambda block: [block, block])),
    Mutant("ready-without-id", "S-READY-3 S-RESUME-12", "stream:ready has no id", stream=field_of("stream:ready", id=None)),
    Mutant("ready-without-time", "S-READY-4", "stream:ready has no serverTime",
           stream=data_of("stream:ready", lambda about: {key: value for key, value in about.items() if key != "serverTime"})),
    Mutant("ready-of-someone", "S-READY-5", "stream:ready names another user",
           stream=data_of("stream:ready", lambda about: {**about, "userId": "someone"})),
    Mutant("sorted-topics", "S-READY-6", "topics are sorted", stream=data_of("stream:ready", sorted_topics)),
    Mutant("one-stream-id", "S-READY-7", "all streams have one id",
           stream=data_of("stream:ready", lambda about: {**about, "streamId": "one"})),
    Mutant("zero-counts", "S-READY-8", "the counts of stream:ready are zero", stream=data_of("stream:ready", zeros)),
    Mutant("wrong-replayed", "S-READY-9", "replayed is one too many",
           stream=data_of("stream:ready", lambda about: {**about, "replayed": about["replayed"] + 1})),
]


# MARK: Ids and order


def id_per_stream(request, proxy):
    number = proxy.memory["streams"] = proxy.memory.get("streams", 0) + 1
    return lambda block: [with_fields(block, id=f"{block.id}{number:x}")] if block.id else [block]


def always_with_id(request, proxy):
    last = [None]

    def handle(block):
        last[0] = block.id or last[0]
        return [with_fields(block, id=last[0])] if block.is_event and last[0] else [block]
    return handle


def swaps_neighbours(request, proxy):
    held = []

    def handle(block):
        if block.name == STEPS and not held:
            held.append(block)
            return []
        if not held or not block.is_event:
            return [block]
        earlier = held.pop()
        return [block, earlier] if block.name == STEPS else [earlier, block]
    return handle


def forgets_streams(request, proxy):
    """Every other stream receives no event of the log."""
    number = proxy.memory["streams"] = proxy.memory.get("streams", 0) + 1
    return lambda block: [] if number % 2 == 0 and block.id and block.name != "stream:ready" else [block]


def foreign_epoch(block):
    return [with_fields(block, id="z" + block.id)] if block.id else [block]


def epoch_per_stream(request, proxy):
    number = proxy.memory["streams"] = proxy.memory.get("streams", 0) + 1
    return lambda block: [with_fields(block, id=f"e{number}{block.id}")] if block.id else [block]


def one_epoch(block):
    return [with_fields(block, id="one-" + block.id.rpartition("-")[2])] if block.id else [block]


def without_epoch(counts):
    counts.pop("epoch", None)


IDS = [
    Mutant("ids-with-spaces", "S-ID-1", "ids contain spaces", stream=events(".*", lambda block: [with_fields(block, id=f"{block.id} x")] if block.id else [block])),
    Mutant("one-id", "S-ID-2", "all events have one id", stream=field_of(OWN, id="one-0000000000000")),
    Mutant("id-per-stream", "S-ID-3 S-COLLAPSE-4 S-RESUME-3", "ids depend on the stream", stream=id_per_stream),
    Mutant("no-ids", "S-ID-4 S-RESUME-3", "events of the log have no ids", stream=field_of(r"kit:step|notification:.*", id=None)),
    Mutant("id-on-every-event", "S-ID-5 S-SUB-11", "all events have an id", stream=always_with_id),
    Mutant("no-bare-ids", "S-ID-6 S-SUB-11", "blocks with only an id are dropped",
           stream=every(lambda block: [block] if block.is_event or block.retry or block.comments else [])),
    Mutant("swaps-neighbours", "S-ORDER-1 S-ORDER-2 S-RESUME-3 S-COLLAPSE-4", "neighbours are swapped", stream=swaps_neighbours),
    Mutant("doubles-events", "S-ORDER-3 S-RESUME-9", "events arrive twice", stream=events(OWN, lambda block: [block, block])),
    Mutant("forgets-streams", "S-ORDER-4", "every other stream is forgotten", stream=forgets_streams),
    Mutant("foreign-epoch", "S-EPOCH-1", "events have another epoch than stream:ready", stream=events(OWN, foreign_epoch)),
    Mutant("epoch-per-stream", "S-EPOCH-1 S-EPOCH-2", "each stream has its own epoch", stream=epoch_per_stream),
    Mutant("one-epoch", "S-EPOCH-3", "all logs have one epoch", stream=every(one_epoch)),
    Mutant("counts-without-epoch", "S-EPOCH-4", "counts have no epoch", stream=data_of("badges:update", without_epoch)),
]


# MARK: Topics


def without_declared(request, proxy):
    """Refuses the topics that a key opens."""
    refuse(lambda request: is_opening(request) and "desk" in request.query, "topic.forbidden", 403)(request, proxy)


def cut_topics(pairs):
    return [(name, ",".join(value[:133] for value in values.split(",")[:100]) if name == "topics" else values)
            for name, values in pairs]


def shortened(request, _):
    if is_opening(request) and request.query:
        request.parameters = cut_topics(request.parameters)


def state_first(request, proxy):
    held = []

    def handle(block):
        if block.name == STEPS:
            held.append(block)
            return []
        if block.name == STATES:
            parts = [block, *held]
            held.clear()
            return parts
        return [block]
    return handle


def only_existing(request, proxy):
    refuse(lambda request: is_opening(request) and "queue" in request.query, "not_found", 404)(request, proxy)


def row_of_another(block):
    return [added_event("table:change", {}), block]


TOPICS = [
    Mutant("no-personal-events", "S-TOPIC-1 S-OPEN-15 S-ORDER-4", "personal events are dropped", stream=dropped(OWN)),
    Mutant("ignores-topics", "S-TOPIC-2 S-PARAM-3 S-RESUME-10 S-COLLAPSE-2", "topics of the query are ignored", request=without_parameter("topics")),
    Mutant("topics-for-all", "S-TOPIC-2 S-RESUME-10", "events of topics reach all streams", request=each_event(publishes_to_all)),
    Mutant("any-topic", "S-TOPIC-3 S-ERR-4", "unknown topics are accepted", answer=status(422, 200)),
    Mutant("forbidden-topics", "S-TOPIC-4", "forbidden topics are accepted", answer=status(403, 200)),
    Mutant("no-declared-topics", "S-TOPIC-4", "topics with keys are refused", request=without_declared),
    Mutant("cuts-topics", "S-TOPIC-6 S-TOPIC-8", "topics above a limit are cut", request=shortened),
    Mutant("no-states", "S-TOPIC-7 S-SUB-7", "topics have no states", stream=dropped(STATES)),
    Mutant("state-before-replay", "S-TOPIC-7", "the state precedes the replay", stream=state_first),
    Mutant("only-existing-things", "S-TOPIC-9", "topics about new things are refused", request=only_existing),
    Mutant("leaks-rows", "S-TOPIC-10", "rows of others arrive", stream=events("kit:end.*", row_of_another)),
]


# MARK: Heartbeats


def as_event(block):
    return [block_of([b"event: ping", b"data: 1"])] if block.is_heartbeat else [block]


def first_only(request, proxy):
    seen = []

    def handle(block):
        if block.is_heartbeat and seen:
            return []
        seen.extend([block] if block.is_heartbeat else [])
        return [block]
    return handle


def with_id(block):
    return [block_of([*block.lines, b"id: x"])] if block.is_heartbeat else [block]


HEARTBEATS = [
    Mutant("no-heartbeats", "S-BEAT-1 S-BEAT-5", "heartbeats are buffered away", stream=every(lambda block: [] if block.is_heartbeat else [block])),
    Mutant("heartbeat-events", "S-BEAT-1 S-BEAT-2", "heartbeats are events", stream=every(as_event)),
    Mutant("heartbeats-with-ids", "S-BEAT-2", "heartbeats have an id", stream=every(with_id)),
    Mutant("one-heartbeat", "S-BEAT-5", "heartbeats end after the first", stream=first_only),
    Mutant("no-interval", "S-BEAT-3", "the configuration has no interval",
           answer=body(at("/v1/config"), lambda value: value["stream"].update(heartbeatSeconds=0))),
]


# MARK: Expiry, closing and revocation

TOKEN = at(r"/v1/streams/[^/]+/token", "PUT")
REVOCATIONS = at("/v1/revocations", "POST")


def warns_once(request, proxy):
    warned = []

    def handle(block):
        if block.name != "stream:expiring":
            return [block]
        warned.append(block)
        return [block] if len(warned) == 1 else []
    return handle


def early_warning(block):
    return [block, added_event("stream:expiring", {"expiresAt": "2099-01-01T00:00:00.000Z"})]


def ignores_renewals(request, _):
    if TOKEN(request):
        request.answer = Response.of_json(200, {"expiresAt": "2099-01-01T00:00:00.000Z"})


def ignores_revocations(request, _):
    if REVOCATIONS(request):
        request.answer = Response.of_json(201, {"revokedAt": "2026-01-01T00:00:00.000Z"})


def revokes_all(request, answer, proxy):
    if REVOCATIONS(request) and answer.status == 201:
        for writer in list(proxy.open):
            writer.write(added_event("stream:closing", {"reason": "revoked", "retryAfterMs": 1}).encoded())
            writer.close()


def reason(text):
    return data_of("stream:closing", lambda about: {**about, "reason": text})


def event_after(block):
    return [block, added_event("kit:late", {})]


def without_second_retry(request, proxy):
    seen = []

    def handle(block):
        if block.retry and seen:
            return []
        seen.append(block)
        return [block]
    return handle


ENDS = [
    Mutant("no-warning", "S-EXPIRE-1 S-EXPIRE-3", "the end of a token comes without a warning", stream=dropped("stream:expiring")),
    Mutant("wrong-expiry", "S-EXPIRE-2 S-EXPIRE-3", "the warning names another time",
           stream=data_of("stream:expiring", lambda about: {"expiresAt": "2099-01-01T00:00:00.000Z"})),
    Mutant("warns-twice", "S-EXPIRE-3", "a warning is repeated", stream=events("stream:expiring", lambda block: [block, block])),
    Mutant("warns-once-per-stream", "S-EXPIRE-3", "a renewed stream is not warned again", stream=warns_once),
    Mutant("early-warning", "S-EXPIRE-4", "every stream is warned", stream=events("stream:ready", early_warning)),
    Mutant("ignores-renewals", "S-RENEW-1 S-RENEW-2 S-RENEW-6", "a new token has no effect", request=ignores_renewals),
    Mutant("any-new-token", "S-RENEW-3", "the token of another user renews", answer=status(403, 200, TOKEN)),
    Mutant("invalid-new-token", "S-RENEW-4 S-RENEW-7", "invalid tokens renew", answer=status(422, 200, TOKEN)),
    Mutant("renews-any-stream", "S-RENEW-5", "streams of others can be renewed", answer=status(404, 200, TOKEN)),
    Mutant("silent-end", "S-CLOSE-1 S-CLOSE-6", "a stream ends without a reason", stream=dropped("stream:closing")),
    Mutant("unavailable", "S-CLOSE-2 S-CLOSE-3 S-CLOSE-4 S-REVOKE-1 S-REVOKE-2", "every end is unavailable", stream=reason("unavailable")),
    Mutant("unknown-reason", "S-CLOSE-7", "a reason is unknown", stream=reason("bye")),
    Mutant("no-last-retry", "S-CLOSE-5", "no retry precedes the end", stream=without_second_retry),
    Mutant("event-after-the-end", "S-CLOSE-6", "an event follows stream:closing", stream=events("stream:closing", event_after)),
    Mutant("end-moves-the-position", "S-CLOSE-8 S-ID-5", "stream:closing has an id", stream=field_of("stream:closing", id="x-0000000000000")),
    Mutant("ignores-revocations", "S-REVOKE-1 S-REVOKE-2 S-REVOKE-3 S-TOKEN-8", "revocations have no effect", request=ignores_revocations),
    Mutant("revokes-all", "S-REVOKE-1 S-REVOKE-3 S-REVOKE-4", "a revocation ends all streams", answer=revokes_all),
    Mutant("users-revoke", "S-REVOKE-5", "users may revoke", answer=status(403, 201, REVOCATIONS)),
]

MUTANTS = [*FRAMING, *READY, *IDS, *TOPICS, *HEARTBEATS, *ENDS]
