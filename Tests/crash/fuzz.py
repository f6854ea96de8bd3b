#!/usr/bin/env python3
"""Sends damaged requests to a running service and checks that each is answered with a problem that is no 5xx, or with a
closed connection, and that the service goes on answering.

    Tests/crash/fuzz.py --port 8080 --token "$TOKEN" [--seconds 20] [--seed 1]

The requests follow from the seed and their number, which are printed with what went wrong.
"""

import argparse
import random
import socket
import sys
import time

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
]
TOKENS = [b"\x00", b"\xff\xfe", b"\r\n", b"%00", b"%zz", b"../", b"{", b"}", b'"', b"\\u0000", b"\\ud800", b"1e999", b"-0",
          b"99999999999999999999", b"[" * 200, b" " * 300, b"null", b"A" * 5000, b"Content-Length: 5\r\n", b"HTTP/9.9"]


def damaged(choices, bearer):
    request = choices.choice(SEEDS)
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


def exchange(port, request):
    """The status of the first answer; None where the connection was closed without one, "silence" after a pause."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
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
            # Closed by the service while we were sending or before we were done.
            return None
    parts = answer.split(b" ", 2)
    return int(parts[1]) if len(parts) > 1 and parts[1].isdigit() else "garbage"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--token", required=True)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    options = parser.parse_args()
    print(f"fuzz: seed {options.seed}, {options.seconds:.0f} s", flush=True)
    bearer = options.token.encode()
    healthy = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    counts = {}
    number = 0
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        request = damaged(random.Random(options.seed * 1_000_003 + number), bearer)
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
    shown = ", ".join(f"{status or 'closed'}: {count}" for status, count in sorted(counts.items(), key=lambda item: str(item[0])))
    print(f"  {number} damaged requests: {shown}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
