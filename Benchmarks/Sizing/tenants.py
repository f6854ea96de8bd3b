#!/usr/bin/env python3
"""Measures what a noisy tenant costs a quiet one: the p99 of the quiet tenant alone and beside the noisy one, in pairs.

    tenants.py BINARY …                      the table for one or more builds, measured in turns
    tenants.py BINARY --rows writes,webhooks --turns 5 --seconds 4

The noisy tenant sends at its share, at ten times its share while all of that is accepted, and at ten times its share while
its limit refuses it. A ratio is that of one pair: the p99 beside the noisy tenant, divided by the p99 alone in the same
turn. The table has the medians of the ratios and their middle half. The service has one core, both load clients share another
one. A webhook counts from its notification to the receiver's answer, as the outbox stores both."""

import argparse
import collections
import contextlib
import pathlib
import sqlite3
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent / "Tests")]
sys.dont_write_bytecode = True

from Harness import machine  # noqa: E402
from Harness.machine import WORK, Unavailable  # noqa: E402
from Harness.processes import Load, load, metric, stop_all, until  # noqa: E402
from Harness.servers import Bellhop, Receiver, token, webhooks_to  # noqa: E402
from Harness.turns import Binary  # noqa: E402

SERVER, CLIENTS = "0", "1"
USERS = 200
STREAMS = 50
# Requests per second: the share of the noisy tenant, and what the quiet one sends.
SHARE, QUIET = 100, 100
WARMUP = 0.5
ALONE, AT_SHARE, TEN_TIMES, REFUSED = "alone", "at its share", "ten times, accepted", "ten times, refused"
ROWS = {"requests": "`GET /v1/badges`", "writes": "`POST /v1/notifications`", "streams": "from a write to the stream",
        "webhooks": "from a notification to the receiver's answer"}
NOTIFICATION = '{"userId": "u{u}", "category": "visit", "priority": "HIGH", "title": "T", "message": "M{n}"}'


def tokens_of(tenant):
    path = WORK / f"tokens-{tenant}.txt"
    path.write_text("".join(token(f"u{number}", tenant=tenant) + "\n" for number in range(USERS)))
    return path


def backend(tenant):
    bearer = token("backend", role="service_role", tenant=tenant)
    return [f"Authorization: Bearer {bearer}", "Content-Type: application/json"]


class Pair:
    """A service of one build whose noisy tenant has no limit, and one whose noisy tenant has used up its limit."""

    def __init__(self, binary):
        self.stack, self.receiver = contextlib.ExitStack(), Receiver()
        receiver = self.stack.enter_context(self.receiver.start(CLIENTS))
        settings = webhooks_to(receiver.port)
        self.servers, self.processes = {}, {}
        for name, more in (("open", {}), ("limited", {"BELLHOP_TENANT_SHARES": "noisy:requests=60"})):
            server = Bellhop(Binary(f"tenants-{name}-{binary.name}", binary.path), settings={**settings, **more})
            self.servers[name], self.processes[name] = server, self.stack.enter_context(server.start(SERVER))

    def measure(self, row, arm, seconds):
        """Returns the quiet tenant's p99 in milliseconds."""
        name = "limited" if arm == REFUSED else "open"
        process, noise = self.processes[name], None
        if arm != ALONE:
            noise = self.noise(row, process, SHARE if arm == AT_SHARE else SHARE * 10, seconds)
        try:
            return getattr(self, row)(name, process, seconds)
        finally:
            if noise:
                self.settle(noise, arm, process)

    def noise(self, row, process, rate, seconds):
        """Starts the load of the noisy tenant, which begins before the quiet one's and ends after it."""
        options = {"path": "/v1/badges", "tokens": tokens_of("noisy")} if row == "requests" else {
            "method": "POST", "path": "/v1/notifications", "header": backend("noisy"), "body": NOTIFICATION, "users": USERS}
        one = Load("http_load", CLIENTS, port=process.port, connections=64, threads=1, rate=rate, seconds=seconds + WARMUP + 1,
                   warmup=WARMUP, **options)
        time.sleep(WARMUP)
        return one

    @staticmethod
    def settle(noise, arm, process):
        result = noise.result()
        refused = result["statuses"].get("429", 0) / max(1, result["requests"])
        if refused < 0.9 if arm == REFUSED else refused > 0:
            raise Unavailable(f"{arm}: {result['statuses']}")
        until(lambda: metric(process, "bellhop_webhooks_waiting") == 0, "the webhooks are sent", seconds=120)

    def paced(self, process, seconds, good, **options):
        result = load("http_load", CLIENTS, port=process.port, connections=16, threads=1, rate=QUIET, seconds=seconds,
                      warmup=WARMUP, **options)
        if result["statuses"].get(good, 0) < result["requests"]:
            raise Unavailable(f"the quiet tenant: {result['statuses']}")
        return result["latencyUs"]["p99"] / 1000

    def requests(self, _, process, seconds):
        return self.paced(process, seconds, "200", path="/v1/badges", tokens=tokens_of("quiet"))

    def writes(self, _, process, seconds):
        return self.paced(process, seconds, "201", method="POST", path="/v1/notifications", header=backend("quiet"),
                          body=NOTIFICATION, users=USERS)

    def streams(self, _, process, seconds):
        result = load(
            "sse_load", CLIENTS, port=process.port, streams=STREAMS, threads=1, mode="paced", rate=QUIET, seconds=seconds,
            warmup=WARMUP, path="/v1/stream", tokens=tokens_of("quiet"), ready_event="stream:ready", expect=1,
            event="notification:created", users=STREAMS, publish_path="/v1/events", publish_header=backend("quiet"),
            publish_body=Bellhop.event_body(f"t{time.time_ns()}"))
        if result["lost"]:
            raise Unavailable(f"{result['lost']} notifications did not arrive")
        return result["latencyUs"]["p99"] / 1000

    def webhooks(self, name, process, seconds):
        since = time.time_ns() // 1000
        self.writes(name, process, seconds)
        with sqlite3.connect(f"file:{self.servers[name].database}?mode=ro", uri=True) as database:
            rows = "FROM outbox WHERE tenant = 'quiet' AND created_at >= ?"
            until(lambda: database.execute(f"SELECT count(*) {rows} AND state = 0", (since,)).fetchone()[0] == 0,
                  "the quiet tenant's webhooks are sent", seconds=120)
            took = sorted(row[0] for row in database.execute(f"SELECT settled_at - created_at {rows}", (since,)))
        if len(took) < QUIET * seconds:
            raise Unavailable(f"{len(took)} webhooks were sent")
        return took[len(took) * 99 // 100] / 1000

    def close(self):
        self.stack.close()


def measured(arguments):
    binaries = [Binary(f"build-{number}", pathlib.Path(path).resolve()) for number, path in enumerate(arguments.binary, 1)]
    found = collections.defaultdict(list)
    for turn in range(arguments.turns):
        for binary in binaries[::1 if turn % 2 == 0 else -1]:
            pair = Pair(binary)
            try:
                for row in arguments.rows:
                    for arm in [ALONE, AT_SHARE, TEN_TIMES, REFUSED][::1 if turn % 2 == 0 else -1]:
                        value = pair.measure(row, arm, arguments.seconds)
                        found[row, binary.name, arm].append(value)
                        print(f"{row}, {binary.name}, {arm}: {value:.1f} ms", file=sys.stderr)
            finally:
                pair.close()
    return binaries, found


def table(arguments, binaries, found):
    def ratios(row, build, arm):
        values = sorted(beside / alone for beside, alone in zip(found[row, build, arm], found[row, build, ALONE]))
        count = len(values)
        return f"{statistics.median(values):.2f} ({values[count // 4]:.2f} to {values[count * 3 // 4]:.2f})"

    print("| the quiet tenant's p99 | build | alone, ms | beside: at its share | ten times, accepted | ten times, refused |")
    print("|---|---|---|---|---|---|")
    for row in arguments.rows:
        for binary in binaries:
            alone = statistics.median(found[row, binary.name, ALONE])
            cells = [ratios(row, binary.name, arm) for arm in (AT_SHARE, TEN_TIMES, REFUSED)]
            print(f"| {ROWS[row]} | {binary.name} | {alone:.1f} | {' | '.join(cells)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", nargs="+", help="release builds of the service")
    parser.add_argument("--rows", type=lambda text: text.split(","), default=list(ROWS))
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4)
    arguments = parser.parse_args()
    machine.build_c()
    try:
        table(arguments, *measured(arguments))
    except Unavailable as error:
        sys.exit(f"tenants: {error}")
    finally:
        stop_all()


if __name__ == "__main__":
    main()
