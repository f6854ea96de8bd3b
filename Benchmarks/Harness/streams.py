"""Rows for streams: memory, targeted events, REST during a fan-out, disconnection, latency."""

import re
import socket
import struct
import time

from .fanout import peer
from .machine import WORK, Unavailable, say
from .processes import Load, load, request
from .report import Row, at_least, at_most
from .servers import Bellhop, event_text, token, token_file
from .turns import Servers


class StreamRows:
    def __init__(self, bench):
        self.bench, self.report, self.cores, self.pace = bench, bench.report, bench.cores, bench.pace

    def memory(self):
        streams = self.pace.pick(2_000, 10_000)

        def one(server, path):
            with server.start(self.cores.server) as process:
                return {"KiB": self.memory_of(server, process, streams, path)}

        def other(key):
            server = peer(self.bench, key)
            return one(server, server.fanout["path"])

        keys = {"nchan": "nginx + nchan", "hummingbird": "Hummingbird", "send": "raw loop", "transport": "our transport"}
        found = self.bench.take_turns(lambda binary: one(Bellhop(binary), "/v1/stream"),
                                      {key: lambda key=key: other(key) for key in keys}, once=True)
        beside = ", ".join(f"{name} {found.peer(key, 'KiB').text()}" for key, name in keys.items() if key != "transport")
        label = f"Memory per idle stream, {streams:,} streams"
        self.report.add(Row.measured(f"{label}, subscription included", found.ours("KiB"), "KiB", at_most(1.2, "KiB"),
                                     beside=beside, is_steady=True))
        self.report.add(Row.measured(f"{label}, the socket alone", found.peer("transport", "KiB"), "KiB",
                                     at_most(0.5, "KiB"), is_steady=True))

    def memory_of(self, server, process, streams, path):
        """Returns the KiB of resident memory per stream. Pages that the process touched for its first streams are not
        counted twice."""
        options = {"path": path, "port": process.port, "mode": "hold", "threads": self.bench.client_threads}
        if isinstance(server, Bellhop):
            options.update((key, value) for key, value in server.fanout(streams).items()
                           if key in ("tokens", "ready_event", "open_timeout"))
        warm = Load("sse_load", self.cores.all_load(), streams=200, **options)
        warm.ready()
        warm.result()
        time.sleep(0.5)
        before = process.resident_bytes()
        held = Load("sse_load", self.cores.all_load(), streams=streams, **options)
        held.ready()
        time.sleep(self.pace.pick(0.5, 1.0))
        after = process.resident_bytes()
        held.result()
        return (after - before) / 1024 / streams

    def opening(self):
        """All streams reconnect after a restart. Each has a separate token, which is verified again, and resumes after
        an event of its user. It counts as open when it has received that event."""
        streams = self.pace.pick(2_000, 10_000)
        missed = {}

        def service(binary):
            server, last = missed.get(binary) or missed.setdefault(binary, self.with_missed_events(Bellhop(binary), streams))
            with server.start(self.cores.server) as process:
                return self.opened(process, streams, path="/v1/stream", ready_event="notification:created",
                                   header=f"Last-Event-ID: {last}")

        def send_loop():
            with peer(self.bench, "send").start(self.cores.server) as process:
                return self.opened(process, streams, path="/stream")

        found = self.bench.take_turns(service, {"send": send_loop})
        if found.ours("busy") and found.ours("busy").median < 0.9 < found.ours("client").median:
            say("bench:   the load client was the bottleneck")
        self.report.add(Row.measured(
            f"Opening {streams:,} streams, each with a JWT of its own and an event to replay, per second of the server's core",
            found.ours("rate"), "streams/s", at_least(10_000, "/s"),
            beside=f"by the clock {found.ours('clock').text('streams/s')}, the core busy for {found.ours('busy').text()}, "
            f"the client's for {found.ours('client').text()}; by the clock the raw loop "
            f"{found.peer('send', 'clock').text('streams/s')}"))

    def with_missed_events(self, server, streams):
        with server.start(self.cores.server) as process:
            last = newest_event(process)
            server.notifications(process, count=streams, users=streams, cores=self.cores.all_load())
        server.fresh = False
        return server, last

    def opened(self, process, streams, **options):
        held = Load("sse_load", self.cores.all_load(), port=process.port, mode="hold", streams=streams, server_pid=process.pid,
                    threads=self.bench.client_threads, tokens=token_file(streams), open_timeout=90, **options)
        ready = held.ready()
        held.result()
        clock = streams / ready["openSeconds"]
        return {"rate": clock / max(ready["serverCpu"], 0.01), "clock": clock, "busy": ready["serverCpu"],
                "client": ready["clientCpu"]}

    def targeted(self):
        """Measures the server's CPU for one event to one of N streams."""
        few, many = 10, self.pace.pick(2_000, 19_000)

        def both(server, options):
            costs = {}
            for streams in (few, many):
                with server.start(self.cores.server) as process:
                    costs[streams] = self.one_targeted(process, streams, options(server, streams))
            return costs

        def of_transport(_, streams):
            return {"path": "/stream", "publish_path": "/publish?target={u}", "users": streams, "expect": 1,
                    "publish_body": event_text()}

        # As many streams as 20,000 descriptors allow, a common limit.
        few_connections = {"BELLHOP_CONNECTIONS_MAX": "500"}
        found = self.bench.take_turns(lambda binary: both(Bellhop(binary, settings=few_connections), Bellhop.targeted),
                                      {"transport": lambda: both(peer(self.bench, "transport"), of_transport)}, turns=2)
        label = f"CPU per targeted event, {many:,} streams / {few} streams"
        self.report.add(Row.measured(f"{label}: the service, its transaction included", found.ours(many), "µs", at_most(1.2),
                                     found.ours(few)))
        self.report.add(Row.measured(f"{label}: our transport alone", found.peer("transport", many), "µs", at_most(1.2),
                                     found.peer("transport", few)))

    def one_targeted(self, process, streams, options):
        result = load("sse_load", self.cores.all_load(), port=process.port, streams=streams, mode="closed", window=1,
                      threads=1, seconds=self.pace.seconds, warmup=self.pace.warmup, server_pid=process.pid, **options)
        if result["lost"] > 1 or result["published"] < 50:
            raise Unavailable(f"{result['lost']} events did not arrive, {result['published']} were published")
        return result["serverUsPerPublish"]

    def rest_during_fanout(self):
        """A paced GET /v1/badges, alone and while every event goes to all streams at the maximum rate."""
        streams = self.pace.pick(2_000, 10_000)
        with Servers() as servers:
            def service(binary):
                server = Bellhop(binary)
                process = servers.get(binary, lambda: server.start(self.cores.two_servers or self.cores.server))
                server.open_shops(process)
                idle = self.rest_p99(process)
                fanout = Load("sse_load", self.cores.load[0], port=process.port, streams=streams, mode="closed", window=2,
                              threads=1, seconds=60, warmup=0, until_input_ends=True, **server.fanout(streams))
                fanout.ready()
                time.sleep(self.pace.pick(0.3, 1.0))
                busy = self.rest_p99(process)
                if (delivered := fanout.result()["delivered"]) < streams:
                    raise Unavailable(f"no fan-out took place: {delivered} deliveries")
                return {"idle": idle, "busy": busy}

            found = self.bench.take_turns(service)
        self.report.add(Row.measured(f"REST p99 during a fan-out to {streams:,} streams / idle", found.ours("busy"), "ms",
                                     at_most(3), found.ours("idle")))

    def rest_p99(self, process):
        """Returns milliseconds."""
        result = load("http_load", self.cores.load[-1], port=process.port, connections=8, threads=1, rate=500, path="/v1/badges",
                      seconds=self.pace.pick(0.8, 2.0), tokens=str(WORK / "one-token.txt"))
        if result["good"] < result["requests"] * 0.99 or not result["requests"]:
            raise Unavailable(f"GET /v1/badges: {result['statuses']}")
        return result["latencyUs"]["p99"] / 1000

    def disconnection(self):
        samples = self.pace.pick(4, 10)
        with Servers() as servers:
            def service(binary):
                process = servers.get(binary, lambda: Bellhop(binary).start(self.cores.server))
                return {"worst": max(self.one_disconnection(process, reset=turn % 2 == 1) for turn in range(samples)) * 1000}

            found = self.bench.take_turns(service)
        self.report.add(Row.measured(f"Disconnection detected (FIN and RST in turn, worst of {samples}, from /metrics)",
                                     found.ours("worst"), "ms", at_most(50, "ms")))

    def one_disconnection(self, process, reset):
        """Returns the seconds from close() to a lower gauge of open streams, including the reading of /metrics."""
        before = open_streams(process)
        client = socket.create_connection(("127.0.0.1", process.port))
        client.sendall(f"GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token('u1')}\r\n\r\n".encode())
        received = b""
        while b"stream:ready" not in received:
            part = client.recv(65536)
            if not part:
                raise Unavailable(f"stream refused: {received[:200]!r}")
            received += part
        give_up = time.monotonic() + 5
        while open_streams(process) < before + 1:
            if time.monotonic() > give_up:
                raise Unavailable("the gauge of open streams does not rise")
        if reset:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        begin = time.perf_counter()
        client.close()
        while open_streams(process) > before:
            if time.perf_counter() - begin > 10:
                raise Unavailable("not noticed within 10 s")
        return time.perf_counter() - begin

    def commit_to_client(self):
        """Two shards where there are cores for them; each of 50 events per second goes to all 1,000 streams."""
        cores = self.cores.two_servers or self.cores.server
        with Servers() as servers:
            def service(binary, polls=True):
                server = Bellhop(binary, shards=2 if self.cores.two_servers else 1, settings={"BELLHOP_PIN_SHARDS": "true"})
                process = servers.get(binary, lambda: server.start(cores))
                server.open_shops(process)
                result = load("sse_load", self.cores.all_load(), port=process.port, streams=1_000, mode="paced", rate=50,
                              threads=self.bench.client_threads, seconds=self.pace.pick(1, 5),
                              warmup=self.pace.pick(0.3, 1), poll=polls, **server.fanout(1_000))
                if result["lost"]:
                    raise Unavailable(f"{result['lost']} deliveries were lost")
                return {name: result["latencyUs"][name] / 1000 for name in ("p50", "p99")}

            found = self.bench.take_turns(service)
            asleep = service(self.bench.this, polls=False)
        # The commit lies between the two moments. The goal applies to the earlier one, the sending of the request.
        for name, goal, published in (("p50", 3.0, "3.3 ms"), ("p99", 4.5, "4.8 ms")):
            self.report.add(Row.measured(
                f"Commit → client, 1,000 streams, 50 events/s to all, {name} (from sending the request, so commit included)",
                found.ours(name), "ms", at_most(goal, "ms", f"≤ {goal:g} ms (4 cores)"),
                beside=f"to a sleeping client: {asleep[name]:.2f} ms; best published: {published}"))


def newest_event(process):
    """Returns the id after which a new stream would resume."""
    with socket.create_connection(("127.0.0.1", process.port)) as client:
        client.sendall(f"GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token('u0')}\r\n\r\n".encode())
        received = b""
        while not (found := re.search(rb"^id: (\S+)\r?\n", received, re.MULTILINE)):
            part = client.recv(65536)
            if not part:
                raise Unavailable(f"stream refused: {received[:200]!r}")
            received += part
    return found[1].decode()


def open_streams(process):
    """Returns the gauge of open streams, whatever its prefix."""
    _, body = request(process.port, "GET", "/metrics")
    total, found = 0.0, False
    for line in body.decode().splitlines():
        match = re.match(r"^\w*(?:streams_open|open_streams|streams_current|streams)(?:\{[^}]*\})? ([0-9.e+]+)", line)
        if match:
            total, found = total + float(match.group(1)), True
    if not found:
        raise Unavailable("/metrics has no gauge of open streams")
    return total
