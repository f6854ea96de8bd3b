"""Heap allocations of a request, counted: `Yardsticks/allocations.c` is loaded into the service before anything else.

A count does not depend on the machine nor on what else it does, so it is taken once. What a request costs is the difference
between many of them and three times as many, so that opening the connections is not in it; and without what the service's own
clocks ask for meanwhile, which an idle moment shows."""

import json
import struct
import time

from .machine import WORK, Unavailable
from .processes import Load, load
from .report import Row, at_most
from .requests import entity_tag
from .servers import Bellhop, token
from .turns import THIS

OWNERS = ("ours", "libmicrohttpd", "SQLite", "others")
CLOCKS = 0.2  # what the service's clocks ask for is known to this much of a request
WATCHERS = 8  # open streams of users whom nothing is sent to: an event is routed, and received by nobody


class AllocationRows:
    """The rows of the group `allocations`: one reactor, one shard."""

    def __init__(self, bench):
        self.bench, self.report, self.cores = bench, bench.report, bench.cores
        self.requests = bench.pace.pick(300, 1_000)

    def kinds(self):
        """What is asked: how it is done, the goal, and how many. Who waits for a disk each time takes long."""
        return {"`GET /v1/badges` 304": (self.unchanged, 6, self.requests),
                "`GET /v1/badges` 200": (self.found, 12, self.requests),
                "`POST /v1/events`, one at a time": (lambda *server: self.events(*server, 1), 120, self.requests // 3),
                "`POST /v1/events`, 32 at once": (lambda *server: self.events(*server, 32), 120, self.requests)}

    def measure(self):
        found = self.bench.take_turns(self.counted, once=True)
        for what, (_, goal, _) in self.kinds().items():
            beside = ", ".join(f"{owner} {found.peer(THIS, (what, owner)).text()}" for owner in OWNERS[1:])
            self.report.add(Row.measured(f"Heap allocations of ours, {what}", found.ours((what, "ours")), "each",
                                         at_most(goal + CLOCKS, "each", f"≤ {goal} each"), beside=beside, is_steady=True))

    def counted(self, binary):
        path = WORK / f"allocations-{binary.name}"
        path.write_bytes(bytes(8 * len(OWNERS)))
        server = Bellhop(binary, settings={"LD_PRELOAD": str(WORK / "allocations.so"), "ALLOCATIONS_FILE": str(path)})
        with server.start(self.cores.server) as process:
            server.call(process, "POST", "/v1/events", json.loads(server.event_body("first").replace("{u}", "1")))
            watching = Load("sse_load", self.cores.all_load(), port=process.port, mode="hold", streams=WATCHERS,
                            path="/v1/stream", tokens=quiet_tokens(), ready_event="stream:ready", event="none")
            watching.ready()
            figures, idle = {}, self.idle(path)
            for what, (ask, _, count) in self.kinds().items():
                for owner, value in zip(OWNERS, self.of_one(path, ask(server, process), count, idle)):
                    figures[what, owner] = value
            watching.result()
        return figures

    def idle(self, path):
        """What is asked for in a second in which nobody asks the service."""
        seconds = self.bench.pace.pick(1, 3)
        before = settled(path)
        time.sleep(seconds)
        return [(now - then) / seconds for now, then in zip(counters(path), before)]

    def of_one(self, path, ask, count, idle):
        """What one request of many costs; the first ones fill what is made once."""
        ask(50)
        spent = []
        for requests in (count, 3 * count):
            before, begin = settled(path), time.monotonic()
            ask(requests)
            after, seconds = settled(path), time.monotonic() - begin
            spent.append([now - then - rate * seconds for now, then, rate in zip(after, before, idle)])
        return [max(0, more - fewer) / (2 * count) for fewer, more in zip(*spent)]

    def load(self, process, count, status, connections=1, **options):
        result = load("http_load", self.cores.all_load(), port=process.port, connections=connections, count=count, seconds=120,
                      **options)
        if result["statuses"] != {status: count}:
            raise Unavailable(f"wanted {count} answers {status}, got {result['statuses']}")

    def badges(self, process, status, headers):
        return lambda count: self.load(process, count, status, path="/v1/badges", header=headers,
                                       tokens=str(WORK / "one-token.txt"))

    def unchanged(self, _, process):
        return self.badges(process, "304", [f"If-None-Match: {entity_tag(process, token('u1'))}"])

    def found(self, _, process):
        return self.badges(process, "200", [])

    def events(self, server, process, connections):
        """Each of another user: a thousand of them, who come round."""
        def ask(count):
            self.load(process, count, "201", connections, method="POST", path="/v1/events", header=server.publisher,
                      body=server.event_body(f"a{time.time_ns()}"), users=1_000)
        return ask


def quiet_tokens():
    path = WORK / "tokens-quiet.txt"
    path.write_text("".join(token(f"quiet{number}") + "\n" for number in range(WATCHERS)))
    return path


def settled(path):
    """The counters, when what follows an answer (its events' way to the streams) is over: the same twice within 50 ms, or
    nearly, since the service's clocks never stop."""
    before = counters(path)
    for _ in range(40):
        time.sleep(0.05)
        after = counters(path)
        if sum(after) - sum(before) < 20:
            break
        before = after
    return after


def counters(path):
    return struct.unpack(f"={len(OWNERS)}Q", path.read_bytes())
