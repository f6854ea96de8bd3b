"""Counts the heap allocations of a request: `Yardsticks/allocations.c` is preloaded into the service.

A count depends neither on the machine nor on its load, so one turn is enough. The cost of a request is the difference
between a number of them and three times as many, so it excludes the opening of connections. The allocations of the
service's own timers are measured while it is idle and subtracted."""

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
CLOCKS = 0.2  # allocations per request; the uncertainty in the share of the service's timers
WATCHERS = 8  # open streams of users without events: an event is routed, but not received


class AllocationRows:
    """The rows of the group `allocations`: one reactor, one shard."""

    def __init__(self, bench):
        self.bench, self.report, self.cores = bench, bench.report, bench.cores
        self.requests = bench.pace.pick(300, 1_000)

    def kinds(self):
        """Returns the kinds of requests: the function, the goal, and the number. Requests that each wait for a disk
        take long."""
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
        """Returns the allocations per second while no requests arrive."""
        seconds = self.bench.pace.pick(1, 3)
        before = settled(path)
        time.sleep(seconds)
        return [(now - then) / seconds for now, then in zip(counters(path), before)]

    def of_one(self, path, ask, count, idle):
        """Returns the cost of one request among many. The first requests fill caches."""
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
        """Sends events to a thousand users in turn."""
        def ask(count):
            self.load(process, count, "201", connections, method="POST", path="/v1/events", header=server.publisher,
                      body=server.event_body(f"a{time.time_ns()}"), users=1_000)
        return ask


def quiet_tokens():
    path = WORK / "tokens-quiet.txt"
    path.write_text("".join(token(f"quiet{number}") + "\n" for number in range(WATCHERS)))
    return path


def settled(path):
    """Returns the counters once the work after a response (delivery to streams) is over: two readings within 50 ms are
    nearly the same. They are never exactly the same, because the service's timers keep running."""
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
