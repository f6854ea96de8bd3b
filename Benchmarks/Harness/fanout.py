"""Rows for fan-out: one event to all streams, compared with a bare `send` loop, our transport alone, nchan and
Hummingbird."""

import functools

from .machine import WORK, Unavailable, say
from .processes import load
from .report import Row, at_least
from .servers import Bellhop, Hummingbird, Nchan, SendLoop, Transport, event_text
from .turns import Servers

EVENT_BYTES = 200  # used if the size of the service's own event is unknown
NAMES = {"send": "the raw `send` loop", "transport": "our transport alone", "nchan": "nginx + nchan",
         "hummingbird": "Hummingbird"}
GOALS = {  # ratio of the service to each
    10: {"send": 0.4}, 100: {"send": 0.75},
    1_000: {"send": 0.95, "nchan": 1.6, "hummingbird": 2.6}, 10_000: {"send": 0.95, "nchan": 1.9, "hummingbird": 3.3},
}


def peer(bench, key, shards=1):
    """Returns a server for the comparison; raises an error if it is not available."""
    if key == "transport":
        return Transport(bench.executable("transport"), shards)
    if key == "hummingbird":
        return Hummingbird(bench.executable("peers"))
    return {"send": SendLoop, "nchan": Nchan}[key]()


@functools.cache
def event_bytes(binary, cores):
    """Returns the size of the service's event; the peers send as many bytes."""
    server = Bellhop(binary)
    server.database = WORK / "event-size.sqlite"
    try:
        with server.start(cores.server) as process:
            server.open_shops(process)
            result = load("sse_load", cores.all_load(), port=process.port, streams=10, mode="closed", seconds=0.3, warmup=0,
                          **server.fanout(10))
        if result["delivered"] > 20:
            return max(100, round(result["bytes"] / (result["delivered"] + 10 * 9)))
    except (Unavailable, OSError) as error:
        say(f"bench:   size of the service's event not known, {EVENT_BYTES} bytes are used: {error}")
    return EVENT_BYTES


class FanoutRows:
    def __init__(self, bench):
        self.bench, self.report, self.cores, self.pace = bench, bench.report, bench.cores, bench.pace

    def options(self, server, streams):
        if isinstance(server, Bellhop):
            return server.fanout(streams)
        return dict(server.fanout, publish_body=event_text(length=event_bytes(self.bench.this, self.cores)))

    def one(self, server, process, streams, window=2, **options):
        """Returns deliveries per second."""
        if isinstance(server, Bellhop):
            server.open_shops(process)
        result = load("sse_load", self.cores.all_load(), port=process.port, streams=streams, mode="closed", window=window,
                      threads=min(self.bench.client_threads, streams), seconds=self.pace.seconds, warmup=self.pace.warmup,
                      server_pid=process.pid, **dict(self.options(server, streams), **options))
        if result["lost"]:
            say(f"bench:   {server.name}: {result['lost']} deliveries lost, {result['statuses']}")
            if result["lost"] > result["delivered"] * 0.02:
                raise Unavailable(f"{result['lost']} of {result['lost'] + result['delivered']} deliveries were lost")
        if result["clientCpu"] > 0.97 and result["serverCpu"] < 0.9:
            say(f"bench:   {server.name}: the load client was the bottleneck at {streams} streams")
        return {"rate": result["deliveriesPerSecond"]}

    def fan_out(self, streams):
        with Servers() as servers:
            def one(key, make):
                server = make()
                return self.one(server, servers.get(key, lambda: server.start(self.cores.server)), streams)

            found = self.bench.take_turns(
                lambda binary: one(binary.name, lambda: Bellhop(binary)),
                {key: lambda key=key: one(key, lambda: peer(self.bench, key)) for key in NAMES})
        label = f"Fan-out to {streams:,} streams, 1 shard, 1 core, events of {event_bytes(self.bench.this, self.cores)} bytes"
        ours = found.ours("rate")
        for key, name in NAMES.items():
            if key != "transport":
                goal = GOALS[streams].get(key)
                self.report.add(Row.measured(f"{label}: the service / {name}", ours, "deliveries/s",
                                             goal and at_least(goal), found.peer(key, "rate")))
                ours = ours.alone()
        self.report.add(Row.measured(f"{label}: {NAMES['transport']} / {NAMES['send']}", found.peer("transport", "rate"),
                                     "deliveries/s", at_least(0.95) if streams >= 1_000 else None, found.peer("send", "rate")))

    def small_room(self, streams, window=16):
        """As many events are in flight as share a flush of the disk, so the row shows the cost of an event and not of
        the flush. The raw loop does not flush; it has as many events in flight."""
        with Servers() as servers:
            def one(key, server):
                return self.one(server, servers.get(key, lambda: server.start(self.cores.server)), streams, window)

            found = self.bench.take_turns(lambda binary: one(binary.name, Bellhop(binary)),
                                          {"send": lambda: one("send", SendLoop())})
        self.report.add(Row.measured(
            f"Fan-out to {streams:,} streams, {window} events on their way: the service / {NAMES['send']}", found.ours("rate"),
            "deliveries/s", at_least(GOALS[streams]["send"]), found.peer("send", "rate")))

    def two_shards(self):
        """Both use the same two cores; only the number of shards differs."""
        if not self.cores.two_servers:
            raise Unavailable("needs 4 cores: 2 for the service, 2 for the load")
        streams = self.pace.pick(2_000, 10_000)
        with Servers() as servers:
            def both(key, make):
                return {shards: self.one(server, servers.get((key, shards), lambda: server.start(self.cores.two_servers)),
                                         streams)["rate"]
                        for shards, server in ((shards, make(shards)) for shards in (1, 2))}

            found = self.bench.take_turns(
                lambda binary: both(binary.name, lambda shards: Bellhop(binary, shards=shards)),
                {"transport": lambda: both("transport", lambda shards: peer(self.bench, "transport", shards))})
        label = f"2 shards / 1 shard, {streams:,} streams, 2 cores"
        self.report.add(Row.measured(f"{label}: the service", found.ours(2), "deliveries/s", at_least(1.75), found.ours(1)))
        self.report.add(Row.measured(f"{label}: our transport alone", found.peer("transport", 2), "deliveries/s",
                                     at_least(1.75), found.peer("transport", 1)))

    def burst(self):
        """8 events at once: events that wait for a stream are joined into one send; the raw loop sends 8 times."""
        def service(binary):
            server = Bellhop(binary)
            with server.start(self.cores.server) as process:
                return self.one(server, process, 1_000, 1, group=8, publishers=8)

        def other(key):
            server = peer(self.bench, key)
            with server.start(self.cores.server) as process:
                return self.one(server, process, 1_000, 1, **server.burst(8))

        found = self.bench.take_turns(service, {key: lambda key=key: other(key) for key in ("send", "transport")})
        for name, figures in (("our transport alone", found.peer("transport", "rate")),
                              ("the service, 8 separate requests", found.ours("rate"))):
            self.report.add(Row.measured(f"Burst of 8 events, 1,000 streams: {name} / 8 sends of the raw loop", figures,
                                         "deliveries/s", at_least(5), found.peer("send", "rate")))
