"""What is measured. Each function fills rows of the report; a row that cannot be measured says why."""

import re
import socket
import statistics
import struct
import time

from .changes import ChangeRows
from .machine import WORK, Unavailable, say
from .feeds import FeedRows
from .leaderboards import LeaderboardRows
from .messages import MessageRows
from .processes import Load, load, request
from .replicas import ReplicaRows
from .report import Row
from .servers import (Bellhop, CommitServer, Hummingbird, Nchan, SendLoop, StaticServer, Transport, event_text)


class Bench:
    def __init__(self, report, cores, executables, quick, deadline):
        self.report, self.cores, self.executables = report, cores, executables
        self.quick, self.deadline = quick, deadline
        self.turns = 1 if quick else 3
        self.seconds = 0.8 if quick else 2.0
        self.client_threads = len(cores.load)

    def executable(self, name):
        value = self.executables[name]
        if isinstance(value, Unavailable):
            raise value
        return value

    def group(self, title, measure, rows):
        """Runs one group; whatever goes wrong becomes visible rows, and the other groups still run."""
        try:
            if time.monotonic() > self.deadline:
                raise Unavailable("not measured: the time of the run was used up")
            say(f"bench: {title}")
            measure()
        except Unavailable as error:
            self._fail(rows, str(error))
        except Exception as error:  # noqa: BLE001: a defect in one group must not cost the table
            self._fail(rows, f"{type(error).__name__}: {error}")

    def _fail(self, rows, reason):
        say(f"bench:   not available: {reason}")
        for row in rows:
            if not self.report.has(row):
                self.report.add(Row(row, ours=f"not available: {reason}"))

    # -- fan-out -----------------------------------------------------------------------------------------------

    def contestants(self, shards=1):
        """The servers of a fan-out comparison; one that is missing becomes its reason."""
        makers = {
            "send": SendLoop,
            "transport": lambda: Transport(self.executable("transport"), shards),
            "bellhop": lambda: Bellhop(self.executable("bellhop"), shards=shards),
            "nchan": Nchan,
            "hummingbird": lambda: Hummingbird(self.executable("peers")),
        }
        contestants = {}
        for key, make in makers.items():
            try:
                contestants[key] = make()
            except Unavailable as error:
                contestants[key] = error
        return contestants

    def fanout_options(self, server, streams):
        if isinstance(server, Bellhop):
            return server.fanout(streams)
        return dict(server.fanout, publish_body=event_text(length=self.event_bytes))

    event_bytes = 200

    def measure_fanout(self, contestants, sizes, cores, window=2, turns=None):
        """{(key, streams): deliveries/s}: the servers take turns, so that a slow minute of the machine hits all."""
        results, running, reasons = {}, {}, {}
        for key, server in contestants.items():
            if isinstance(server, Unavailable):
                reasons[key] = str(server)
                continue
            try:
                running[key] = server.start(cores)
                if isinstance(server, Bellhop):
                    server.open_shops(running[key])
            except (Unavailable, OSError) as error:
                reasons[key] = str(error)
        try:
            for streams in sizes:
                for _ in range(turns or self.turns):
                    for key, process in running.items():
                        if (key, streams) in reasons:
                            continue
                        try:
                            results.setdefault((key, streams), []).append(
                                self.one_fanout(contestants[key], process, streams, window))
                        except (Unavailable, OSError, ValueError) as error:
                            reasons[(key, streams)] = str(error)
                            say(f"bench:   {key}, {streams} streams: {error}")
        finally:
            for process in running.values():
                process.stop()
        medians = {point: statistics.median(values) for point, values in results.items()}
        return medians, reasons

    def one_fanout(self, server, process, streams, window, **options):
        if isinstance(server, Bellhop):
            server.open_shops(process)
        result = load("sse_load", self.cores.all_load(), port=process.port, streams=streams, mode="closed",
                      window=window, threads=min(self.client_threads, streams), seconds=self.seconds, warmup=0.4,
                      server_pid=process.pid, **dict(self.fanout_options(server, streams), **options))
        if result["lost"]:
            say(f"bench:   {server.name}: {result['lost']} deliveries lost, {result['statuses']}")
            if result["lost"] > result["delivered"] * 0.02:
                raise Unavailable(f"{result['lost']} of {result['lost'] + result['delivered']} deliveries were lost")
        if result["clientCpu"] > 0.97 and result["serverCpu"] < 0.9:
            say(f"bench:   {server.name}: the load client was the bottleneck at {streams} streams")
        return result["deliveriesPerSecond"]

    def fanout(self):
        sizes = [1_000, 10_000]
        self.match_event_size()
        rates, reasons = self.measure_fanout(self.contestants(), sizes, self.cores.server)
        curve, curve_reasons = {}, {}
        if not self.quick:
            curve, curve_reasons = self.measure_fanout(self.contestants(), [10, 100], self.cores.server, turns=1)
        reasons.update({key: value for key, value in curve_reasons.items() if isinstance(key, tuple)})
        self.fanout_rates = {**rates, **curve}
        for streams in sizes:
            self.report_fanout(rates, reasons, streams)
        self.report_fanout_curve(reasons)

    def match_event_size(self):
        """The peers send as many bytes per event as the service does."""
        try:
            server = Bellhop(self.executable("bellhop"))
            with server.start(self.cores.server) as process:
                server.open_shops(process)
                result = load("sse_load", self.cores.all_load(), port=process.port, streams=10, mode="closed",
                              seconds=0.3, warmup=0, **server.fanout(10))
                if result["delivered"] > 20:
                    self.event_bytes = max(100, round(result["bytes"] / (result["delivered"] + 10 * 9)))
        except (Unavailable, OSError) as error:
            say(f"bench:   size of the service's event not known, {self.event_bytes} bytes are used: {error}")

    def report_fanout(self, rates, reasons, streams):
        def rate(key):
            return rates.get((key, streams))

        def reason(key):
            return reasons.get((key, streams)) or reasons.get(key) or "not measured"

        label = f"Fan-out to {streams:,} streams, 1 shard, 1 core"
        goals = [("send", "the raw `send` loop", 0.95), ("nchan", "nginx + nchan", 1.45 if streams > 1_000 else 1.6),
                 ("hummingbird", "Hummingbird", 3.5)]
        for key, name, goal in goals:
            self.report.add(Row.against(
                f"{label}: the service / {name}", goal, rate("bellhop"), rate(key), unit="deliveries/s",
                missing=reason("bellhop") if not rate("bellhop") else f"{name}: {reason(key)}"))
        self.report.add(Row.against(
            f"{label}: our transport alone / the raw `send` loop", 0.95, rate("transport"), rate("send"),
            unit="deliveries/s", missing=reason("transport")))

    def report_fanout_curve(self, reasons):
        keys = [("send", "raw send loop"), ("transport", "our transport"), ("bellhop", "Bellhop"),
                ("nchan", "nginx + nchan"), ("hummingbird", "Hummingbird")]
        table = []
        for streams in (10, 100, 1_000, 10_000):
            cells = [f"{streams:,}"]
            for key, _ in keys:
                value = self.fanout_rates.get((key, streams))
                cells.append(f"{value:,.0f}" if value else "–")
            table.append(cells)
        self.report.add_curve(f"Deliveries per second, one event of {self.event_bytes} bytes to all streams, 1 server core",
                              ["streams"] + [name for _, name in keys], table)

    def two_shards(self):
        """On the same two cores: only the number of shards differs."""
        if not self.cores.two_servers:
            raise Unavailable("needs 4 cores: 2 for the service, 2 for the load")
        contestants = {}
        for shards in (1, 2):
            for key, make in (("bellhop", lambda: Bellhop(self.executable("bellhop"), shards=shards)),
                              ("transport", lambda: Transport(self.executable("transport"), shards))):
                try:
                    contestants[f"{key}-{shards}"] = make()
                except Unavailable as error:
                    contestants[f"{key}-{shards}"] = error
        rates, reasons = self.measure_fanout(contestants, [10_000], self.cores.two_servers)
        for key, name in (("bellhop", "the service"), ("transport", "our transport alone")):
            one, two = rates.get((f"{key}-1", 10_000)), rates.get((f"{key}-2", 10_000))
            why = next((text for point, text in reasons.items() if key in str(point)), "not measured")
            self.report.add(Row.against(f"2 shards / 1 shard, 10,000 streams, 2 cores: {name}", 1.75, two, one,
                                      unit="deliveries/s", missing=why))

    def burst(self):
        """8 events at once: what waits for a stream is joined into one send; the raw loop sends 8 times."""
        streams, results, reasons = 1_000, {}, {}
        for _ in range(self.turns):
            for key, server in self.contestants().items():
                if key not in ("send", "transport", "bellhop") or key in reasons:
                    continue
                try:
                    if isinstance(server, Unavailable):
                        raise server
                    with server.start(self.cores.server) as process:
                        if key == "bellhop":
                            server.open_shops(process)
                            extra = {"group": 8, "publishers": 8}
                        else:
                            extra = server.burst(8)
                        results.setdefault(key, []).append(self.one_fanout(server, process, streams, 1, **extra))
                except (Unavailable, OSError) as error:
                    reasons[key] = str(error)
        medians = {key: statistics.median(values) for key, values in results.items()}
        for key, name in (("transport", "our transport alone"), ("bellhop", "the service, 8 separate requests")):
            self.report.add(Row.against(f"Burst of 8 events, 1,000 streams: {name} / 8 sends of the raw loop", 5.0,
                                      medians.get(key), medians.get("send"), unit="deliveries/s",
                                      missing=reasons.get(key, reasons.get("send", "not measured"))))

    # -- streams -----------------------------------------------------------------------------------------------

    def memory_per_stream(self):
        streams = 2_000 if self.quick else 10_000
        results, reasons = {}, {}
        for key, server in self.contestants().items():
            try:
                if isinstance(server, Unavailable):
                    raise server
                with server.start(self.cores.server) as process:
                    results[key] = self.memory_of(server, process, streams)
            except (Unavailable, OSError) as error:
                reasons[key] = str(error)
        peers = ", ".join(f"{name} {results[key]:.1f}" if key in results else f"{name}: {reasons[key]}"
                          for key, name in (("nchan", "nginx + nchan"), ("hummingbird", "Hummingbird"), ("send", "raw loop")))
        self.report.add(Row.at_most(f"Memory per idle stream, {streams:,} streams, subscription included", 1.5,
                                    results.get("bellhop"), unit="KiB", peers=peers, missing=reasons.get("bellhop")))
        self.report.add(Row.at_most(f"Memory per idle stream, {streams:,} streams, the socket's part alone", 0.5,
                                    results.get("transport"), unit="KiB", missing=reasons.get("transport")))

    def memory_of(self, server, process, streams):
        """KiB of resident memory per stream; pages the process touched for its first streams are not counted twice."""
        options = self.fanout_options(server, streams)
        if isinstance(server, Bellhop):
            options = {key: options[key] for key in ("tokens", "ready_event", "open_timeout")}
            options["path"] = "/v1/stream"
        else:
            options = {"path": options["path"]}
        load_options = dict(options, port=process.port, mode="hold", threads=self.client_threads)
        warm = Load("sse_load", self.cores.all_load(), streams=200, **load_options)
        warm.ready()
        warm.result()
        time.sleep(0.5)
        before = process.resident_bytes()
        held = Load("sse_load", self.cores.all_load(), streams=streams, **load_options)
        held.ready()
        time.sleep(1.0)
        after = process.resident_bytes()
        held.result()
        return (after - before) / 1024 / streams

    def targeted(self):
        """CPU of the server for one event to one of N streams."""
        few, many = 10, 2_000 if self.quick else 19_000
        costs, reasons = {}, {}
        for key in ("bellhop", "transport"):
            server = self.contestants()[key]
            try:
                if isinstance(server, Unavailable):
                    raise server
                for _ in range(self.turns):
                    for streams in (few, many):
                        with server.start(self.cores.server) as process:
                            costs.setdefault((key, streams), []).append(self.one_targeted(server, process, streams))
            except (Unavailable, OSError) as error:
                reasons[key] = str(error)
        for key, name in (("bellhop", "the service, its transaction included"), ("transport", "our transport alone")):
            low, high = (statistics.median(costs[(key, n)]) if (key, n) in costs else None for n in (few, many))
            self.report.add(Row.against(f"CPU per targeted event, {many:,} streams / {few} streams: {name}", 1.2, high, low,
                                      unit="µs", at_most=True, missing=reasons.get(key, "not measured")))

    def one_targeted(self, server, process, streams):
        if isinstance(server, Bellhop):
            options = server.targeted(streams)
        else:
            options = {"path": "/stream", "publish_path": "/publish?target={u}", "users": streams, "expect": 1,
                       "publish_body": event_text()}
        result = load("sse_load", self.cores.all_load(), port=process.port, streams=streams, mode="closed", window=1,
                      threads=1, seconds=self.seconds, warmup=0.5, server_pid=process.pid, **options)
        if result["lost"] > 1 or result["published"] < 50:
            raise Unavailable(f"{result['lost']} events did not arrive, {result['published']} were published")
        return result["serverUsPerPublish"]

    def rest_during_fanout(self):
        """A paced GET /v1/badges, alone and while every event goes to all streams as fast as they can be sent."""
        streams = 2_000 if self.quick else 10_000
        server = Bellhop(self.executable("bellhop"))
        idle, busy = [], []
        with server.start(self.cores.two_servers or self.cores.server) as process:
            for _ in range(self.turns):
                server.open_shops(process)
                idle.append(self.rest_p99(process))
                fanout = Load("sse_load", self.cores.load[0], port=process.port, streams=streams, mode="closed", window=2,
                              threads=1, seconds=60, warmup=0, until_input_ends=True, **server.fanout(streams))
                fanout.ready()
                time.sleep(1.0)
                busy.append(self.rest_p99(process))
                result = fanout.result()
                if result["delivered"] < streams:
                    raise Unavailable(f"no fan-out took place: {result['delivered']} deliveries")
        self.report.add(Row.against(f"REST p99 during a {streams:,}-stream fan-out / idle", 3.0, statistics.median(busy) / 1000,
                                  statistics.median(idle) / 1000, unit="ms", at_most=True))

    def rest_p99(self, process):
        result = load("http_load", self.cores.load[-1], port=process.port, connections=8, threads=1, rate=500, path="/v1/badges",
                      seconds=max(2.0, self.seconds), tokens=str(WORK / "one-token.txt"))
        if result["good"] < result["requests"] * 0.99 or not result["requests"]:
            raise Unavailable(f"GET /v1/badges: {result['statuses']}")
        return result["latencyUs"]["p99"]

    def disconnection(self):
        server = Bellhop(self.executable("bellhop"))
        samples = []
        with server.start(self.cores.server) as process:
            for turn in range(4 if self.quick else 10):
                samples.append(self.one_disconnection(server, process, reset=turn % 2 == 1))
        self.report.add(Row.at_most("Disconnection noticed (FIN and RST in turn, worst case, seen through /metrics)", 50,
                                    max(samples) * 1000, unit="ms"))

    def one_disconnection(self, server, process, reset):
        """Seconds from close() to a lower gauge of open streams; the reading of /metrics is part of it."""
        before = open_streams(process)
        client = socket.create_connection(("127.0.0.1", process.port))
        client.sendall(f"GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server_token()}\r\n\r\n".encode())
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
        """Two shards where there are cores for them; every one of 50 events a second goes to all 1,000 streams."""
        cores = self.cores.two_servers or self.cores.server
        server = Bellhop(self.executable("bellhop"), shards=2 if self.cores.two_servers else 1,
                         settings={"BELLHOP_PIN_SHARDS": "true"})
        results = {True: [], False: []}
        with server.start(cores) as process:
            for polls in [True] * self.turns + [False]:
                server.open_shops(process)
                result = load("sse_load", self.cores.all_load(), port=process.port, streams=1_000, mode="paced", rate=50,
                              threads=self.client_threads, seconds=2 if self.quick else 6, warmup=1, poll=polls,
                              **server.fanout(1_000))
                if result["lost"]:
                    raise Unavailable(f"{result['lost']} deliveries were lost")
                results[polls].append(result)
        # The commit lies between the two moments; the goal is held against the earlier one, the request's sending.
        for name, goal, published in (("p50", 3.0, "3.3 ms"), ("p99", 4.5, "4.8 ms")):
            def median(key, polls=True):
                return statistics.median(result[key][name] for result in results[polls]) / 1000
            self.report.add(Row.at_most(
                f"Commit → client, 1,000 streams, 50 events/s to all, {name} (from sending the request, so commit included)",
                goal, median("latencyUs"), unit="ms",
                peers=f"to a client that sleeps: {median('latencyUs', False):.2f} ms; best published: {published}"))

    # -- requests ----------------------------------------------------------------------------------------------

    def badges(self):
        """GET /v1/badges, 64 connections: 304 and 200, against the bare C server and Hummingbird on the same row."""
        ours = Bellhop(self.executable("bellhop"))
        rates, reasons = {}, {}
        token_path = WORK / "one-token.txt"
        with ours.start(self.cores.server) as process, StaticServer().start(self.cores.server) as static:
            ours.call(process, "POST", "/v1/events", {
                "id": "badge-1", "type": "visit.created", "userId": "u1", "data": {"visitId": "v1", "status": "confirmed"}})
            tag = entity_tag(process, server_token())
            hummingbird = None
            try:
                copy = ours.copy_database(WORK / "peer.sqlite")
                hummingbird = Hummingbird(self.executable("peers"), copy, ours.badges_query()).start(self.cores.server)
                peer_tag = entity_tag(hummingbird, server_token())
            except (Unavailable, OSError) as error:
                reasons["hummingbird"] = str(error)
            try:
                for _ in range(self.turns):
                    for key, target, etag in (("bellhop", process, tag), ("static", static, '"7"'),
                                              ("hummingbird", hummingbird, None if not hummingbird else peer_tag)):
                        for status in ("304", "200"):
                            if target:
                                rates.setdefault((key, status), []).append(
                                    self.badges_rate(target, status, etag, token_path))
            finally:
                if hummingbird:
                    hummingbird.stop()
        for status, goal in (("304", 0.85), ("200", 0.5)):
            rate = {key: statistics.median(rates[(key, status)]) for key in ("bellhop", "static", "hummingbird")
                    if (key, status) in rates}
            self.report.add(Row.against(f"`GET /v1/badges` {status}, 64 connections: the service / C libmicrohttpd static", goal,
                                      rate["bellhop"], rate["static"], unit="requests/s"))
            self.report.add(Row.against(f"`GET /v1/badges` {status}: the service / Hummingbird, same work, same SQLite", 4.0,
                                      rate["bellhop"], rate.get("hummingbird"), unit="requests/s",
                                      missing=reasons.get("hummingbird")))

    def badges_rate(self, target, status, etag, token_path):
        headers = [f"If-None-Match: {etag}"] if status == "304" else []
        result = load("http_load", self.cores.all_load(), port=target.port, connections=64, threads=self.client_threads,
                      path="/v1/badges", header=headers, tokens=str(token_path), seconds=self.seconds, server_pid=target.pid)
        if result["statuses"].get(status, 0) < result["requests"] * 0.99 or not result["requests"]:
            raise Unavailable(f"GET /v1/badges on {target.name}: wanted {status}, got {result['statuses']}")
        if result["clientCpu"] > 0.97 and result["serverCpu"] < 0.9:
            say(f"bench:   {target.name}: the load client was the bottleneck")
        return result["rps"]

    def durable_notifications(self):
        """201 = on disk with synchronous=FULL; 64 connections; unique ids; 1,000 users."""
        ours, yardstick = Bellhop(self.executable("bellhop")), CommitServer()
        cores = self.cores.two_servers or self.cores.server
        rates = {"ours": [], "one": []}
        with ours.start(cores) as process, yardstick.start(cores) as commits:
            for _ in range(self.turns):
                result = ours.notifications(process, seconds=max(1.5, self.seconds), cores=self.cores.all_load(),
                                            threads=self.client_threads)
                if result["statuses"].get("201", 0) < result["requests"] * 0.99:
                    raise Unavailable(f"POST /v1/events: {result['statuses']}")
                rates["ours"].append(result["goodRps"])
                result = load("http_load", self.cores.all_load(), port=commits.port, connections=64,
                              threads=self.client_threads, method="POST", path="/v1/events",
                              body=Bellhop.event_body("n"), users=1_000, seconds=max(1.5, self.seconds))
                rates["one"].append(result["goodRps"])
        self.report.add(Row.against("Durable notifications (`POST /v1/events`, 64 connections) / one commit per request", 10.0,
                                  statistics.median(rates["ours"]), statistics.median(rates["one"]), unit="requests/s"))

    # -- size and growth ---------------------------------------------------------------------------------------

    def start(self):
        """An existing database with 1,000 notifications; from the start of the process to the first answer."""
        server = Bellhop(self.executable("bellhop"))
        with server.start(self.cores.server) as process:
            server.notifications(process, count=1_000, users=100, cores=self.cores.all_load())
        server.fresh = False
        starts, resident = [], []
        for _ in range(3 if self.quick else 7):
            with server.start(self.cores.server) as process:
                starts.append(process.start_seconds * 1000)
                time.sleep(0.3)
                resident.append(process.resident_bytes() / 2**20)
        self.report.add(Row.at_most("Start to first answer, existing database", 150, statistics.median(starts), unit="ms"))
        self.report.add(Row.at_most("Resident memory at start", 40, statistics.median(resident), unit="MB"))

    def growth(self):
        """The same four measurements with more and more stored notifications (50 a user, the service's own bound)."""
        sizes = [1_000, 10_000] if self.quick else [1_000, 100_000, 1_000_000]
        server, table = Bellhop(self.executable("bellhop")), []
        cores, stored, filling = self.cores.two_servers or self.cores.server, 0, 1.0
        for size in sizes:
            if stored and time.monotonic() + (size - stored) / filling + 4 * self.seconds > self.deadline:
                table.append([f"{size:,}", f"not measured: filling up at {filling:,.0f}/s would take too long", "", "", "", ""])
                continue
            server.fresh = stored == 0
            with server.start(cores) as process:
                users = max(1, size // 50)
                result = server.notifications(process, count=size - stored, users=users, cores=self.cores.all_load(),
                                              threads=self.client_threads)
                if result["good"] < size - stored:
                    raise Unavailable(f"only {result['good']} of {size - stored} were stored: {result['statuses']}")
                filling, stored = result["goodRps"], size
            server.fresh = False
            with server.start(cores) as process:
                common = {"port": process.port, "connections": 64, "threads": self.client_threads,
                          "tokens": str(WORK / "one-token.txt"), "seconds": self.seconds}
                badges = load("http_load", self.cores.all_load(), path="/v1/badges", **common)
                listing = load("http_load", self.cores.all_load(), path="/v1/notifications?limit=20", **common)
                resident = process.resident_bytes() / 2**20
                table.append([f"{size:,}", f"{process.start_seconds * 1000:.0f}", f"{resident:.0f}",
                              f"{badges['goodRps']:,.0f}", f"{listing['goodRps']:,.0f}", f"{filling:,.0f}"])
        self.report.add_curve("Growth with stored notifications", [
            "stored", "start, ms", "resident, MB", "`GET /v1/badges`/s", "`GET /v1/notifications?limit=20`/s",
            "stored per second while filling up to here"], table)

    def image(self):
        self.report.add(Row("Container image", goal="≤ 120 MB", ours="not measured here: `make image-test` prints it"))

    # -- all ---------------------------------------------------------------------------------------------------

    def run(self, only):
        (WORK / "one-token.txt").write_text(server_token() + "\n")
        changes = ChangeRows(self)
        groups = [
            ("fanout", "fan-out, 1 shard", self.fanout, ["Fan-out, 1 shard"]),
            ("burst", "burst of 8 events", self.burst, ["Burst of 8 events against 8 sends"]),
            ("shards", "2 shards against 1", self.two_shards, ["2 shards / 1 shard, 10,000 streams"]),
            ("memory", "memory per idle stream", self.memory_per_stream, ["Memory per idle stream"]),
            ("targeted", "targeted events", self.targeted, ["CPU per targeted event"]),
            ("rest", "REST during a fan-out", self.rest_during_fanout, ["REST p99 during a 10,000-stream fan-out / idle"]),
            ("disconnect", "disconnection", self.disconnection, ["Disconnection noticed"]),
            ("latency", "commit → client", self.commit_to_client, ["Commit → client, p50 and p99"]),
            ("badges", "GET /v1/badges", self.badges, ["`GET /v1/badges`, 304 and 200"]),
            ("durable", "durable notifications", self.durable_notifications, ["Durable notifications"]),
            ("changes", "one change among filtered ids", changes.one_change, ["CPU per change of one filtered id"]),
            ("changes", "ingest and routing of changes", changes.ingest, ["Table changes"]),
            ("changes", "a morning in a school", changes.morning, ["Morning rush"]),
            ("changes", "a day of likes", changes.day_of_likes, ["A day of likes"]),
            ("changes", "memory of subscriptions", changes.memory, ["Memory per stream with 100 filtered ids"]),
            ("changes", "change → client", changes.latency, ["Change of a row → client"]),
            ("postgres", "two replicas on PostgreSQL", lambda: ReplicaRows(self).measure(), ["Two replicas on PostgreSQL"]),
            ("order", "order of commits on PostgreSQL", lambda: ReplicaRows(self).order(), ["Commit order on PostgreSQL"]),
            ("leaderboards", "leaderboards", lambda: LeaderboardRows(self).measure(), ["Leaderboards"]),
            ("feed", "posts and feeds", lambda: FeedRows(self).measure(), ["Feeds"]),
            ("messages", "messages", lambda: MessageRows(self).measure(), ["Messages"]),
            ("start", "start and memory", self.start, ["Start to first answer, existing database", "Resident memory at start"]),
            ("growth", "growth with stored notifications", self.growth, ["Growth with stored notifications"]),
            ("image", "image", self.image, ["Container image"]),
        ]
        for name, title, measure, rows in groups:
            if not only or name in only:
                self.group(title, measure, rows)


def server_token():
    from .servers import token
    return token_cache.setdefault("u1", token("u1"))


token_cache = {}


def open_streams(process):
    """The gauge of open streams, whatever its prefix."""
    _, body = request(process.port, "GET", "/metrics")
    total, found = 0.0, False
    for line in body.decode().splitlines():
        match = re.match(r"^\w*(?:streams_open|open_streams|streams_current|streams)(?:\{[^}]*\})? ([0-9.e+]+)", line)
        if match:
            total, found = total + float(match.group(1)), True
    if not found:
        raise Unavailable("/metrics has no gauge of open streams")
    return total


def entity_tag(process, bearer):
    import http.client
    connection = http.client.HTTPConnection("127.0.0.1", process.port, timeout=10)
    connection.request("GET", "/v1/badges", headers={"Authorization": f"Bearer {bearer}"})
    response = connection.getresponse()
    response.read()
    connection.close()
    tag = response.getheader("ETag")
    if response.status != 200 or not tag:
        raise Unavailable(f"GET /v1/badges on {process.name}: {response.status}, ETag {tag}")
    return tag
