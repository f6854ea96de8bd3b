#!/usr/bin/env python3
"""Asks each operation of openapi.yaml for each refusal that the service makes in one place for all operations, and for 304, so
that the judge sees each of them (judge.py --seen).

    tour.py --binary BINARY
"""

import argparse
import base64
import contextlib
import http.client
import json
import os
import pathlib
import sys
import tempfile

from corners import Corners
from harness.contract import Contract
from harness.services import Service
from harness.tokens import token

VAPID_KEY = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
JSON = {"Content-Type": "application/json"}
# What some operations require before they read the body.
PRECONDITIONS = {"If-Match": '"1-k3f9ab"', "Idempotency-Key": "tour"}
# More than the limit of any operation.
TOO_MANY = 1 << 30


class Tour:
    def __init__(self, service, contract):
        self.service, self.contract = service, contract
        self.bearers = {role: {"Authorization": f"Bearer {token(service.secret, f'tour-{role}', role)}"}
                        for role in (None, "service_role", "admin", "staff")}
        self.failures, self.count = [], 0

    def bearer(self, user):
        """Returns the token of a user."""
        return {"Authorization": f"Bearer {token(self.service.secret, user, None)}"}

    def operations(self, status):
        """Returns the operations that describe a status, as verb, pattern and description."""
        for pattern, operations in self.contract.open["paths"].items():
            for verb, operation in operations.items():
                if verb != "parameters" and status in operation["responses"]:
                    yield verb.upper(), pattern, operation

    def example(self, operation):
        content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
        examples = [one.get("value") for one in content.get("examples", {}).values()]
        value = content.get("example", examples[0] if examples else None)
        return None if value is None else json.dumps(value)

    def send(self, verb, path, body=None, headers=None):
        """Returns the status, and the tag of the answer."""
        return self.answer(verb, path, body, headers, lambda answer: answer.getheader("ETag"))

    def exchange(self, verb, path, body=None, headers=None):
        """Returns the status and the body of the answer."""
        return self.answer(verb, path, body, headers, lambda answer: answer.read())

    def answer(self, verb, path, body, headers, part):
        connection = http.client.HTTPConnection("127.0.0.1", self.service.port, timeout=60)
        try:
            if headers and "Content-Length" in headers:
                connection.putrequest(verb, path)
                for name, value in headers.items():
                    connection.putheader(name, value)
                connection.endheaders()
            else:
                connection.request(verb, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, part(answer)
        finally:
            connection.close()

    def expect(self, status, verb, path, body=None, headers=None):
        found, _ = self.send(verb, path, body, headers)
        self.count += 1
        if str(found) != status:
            self.failures.append(f"{verb} {path} answers {found}, not {status}")

    # Refusals

    def malformed(self):
        for verb, pattern, _ in self.operations("400"):
            self.expect("400", verb, f"{address(pattern)}?a=%FF")

    def without_token(self):
        for verb, pattern, operation in self.operations("401"):
            body = self.example(operation)
            self.expect("401", verb, address(pattern), body, JSON if body else {})

    def unknown_items(self):
        for verb, pattern, operation in self.operations("422"):
            body = self.example(operation)
            answer, _ = self.send(verb, f"{address(pattern)}?nonsense=1", body, self.best(operation) | (JSON if body else {}))
            self.count += 1
            # A few operations take any query item.
            if answer != 422 and pattern != "/v1/stream":
                self.failures.append(f"{verb} {pattern} answers {answer} to an unknown query item")

    def too_large(self):
        for verb, pattern, operation in self.operations("413"):
            self.expect("413", verb, address(pattern), headers=self.best(operation) | {"Content-Length": str(TOO_MANY)})

    def other_media(self):
        for verb, pattern, operation in self.operations("415"):
            # A booking's version is compared first (Corners).
            if operation["operationId"] == "changeBooking":
                continue
            self.expect("415", verb, address(pattern), "<a/>",
                        self.best(operation) | PRECONDITIONS | {"Content-Type": "text/xml"})

    def limited(self):
        headers = self.bearers[None]
        self.send("GET", "/v1/badges", headers=headers)
        for verb, pattern, operation in self.operations("429"):
            body = self.example(operation)
            self.expect("429", verb, address(pattern), body, headers | (JSON if body else {}))

    def known_version(self):
        for verb, pattern, _ in self.operations("304"):
            path = address(pattern)
            _, tag = self.send(verb, path, headers=self.bearers["service_role"])
            if tag:
                self.expect("304", verb, path, headers=self.bearers["service_role"] | {"If-None-Match": tag})

    def strangers(self):
        """Calls each operation with each token, for a resource that does not exist. Most answer 403 or 404."""
        for number, (pattern, operations) in enumerate(self.contract.open["paths"].items()):
            for verb, operation in operations.items():
                if verb == "parameters" or pattern in ("/v1/stream", "/v1/revocations"):
                    continue
                body = self.example(operation)
                for bearer in self.bearers.values():
                    fields = bearer | {"If-Match": '"1-k3f9ab"'} | (JSON if body else {})
                    self.send(verb.upper(), address(pattern, f"nobody-{number}"), body, fields)
                    self.count += 1

    def odd_ids(self):
        """Asks for resources whose id cannot exist."""
        for verb, pattern, operation in self.operations("404"):
            body = self.example(operation)
            for bearer in (self.bearers["service_role"], self.bearers[None]):
                self.send(verb, address(pattern, "%01"), body, bearer | PRECONDITIONS | (JSON if body else {}))
                self.count += 1

    def without_push(self):
        self.expect("404", "GET", "/v1/devices", headers=self.bearers["admin"])

    def best(self, operation):
        """Returns the token that an operation requires."""
        return self.bearers["service_role"] if "403" in operation["responses"] else self.bearers[None]


def address(pattern, name="nobody"):
    """Returns an address of a pattern."""
    return "/".join(name if part.startswith("{") else part for part in pattern.split("/"))


@contextlib.contextmanager
def running(binary, **settings):
    with tempfile.TemporaryDirectory() as folder:
        service = Service(binary, pathlib.Path(folder))
        service.environment |= settings
        service.start()
        try:
            yield service
        finally:
            service.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    binary, contract = parser.parse_args().binary, Contract()
    failures, count = [], 0
    # Without a key, devices cannot register.
    push = {"BELLHOP_PUSH_KEYS": base64.b64encode(os.urandom(32)).decode(), "BELLHOP_VAPID_KEY": VAPID_KEY,
            "BELLHOP_VAPID_CONTACT": "mailto:ops@example.com"}
    with running(binary, BELLHOP_RATE_LIMIT_USER="0", BELLHOP_RATE_LIMIT_SERVICE="0", **push) as service:
        tour = Tour(service, contract)
        for part in (tour.malformed, tour.without_token, tour.unknown_items, tour.too_large, tour.other_media, tour.known_version,
                     tour.strangers, tour.odd_ids, Corners(tour).see):
            part()
        failures, count = tour.failures, tour.count
    with running(binary, BELLHOP_RATE_LIMIT_USER="1") as service:
        tour = Tour(service, contract)
        tour.without_push()
        tour.limited()
        failures, count = failures + tour.failures, count + tour.count
    for failure in failures:
        print(f"  ✗ {failure}", file=sys.stderr)
    print(f"cases: {count}")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
