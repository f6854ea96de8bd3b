"""Exits with planted mistakes. The judge must accept each exit as it is, and refuse it with each mistake."""

import copy
import json
import sys

NOTIFICATION = {
    "id": "01kanx5q8dwd7v4b2m9c1x5z8q", "eventId": None, "userId": "ada", "type": "VISIT", "category": "visit",
    "priority": "HIGH", "title": "T", "message": "M", "lockScreen": "You have a new update", "data": {}, "haptic": None,
    "sound": True, "createdAt": "2026-01-10T10:00:00.000Z", "seenAt": None, "readAt": None, "archivedAt": None,
}
BADGES = {"messages": 0, "requests": 0, "bell": 1, "total": 1, "version": 7, "epoch": "k3f9ab",
          "asOf": "2026-01-10T10:00:00.000Z"}
BOOKING = {
    "id": "01keknjd806sdads1x9f9k1bcr", "userId": None, "shopId": "s1", "barberId": None, "service": "cut",
    "scheduledStart": "2026-01-10T10:00:00.000Z", "durationMinutes": 30, "tier": "standard", "status": "confirmed",
    "version": 1, "source": "walkIn", "customerName": "Cy", "arrivedAt": "2026-01-10T10:00:00.000Z", "startedAt": None,
    "completedAt": None, "createdAt": "2026-01-10T10:00:00.000Z", "updatedAt": "2026-01-10T10:00:00.000Z",
    "epoch": "k3f9ab", "previousStatus": None,
}
PROBLEM = {"type": "urn:bellhop:problem:not_found", "title": "Not Found", "status": 404, "detail": "No.", "code": "not_found",
           "instance": "/v1/bookings/b1", "requestId": "x8ujwv-8"}
SUBJECT = {"type": "notification", "id": "n1", "notificationType": "VISIT"}
APNS = {"aps": {"alert": {"title": "T", "body": "B"}, "badge": 1, "thread-id": "n1", "mutable-content": 1},
        "bellhop": {"tag": "n1", "data": SUBJECT}}
FCM = {"message": {"token": "t", "data": {"badge": "1", "tag": "", "data": json.dumps(SUBJECT)},
                   "android": {"ttl": "86400s", "priority": "normal"}}}
WEB_PUSH = {"badge": 1, "tag": "n1", "withdrawn": ["n1"], "data": {}}
HEADERS = {"Content-Type": "application/json", "X-Request-Id": "x8ujwv-8", "X-Content-Type-Options": "nosniff",
           "Vary": "Authorization", "Cache-Control": "no-store"}
SIGNED = {"content-type": "application/json", "webhook-id": "01kanx5q8e8v2m4c6d7f9g1h3j", "webhook-timestamp": "1768039200",
          "webhook-signature": "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4="}
TO_APPLE = {"content-type": "application/json", "authorization": "bearer a.b.c", "apns-topic": "com.example.app",
            "apns-push-type": "alert", "apns-priority": "10", "apns-expiration": "1768039200", "apns-collapse-id": "n1"}
TO_GOOGLE = {"content-type": "application/json", "authorization": "Bearer ya29.a0"}
TO_BROWSER = {"content-type": "application/octet-stream", "authorization": f"vapid t=a.b.c, k=B{'x' * 86}",
              "content-encoding": "aes128gcm", "ttl": "86400", "urgency": "high", "topic": "t" * 32}
BACKGROUND = {name: value for name, value in TO_APPLE.items() if name != "apns-collapse-id"} | {
    "apns-push-type": "background", "apns-priority": "5"}
NUMBER = {name: value for name, value in TO_APPLE.items() if name != "apns-collapse-id"} | {"apns-priority": "5"}
WITHDRAWAL = {"aps": {"content-available": 1}, "bellhop": {"badge": 1, "withdrawn": ["n1"]}}
# A text may have another end of a line, which JSON need not escape.
LINES = '{"kind":"messages","data":{"body":"a\u2028b\x85c"}}\n{"kind":"end","data":{"rows":1}}\n'
COUNTS = HEADERS | {"ETag": '"7-k3f9ab"', "Event-Position": "k3f9ab-0c4kz71m9tq2e", "Poll-Interval": "30"}


def answer(method, route, status, headers, body, path=None):
    return {"kind": "answer", "method": method, "route": route, "path": path or route, "status": status,
            "headers": fields_of(headers), "body": body}


def event(name, body):
    return {"kind": "event", "name": name, "body": body}


def sent(kind, name, headers, body):
    return {"kind": kind, "name": name, "headers": fields_of(headers), "body": body}


def fields_of(headers):
    return [{"name": name, "value": value} for name, value in headers.items()]


def badges(body, headers=None, status=200):
    return answer("GET", "/v1/badges", status, COUNTS if headers is None else headers, body)


def problem(code="not_found", status=404, route="/v1/bookings/{id}", method="GET", **headers):
    fields = HEADERS | {"Content-Type": "application/problem+json"} | headers
    return answer(method, route, status, fields, PROBLEM | {"code": code, "status": status}, "/v1/bookings/b1")


def webhook(name, data, **members):
    return sent("webhook", name, SIGNED, {"type": name, "timestamp": "2026-01-10T10:00:00.000Z", "data": data} | members)


SOUND = {
    "counts": badges(BADGES),
    "no news": answer("GET", "/v1/badges", 304, {k: v for k, v in COUNTS.items() if k != "Content-Type"}, ""),
    "refusal": problem(),
    "unknown method": problem("route.method_not_allowed", 405, "none", "POST", Allow="GET, HEAD"),
    "lines": answer("GET", "/v1/users/{id}/export", 200, HEADERS | {"Content-Type": "application/x-ndjson"}, LINES),
    "event": event("badges:update", BADGES),
    "app's event": event("order:paid", {"any": ["thing"]}),
    "notification": webhook("notification.unreached", NOTIFICATION | {"badges": BADGES, "quietHours": False}),
    "walk-in": webhook("booking.changed", BOOKING),
    "apns": sent("push", "apns", TO_APPLE, APNS),
    "apns number": sent("push", "apns", NUMBER, {"aps": {"badge": 1}, "bellhop": {"tag": "", "data": SUBJECT}}),
    "apns in the background": sent("push", "apns", BACKGROUND, WITHDRAWAL),
    "fcm": sent("push", "fcm", TO_GOOGLE, FCM),
    "webpush": sent("push", "webpush", TO_BROWSER, WEB_PUSH),
}


def without(exit, *path):
    return changed(exit, None, *path, removes=True)


def changed(exit, value, *path, removes=False):
    """Returns an exit whose body has another value at a path."""
    exit = copy.deepcopy(exit)
    node = exit["body"]
    for name in path[:-1]:
        node = node[name]
    if removes:
        del node[path[-1]]
    else:
        node[path[-1]] = value
    return exit


def without_header(exit, name):
    return exit | {"headers": [field for field in exit["headers"] if field["name"] != name]}


def with_header(exit, name, value):
    """Returns an exit with another value of a header, or with one more header."""
    return exit | {"headers": [*without_header(exit, name)["headers"], {"name": name, "value": value}]}


def with_text(exit, text):
    return exit | {"body": text}


def mistakes():
    """Returns the exits that the judge must refuse, by what is wrong."""
    walk_in = json.dumps(SOUND["walk-in"]["body"])
    spliced = walk_in.replace('"data": {', '"data": {,')
    assert spliced != walk_in
    inner = json.dumps(SUBJECT | {"id": 7})
    return {
        "a comma before the first member": with_text(SOUND["walk-in"], spliced),
        "a member removed": without(SOUND["counts"], "total"),
        "a member removed from an event": without(SOUND["event"], "epoch"),
        "a member removed from a webhook": without(SOUND["notification"], "data", "haptic"),
        "a member removed from a push message": without(SOUND["apns"], "aps", "badge"),
        "a wrong type": changed(SOUND["counts"], "1", "bell"),
        "a wrong type in a webhook": changed(SOUND["walk-in"], "30", "data", "durationMinutes"),
        "a wrong type in JSON in a text": changed(SOUND["fcm"], inner, "message", "data", "data"),
        "a number out of range": changed(SOUND["event"], -1, "messages"),
        "an unknown word": changed(SOUND["notification"], "HUGE", "data", "priority"),
        "a date without a zone": changed(SOUND["counts"], "2026-01-10T10:00:00", "asOf"),
        "a member that is not described": changed(SOUND["counts"], 1, "extra"),
        "an undescribed member of an event": changed(SOUND["event"], 1, "extra"),
        "an undescribed member of a part": changed(SOUND["notification"], 1, "data", "extra"),
        "an undescribed member of a push message": changed(SOUND["webpush"], 1, "extra"),
        "an unknown event": SOUND["event"] | {"name": "badges:changed"},
        "another webhook than its name": SOUND["walk-in"] | {"name": "message.withdrawn"},
        "no content type": without_header(SOUND["counts"], "Content-Type"),
        "no request id": without_header(SOUND["counts"], "X-Request-Id"),
        "no rule for caches": without_header(SOUND["refusal"], "Cache-Control"),
        "no tag": without_header(SOUND["counts"], "ETag"),
        "an undescribed header": badges(BADGES, COUNTS | {"X-Extra": "1"}),
        "a header of a wrong type": badges(BADGES, COUNTS | {"Poll-Interval": "soon"}),
        "another content type": badges(BADGES, COUNTS | {"Content-Type": "text/html"}),
        "a webhook without a signature": without_header(SOUND["walk-in"], "webhook-signature"),
        "a webhook with an empty signature": with_header(SOUND["walk-in"], "webhook-signature", "v1,"),
        "a webhook without an id": without_header(SOUND["walk-in"], "webhook-id"),
        "a webhook with a date as its time": with_header(SOUND["walk-in"], "webhook-timestamp", "2026-01-10T10:00:00Z"),
        "a webhook of another content type": with_header(SOUND["walk-in"], "content-type", "text/plain"),
        "a webhook with an undescribed header": with_header(SOUND["walk-in"], "x-extra", "1"),
        "a push message without a token": without_header(SOUND["fcm"], "authorization"),
        "a push message for no app": without_header(SOUND["apns"], "apns-topic"),
        "an alert that says that it is none": with_header(SOUND["apns"], "apns-push-type", "background"),
        "a background message of high priority": with_header(SOUND["apns in the background"], "apns-priority", "10"),
        "an alert that cannot be replaced": without_header(SOUND["apns"], "apns-collapse-id"),
        "an empty collapse id": with_header(SOUND["apns"], "apns-collapse-id", ""),
        "a collapse id that is too long": with_header(SOUND["apns"], "apns-collapse-id", "n" * 65),
        "a browser's message without a lifetime": without_header(SOUND["webpush"], "ttl"),
        "a browser's message of an unknown urgency": with_header(SOUND["webpush"], "urgency", "urgent"),
        "a topic that is too long": with_header(SOUND["webpush"], "topic", "t" * 33),
        "a browser's message that is not encrypted": without_header(SOUND["webpush"], "content-encoding"),
        "an undescribed status": badges(BADGES, status=202),
        "a body without a description": SOUND["no news"] | {"body": BADGES},
        "a code with another status": problem(status=409, code="not_found"),
        "an unknown code": problem(code="nothing"),
        "a status of any operation with another code": problem("booking.overlap", 408),
        "a body that is not UTF-8": {key: value for key, value in SOUND["counts"].items() if key != "body"} | {"bytes": "/w=="},
        "a line without its kind": with_text(SOUND["lines"], LINES + '{"data":{}}\n'),
        "an empty line": with_text(SOUND["lines"], LINES + "\n"),
        "NaN": with_text(SOUND["counts"], json.dumps(BADGES).replace('"bell": 1', '"bell": NaN')),
    }


def check(judge):
    """Judges all exits. Returns whether each has the right judgement."""
    failures = []
    for name, record in SOUND.items():
        failures += [f"{name}, which is right: {mistake}" for mistake in judge(written(record))]
    planted = mistakes()
    failures += [f"{name} is not found" for name, record in planted.items() if not judge(written(record))]
    for failure in failures:
        print(f"  ✗ {failure}", file=sys.stderr)
    print(f"{len(planted)} planted mistakes, {len(failures)} wrong judgements")
    return not failures


def written(record):
    """Returns a record with its body as text."""
    if "body" not in record or isinstance(record["body"], str):
        return record
    return record | {"body": json.dumps(record["body"])}
