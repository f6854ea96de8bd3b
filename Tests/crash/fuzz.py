#!/usr/bin/env python3
"""Sends damaged requests to a running service. Each must be answered with a problem that is not a 5xx, or with a closed
connection, and the service must keep answering.

Half of the requests are bytes that were damaged at random places. The other half are valid requests with strange
content:
table changes derived from the recorded ones, filters generated from their grammar, and subscriptions of an open stream.
Each of those must be answered with 2xx or with application/problem+json.

    Tests/crash/fuzz.py --port 8080 --token "$TOKEN" --webhook-secret "$SECRET" [--requests 10000] [--seed 1]

The requests follow from the seed and their number; both are printed with each failure.
"""

import argparse
import copy
import http.client
import json
import pathlib
import random
import socket
import sys
import threading
import time

from harness import services
from harness.events import events_of
from harness.waiting import PATIENCE_SECONDS

FIXTURES = [json.loads(path.read_text())
            for path in sorted((pathlib.Path(__file__).parent.parent / "Fixtures" / "Changes").glob("*.json"))]

SEEDS = [
    b'POST /v1/events HTTP/1.1\r\nHost: x\r\n{auth}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n'
    b'{"id":"e","type":"visit.created","userId":"u","data":{"visitId":"v","hospital":"H"}}',
    b'POST /v1/bookings HTTP/1.1\r\nHost: x\r\n{auth}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n'
    b'{"shopId":"s1","barberId":"b1","service":"cut","scheduledStart":"2026-01-10T09:30:00Z","durationMinutes":30}',
    b'PATCH /v1/notifications HTTP/1.1\r\nHost: x\r\n{auth}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n'
    b'{"upTo":"01hzy","category":"visit","set":{"seen":true}}',
    b"GET /v1/notifications?limit=20&state=unseen&cursor=abc HTTP/1.1\r\nHost: x\r\n{auth}\r\n",
    b"GET /v1/badges HTTP/1.1\r\nHost: x\r\n{auth}If-None-Match: \"1\"\r\n\r\n",
    b"PUT /v1/shops/s1 HTTP/1.1\r\nHost: x\r\n{auth}Transfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n"
    b'1e\r\n{"name":"A","timeZone":"UTC"}\r\n\r\n0\r\n\r\n',
    b'POST /v1/changes HTTP/1.1\r\nHost: x\r\n{auth}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n'
    b'[{"type":"UPDATE","schema":"public","table":"students","record":{"id":"s","school_id":"a","class_id":"c","points":1},'
    b'"old_record":{"id":"s","school_id":"a","class_id":"d","points":1e2}},null]',
    b"POST /v1/changes?format=cloudevents HTTP/1.1\r\nHost: x\r\n{auth}ce-id: 1\r\nce-source: /a\r\nce-type: t\r\n"
    b"ce-specversion: 1.0\r\nContent-Length: {length}\r\n\r\n"
    b'{"type":"DELETE","schema":"public","table":"homework","record":null,"old_record":{"id":"h","school_id":"a"}}',
    b"PUT /v1/streams/{stream}/subscriptions HTTP/1.1\r\nHost: x\r\n{auth}Content-Type: application/json\r\n"
    b"Content-Length: {length}\r\n\r\n"
    b'{"topics":["queue:s1"],"tables":[{"id":"a","table":"homework","filter":"title=in.(a,\\"b,c\\"),id=not.like.%x_",'
    b'"select":["title"]}],"lastEventId":"abcdef-0123456789abc"}',
]
TOKENS = [b"\x00", b"\xff\xfe", b"\r\n", b"%00", b"%zz", b"../", b"{", b"}", b'"', b"\\u0000", b"\\ud800", b"1e999", b"-0",
          b"99999999999999999999", b"[" * 200, b" " * 300, b"null", b"A" * 5000, b"Content-Length: 5\r\n", b"HTTP/9.9"]


def damaged(choices, bearer, stream):
    request = choices.choice(SEEDS).replace(b"{stream}", stream.encode())
    head, _, body = request.partition(b"\r\n\r\n")
    if choices.random() < 0.7 and body:
        body = damage(choices, body)
    else:
        head = damage(choices, head)
    head = head.replace(b"{auth}", b"Authorization: Bearer " + bearer + b"\r\n").replace(b"{length}", b"%d" % len(body))
    return head + b"\r\n\r\n" + body


def damage(choices, piece):
    piece = bytearray(piece)
    for _ in range(choices.randint(1, 4)):
        place = choices.randrange(len(piece) + 1)
        kind = choices.randrange(4)
        if kind == 0:
            piece[place:place] = choices.choice(TOKENS)
        elif kind == 1:
            del piece[place:place + choices.randint(1, 8)]
        elif kind == 2 and place < len(piece):
            piece[place] = choices.randrange(256)
        else:
            piece[place:place] = piece[max(0, place - 20):place]
    return bytes(piece)


NUMBERS = [0, -1, 1, 2**31, 2**53, 2**63 - 1, -(2**63), 2**63, 10**400, 0.1, -0.0, 1e-320, 1e308]
TEXTS = ["", " ", "s1", "A" * 300, "A" * 70_000, "\x00", "\x7f", "\ud83d\ude00", "\u202e", "user:x", "a:staff", "{id}", "%3A", "null",
         "__debezium_unavailable_value", "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==", "INSERT", "DELETE", "c", "t", "r", "public",
         "students", "classes", "parent_students", "homework", "posts", "-", "2026-01-10T09:30:00Z", "9999-99-99", "1e999999",
         "0" * 400, "9" * 400]
NAMES = ["id", "school_id", "class_id", "student_id", "teacher_id", "parent_id", "type", "op", "schema", "table", "record",
         "old_record", "before", "after", "source", "payload", "data", "data_base64", "specversion", "event", "operation", "ids",
         "errors", "columns", "commit_timestamp", "ts_ms", "lsn", "a/b", "~", "", "x" * 300, "__proto__"]
OPERATORS = ["eq", "neq", "lt", "lte", "gt", "gte", "in", "like", "ilike", "is", "match", "imatch", "isdistinct", "EQ", "", "about"]


def value(choices, depth=0):
    kind = choices.randrange(8 if depth < 4 else 4)
    if kind == 0:
        return choices.choice([None, True, False])
    if kind == 1:
        return choices.choice(NUMBERS)
    if kind in (2, 3):
        return choices.choice(TEXTS)
    if kind == 4:
        return [value(choices, depth + 1) for _ in range(choices.randrange(4))]
    if kind == 5:
        nested = value(choices, 4)
        for _ in range(choices.choice([2, 30, 33, 40])):
            nested = [nested]
        return nested
    return {choices.choice(NAMES): value(choices, depth + 1) for _ in range(choices.randrange(5))}


def mutated(choices, document):
    """Returns the document with some members changed, removed, duplicated or swapped."""
    document = copy.deepcopy(document)
    for _ in range(choices.randint(0, 3)):
        places = []

        def walk(node):
            for key in list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else []:
                places.append((node, key))
                walk(node[key])

        walk(document)
        if not places:
            return value(choices)
        node, key = choices.choice(places)
        kind = choices.randrange(4)
        if kind == 0:
            del node[key]
        elif kind == 1 and isinstance(node, dict):
            node[choices.choice(NAMES)] = node.pop(key)
        elif kind == 2:
            other, place = choices.choice(places)
            node[key] = copy.deepcopy(other[place])
        else:
            node[key] = value(choices)
    return document


def row(choices):
    """Returns a change of a declared table. Most are valid, so that they reach memberships, audiences and streams."""
    table = choices.choice(["students", "classes", "parent_students", "homework", "attendance", "student_stickers", "posts"])
    columns = ["id", "school_id", "class_id", "student_id", "teacher_id", "parent_id", "points", "title", "visibility",
               "user_id", "like_count"]

    def record():
        some = {name: choices.choice(["a", "b", "c", 1, 2]) for name in columns if choices.random() < 0.9}
        if choices.random() < 0.15:
            some[choices.choice(columns)] = value(choices)
        return some

    kind = choices.choice(["INSERT", "UPDATE", "UPDATE", "DELETE"])
    return {"type": kind, "schema": "public", "table": table, "record": None if kind == "DELETE" else record(),
            "old_record": None if kind == "INSERT" else record()}


def delivery(choices):
    def item():
        return row(choices) if choices.random() < 0.4 else mutated(choices, choices.choice(FIXTURES))

    if choices.random() < 0.5:
        return item()
    return [item() for _ in range(choices.choice([0, 1, 2, 5, 20]))]


def filter_text(choices):
    def word():
        return choices.choice(["a", "b", "1", "-1.5", "1e3", "1e1100", "9e-900", "1.5e400", "5e-324", "1e1000001", "0." + "0" * 120 + "1", "7" * 128, "null", "true", "", " ", "%a%", "a%b_c", "%" * 40, "\\", '"a,b"', '"', "(",
                               ")", "\x00", "\ud83d\ude00", "a" * 70, "%" + "a" * 70 + "%", "not.", "2026-01-10"])

    conditions = []
    for _ in range(choices.choice([0, 1, 1, 2, 3, 21])):
        operator = choices.choice(OPERATORS)
        text = "(" + ",".join(word() for _ in range(choices.choice([0, 1, 3, 999, 1001]))) + ")" if operator == "in" else word()
        negated = "not." * choices.choice([0, 0, 0, 1, 2])
        conditions.append(choices.choice(["id", "title", "points", "", "a b", "x" * 130]) + f"={negated}{operator}.{text}")
    text = ",".join(conditions)
    for _ in range(choices.choice([0, 0, 0, 1, 3])):
        place = choices.randrange(len(text) + 1)
        text = text[:place] + choices.choice([",", "(", ")", '"', "\\", "=", ".", " ", "\x00", ""]) + text[place + choices.randrange(2):]
    return text


def subscriptions(choices):
    wishes = []
    for _ in range(choices.choice([0, 1, 1, 2, 5, 101])):
        wish = {"table": choices.choice(["students", "homework", "posts", "attendance", "nothing"]), "filter": filter_text(choices)}
        if choices.random() < 0.5:
            wish["id"] = choices.choice(["a", "b", "", "x" * 65])
        if choices.random() < 0.5:
            wish["select"] = choices.choice([["title"], [], ["id", "id"], None, ["x"] * 101, "title"])
        if choices.random() < 0.5:
            wish["event"] = choices.choice(["*", "INSERT", "UPDATE", "DELETE", "insert", ""])
        wishes.append(mutated(choices, wish) if choices.random() < 0.2 else wish)
    body = {"tables": wishes}
    if choices.random() < 0.3:
        body["topics"] = choices.choice([["queue:s1"], [], ["@public:students"], ["personal"], ["x"] * 101])
    if choices.random() < 0.3:
        body["lastEventId"] = choices.choice(["abcdef-0123456789abc", "", "-1", "x" * 200])
    return mutated(choices, body) if choices.random() < 0.1 else body


class Strange:
    """Sends valid requests with strange content."""

    def __init__(self, port, token, webhook_secret):
        self.port = port
        self.token = token
        self.webhook_secret = webhook_secret
        self.listener = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
        self.listener.request("GET", "/v1/stream", headers={"Authorization": f"Bearer {token}"})
        self.answer = self.listener.getresponse()
        if self.answer.status != 200:
            raise SystemExit(f"fuzz: no stream: {self.answer.status} {self.answer.read()!r}")
        self.is_open = True
        self.events = events_of(self.answer)
        self.stream = next(json.loads(event.data)["streamId"] for event in self.events if event.data)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        try:
            for _ in self.events:
                pass
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            pass
        self.is_open = False

    def send(self, choices):
        """Sends a request; returns it and the error in the response, if there is one."""
        proof = {"Authorization": f"Bearer {self.token}"}
        if choices.random() < 0.6:
            method, path, body = "POST", "/v1/changes", delivery(choices)
            if self.webhook_secret and choices.random() < 0.7:
                proof = {"X-Webhook-Secret": self.webhook_secret}
            if choices.random() < 0.2:
                proof["webhook-id"] = choices.choice(["a", "b", "x" * 129])
        else:
            method, path, body = "PUT", f"/v1/streams/{self.stream}/subscriptions", subscriptions(choices)
        data = json.dumps(body, ensure_ascii=choices.random() < 0.8).encode("utf-8", "surrogatepass")
        try:
            status, headers, content = services.request(
                self.port, method, path, data, {"Content-Type": "application/json", **proof})
        except (OSError, http.client.HTTPException) as problem:
            return None, data, f"was not answered: {problem!r}"
        media = headers.get("content-type", "").split(";")[0]
        if not (200 <= status < 300 and media == "application/json" or 400 <= status < 500 and media == "application/problem+json"):
            return status, data, f"was answered with {status} {media}: {content[:500]!r}"
        try:
            document = json.loads(content)
        except ValueError:
            return status, data, f"was answered with what is no JSON: {content[:500]!r}"
        if status == 202:
            told = document["accepted"] + document["duplicates"] + len(document["rejected"])
            if told != (len(body) if isinstance(body, list) else 1):
                return status, data, f"accounts for {told} items: {content[:500]!r}"
        return status, data, None


def exchange(port, request):
    """Returns the status of the first response, None if the connection was closed without one, or "silence" if neither
    happened within PATIENCE_SECONDS."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS) as connection:
        try:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            answer = b""
            while b"\r\n" not in answer:
                piece = connection.recv(4096)
                if not piece:
                    return None
                answer += piece
        except socket.timeout:
            return "silence"
        except OSError:
            # The service closed the connection while the request was being sent.
            return None
    parts = answer.split(b" ", 2)
    return int(parts[1]) if len(parts) > 1 and parts[1].isdigit() else "garbage"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--token", required=True)
    parser.add_argument("--requests", type=int, default=10000)
    parser.add_argument("--seconds", type=float, help="end after this many seconds instead")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    parser.add_argument("--webhook-secret", help="secret of the feed of table changes")
    options = parser.parse_args()
    extent = f"{options.requests} requests" if options.seconds is None else f"{options.seconds:.0f} s"
    print(f"fuzz: seed {options.seed}, {extent}", flush=True)
    bearer = options.token.encode()
    healthy = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    counts = {}
    number = 0
    strange = Strange(options.port, options.token, options.webhook_secret)
    end = time.monotonic() + (options.seconds or 0)
    while time.monotonic() < end if options.seconds is not None else number < options.requests:
        choices = random.Random(options.seed * 1_000_003 + number)
        if number % 2:
            status, data, problem = strange.send(choices)
            if problem:
                print(f"fuzz: seed {options.seed}, request {number} {problem}\n{data[:4000]!r}", file=sys.stderr)
                return 1
            counts[f"strange {status}"] = counts.get(f"strange {status}", 0) + 1
            number += 1
            continue
        request = damaged(choices, bearer, strange.stream)
        status = exchange(options.port, request)
        counts[status] = counts.get(status, 0) + 1
        if status in ("silence", "garbage") or (isinstance(status, int) and status >= 500 and status not in (501, 505)):
            shown = request.replace(bearer, b"TOKEN")
            print(f"fuzz: seed {options.seed}, request {number} was answered with {status}:\n{shown!r}", file=sys.stderr)
            return 1
        number += 1
        if number % 200 == 0 and exchange(options.port, healthy) != 200:
            print(f"fuzz: seed {options.seed}: the service is ill after request {number}", file=sys.stderr)
            return 1
    if exchange(options.port, healthy) != 200:
        print(f"fuzz: seed {options.seed}: the service is ill at the end", file=sys.stderr)
        return 1
    if not strange.is_open:
        print(f"fuzz: seed {options.seed}: the stream was closed", file=sys.stderr)
        return 1
    shown = ", ".join(f"{status or 'closed'}: {count}" for status, count in sorted(counts.items(), key=lambda item: str(item[0])))
    print(f"  {number} damaged and strange requests: {shown}")
    print(f"cases: {number}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
