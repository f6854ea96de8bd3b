#!/usr/bin/env python3
"""Sends requests that are refused before their operation is known, and judges the bytes of the answers by the contract. Some of
these answers are pages of libmicrohttpd, which Sources/Service/Exits cannot record: `x-pages` of openapi.yaml lists them.

    pages.py --port PORT
"""

import argparse
import socket
import sys

from harness.contract import Contract

# Seconds until a service that says nothing counts as silent. Each request ends its connection, so no case waits for it.
PATIENCE_SECONDS = 30
ENDS = b"Connection: close\r\n"


def head(line, *fields):
    return b"\r\n".join((line, *fields)) + b"\r\n" + ENDS + b"\r\n"


HOST = b"Host: a"
POST = b"POST /v1/events HTTP/1.1"
# By its mistake: the request, and the status of its answer. libmicrohttpd sends the first ones.
PAGES = {
    "no version": (head(b"GET /healthz"), 400),
    "another protocol": (head(b"GET /healthz HTPT/1.1", HOST), 400),
    "a header without a colon": (head(b"GET /healthz HTTP/1.1", HOST, b"foo"), 400),
    "a long URL": (head(b"GET /" + b"a" * 40_000 + b" HTTP/1.1", HOST), 414),
    "a long header": (head(b"GET /healthz HTTP/1.1", HOST, b"X-A: " + b"a" * 40_000), 431),
    "many headers": (head(b"GET /healthz HTTP/1.1", HOST, *[b"X: 1"] * 2000), 431),
    "HTTP/2 without TLS": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    "HTTP/3": (head(b"GET /healthz HTTP/3.0", HOST), 505),
}
PROBLEMS = {
    "no host": (head(b"GET /healthz HTTP/1.1"), 400),
    "two hosts": (head(b"GET /healthz HTTP/1.1", HOST, HOST), 400),
    "a folded header": (head(b"GET /healthz HTTP/1.1", HOST, b"X-A: 1", b" 2"), 400),
    "a broken escape": (head(b"GET /v1/badges?a=%FF HTTP/1.1", HOST), 400),
    "a long address": (head(b"GET /" + b"a" * 12_000 + b" HTTP/1.1", HOST), 404),
    "an unknown method": (head(b"BREW /healthz HTTP/1.1", HOST), 405),
    "a length that is no number": (head(POST, HOST, b"Content-Length: abc"), 400),
    "a negative length": (head(POST, HOST, b"Content-Length: -1"), 400),
    "a length without end": (head(POST, HOST, b"Content-Length: " + b"9" * 23), 413),
    "two lengths": (head(POST, HOST, b"Content-Length: 1", b"Content-Length: 2") + b"a", 400),
    "an unknown coding": (head(POST, HOST, b"Transfer-Encoding: gzip"), 400),
    "a body of a GET": (head(b"GET /healthz HTTP/1.1", HOST, b"Content-Length: 1") + b"a", 413),
}


def exchanged(port, request):
    """Returns all bytes of the answer to a request."""
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS) as connection:
        try:
            connection.sendall(request)
            while piece := connection.recv(65_536):
                answer += piece
        except (ConnectionResetError, BrokenPipeError):
            # The service closes while the rest of a long request is on its way.
            pass
    return answer


def parsed(answer):
    """Returns the status, the fields by their names in lower case, and the body."""
    top, _, body = answer.partition(b"\r\n\r\n")
    line, *fields = top.decode("latin-1").split("\r\n")
    return int(line.split(" ")[1]), {name.lower(): value for name, _, value in (field.partition(": ") for field in fields)}, body


def mistakes(contract, request, wanted, is_page, answer):
    """Returns what is wrong with an answer."""
    if not answer:
        return ["has no answer"]
    status, headers, body = parsed(answer)
    found = [] if status == wanted else [f"is answered with {status}, and not {wanted}"]
    if headers.pop("content-length", None) != str(len(body)):
        found.append("has a body of another length than its head says")
    headers.pop("date", None)
    if headers.get("connection") != "close":
        found.append("keeps its connection")
    if is_page:
        if str(status) not in contract.common["x-pages"]:
            found.append(f"is a page with the status {status}, which x-pages does not list")
        return found + [f"has the header {name}" for name in headers if name != "connection"]
    method, target = request.split(b" ")[:2]
    path = target.decode("latin-1").partition("?")[0]
    pattern = contract.pattern(path) or "none"
    return found + contract.answer(method.decode(), pattern, status, headers, body.decode())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True)
    port, contract = parser.parse_args().port, Contract()
    failures = [f"{status} of x-pages is not seen" for status in contract.common["x-pages"]
                if int(status) not in {wanted for _, wanted in PAGES.values()}]
    for cases, is_page in ((PAGES, True), (PROBLEMS, False)):
        for name, (request, wanted) in cases.items():
            answer = exchanged(port, request)
            failures += [f"{name} {text}: {answer[:300]!r}" for text in mistakes(contract, request, wanted, is_page, answer)]
    for failure in failures:
        print(f"  ✗ {failure}", file=sys.stderr)
    print(f"cases: {len(PAGES) + len(PROBLEMS)}")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
