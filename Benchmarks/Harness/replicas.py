"""Rows of two replicas on one PostgreSQL: from a commit on A to a client of B, a shared topic, idle streams, reads, writes."""

import os
import statistics
import subprocess
import time

from . import commit_order
from .changes import IDS, TABLES, ChangeRows, item, names, subscription_file
from .machine import Unavailable, say
from .postgres import Cluster
from .processes import Load, Server, free_port, load, server_environment
from .report import Row
from .servers import SECRET, Bellhop, token, token_file

DATABASE, OWNER, SERVICE = "bellhop", "bellhop_owner", "bellhop"
READERS = 8
TOPICS = 64  # as many changes can be on their way at once: two of one shop would race for its row, so they wait


class Installation:
    """A database made as in production: the owner migrates, the service connects with a login of its own that owns
    nothing and cannot bypass row-level security."""

    def __init__(self, cluster, executable):
        self.cluster, self.executable = cluster, executable

    def make(self):
        self.cluster.psql(f"CREATE ROLE {OWNER} LOGIN CREATEROLE; CREATE EXTENSION pg_stat_statements;")
        self.cluster.psql(f"CREATE DATABASE {DATABASE} OWNER {OWNER};")
        done = subprocess.run([str(self.executable), "migrate", "--database", self.cluster.url(OWNER, DATABASE)],
                              capture_output=True, text=True, timeout=120, env=server_environment({"BELLHOP_JWT_SECRET": SECRET}))
        if done.returncode != 0:
            raise Unavailable(f"bellhop migrate failed: {(done.stdout + done.stderr).strip()[-300:]}")
        self.cluster.psql(f"CREATE ROLE {SERVICE} LOGIN IN ROLE bellhop_service;")
        return self

    def replica(self, name, **settings):
        return Replica(self, name, settings)

    def sql(self, text):
        """Asked in the database beside the service's own, so that the question is not counted with its answers."""
        return self.cluster.psql(text)


class Replica(Bellhop):
    """One process of the service on the shared database."""

    def __init__(self, installation, name, settings):
        super().__init__(installation.executable, settings=settings)
        self.installation, self.name = installation, name

    def start(self, cores):
        port = free_port()
        return Server(f"replica-{self.name}", [self.executable, "serve"], cores, port, {
            "BELLHOP_HOST": "127.0.0.1", "BELLHOP_PORT": str(port),
            "BELLHOP_DATABASE": self.installation.cluster.url(SERVICE, DATABASE), "BELLHOP_JWT_SECRET": SECRET,
            "BELLHOP_DATABASE_CONNECTIONS": str(READERS), "BELLHOP_REACTORS": "1", "BELLHOP_SHARDS": str(self.shards),
            "BELLHOP_RATE_LIMIT_USER": "0", **self.settings}, ready_path="/readyz")

    def open_topics(self, server):
        for shop in range(TOPICS):
            self.call(server, "PUT", f"/v1/shops/s{shop}", {"name": f"Shop {shop}", "timeZone": "Europe/Berlin"})
            self.call(server, "PUT", f"/v1/shops/s{shop}/barbers/b1", {"onDuty": False})

    def shared(self, streams):
        """All streams watch all shops; the k-th event of a shop belongs to the k-th request for it."""
        topics = ",".join(f"queue:s{shop}" for shop in range(TOPICS))
        return dict(self.fanout(streams), path=f"/v1/stream?topics={topics}", users=TOPICS, marker='"shopId":"s',
                    marker_topics=True, publishers=TOPICS)

    def own(self, streams):
        """Each stream belongs to another user, each notification to one of them."""
        run = f"r{time.time_ns()}-"
        options = self.targeted(streams)
        return dict(options, publish_body=self.event_body(run[:-1]), marker=f'"eventId":"{run}')


class ReplicaRows:
    """The group `postgres`. Everything shares the machine: PostgreSQL, both replicas and the load clients."""

    def __init__(self, bench):
        self.bench, self.report, self.quick = bench, bench.report, bench.quick
        # PostgreSQL and the replicas share all cores but the last, which the load client has for itself.
        every = [str(core) for core in sorted(os.sched_getaffinity(0))][:4]
        self.served, self.loading = ",".join(every[:-1] or every), every[-1]
        self.every = ",".join(every)
        self.service = Bellhop("")
        self.turns = 1 if self.quick else 2

    def measure(self):
        executable = self.bench.executable("bellhop")
        with Cluster(self.served) as cluster:
            installation = Installation(cluster, executable).make()
            for title, rows in (
                    ("commit on A → client on B", self.across_replicas),
                    ("a topic that all streams share", self.shared_topic),
                    ("idle streams", self.idle_streams),
                    ("durable notifications", self.durable),
                    ("table changes", self.changes)):
                self._part(title, lambda rows=rows: rows(installation))
        with Cluster(self.every) as cluster:
            installation = Installation(cluster, executable).make()
            self._part("GET /v1/badges", lambda: self.badges(installation))

    def _part(self, title, measure):
        """One part that fails leaves its reason in the table and does not cost the others."""
        say(f"bench:   {title}")
        try:
            measure()
        except Unavailable as error:
            self.report.add(Row(f"PostgreSQL: {title}", ours=f"not available: {error}"))

    def order(self):
        cores = self.bench.cores
        with Cluster(cores.two_servers or cores.server) as cluster:
            if self.quick:
                commit_order.report(cluster, cores.all_load(), self.report, turns=1, seconds=1, held_seconds=0.5)
            else:
                commit_order.report(cluster, cores.all_load(), self.report, turns=1, seconds=2)

    # -- streams -----------------------------------------------------------------------------------------------

    def across_replicas(self, installation):
        """50 notifications a second are posted to A; each arrives at the one stream of its user."""
        a, b = installation.replica("A"), installation.replica("B")
        with a.start(self.served) as first, b.start(self.served) as second:
            placings = [("1,000 streams on B", second.port), ("500 streams on each", f"{second.port},{first.port}")]
            for what, ports in placings[:1] if self.quick else placings:
                results = [load("sse_load", self.loading, port=ports, publish_port=first.port, streams=1_000, mode="paced",
                                rate=50, threads=1, seconds=2 if self.quick else 8, warmup=1, **a.own(1_000))
                           for _ in range(self.turns)]
                if lost := sum(result["lost"] for result in results):
                    raise Unavailable(f"{lost} notifications did not arrive")
                for name, goal in (("p50", 5.0), ("p99", 25.0)):
                    sent, answered = (statistics.median(result[key][name] for result in results) / 1000
                                      for key in ("latencyUs", "sinceAnswerUs"))
                    self.report.add(Row.at_most(
                        f"Commit on A → client of B, PostgreSQL, 50 notifications/s, {what}, {name} (from sending the request)",
                        goal, sent, unit="ms", peers=f"from the 201: {answered:.2f} ms"))

    def shared_topic(self, installation):
        """500 streams over both replicas watch the same queues; changes go to both replicas."""
        a, b = installation.replica("A"), installation.replica("B")
        with a.start(self.served) as first, b.start(self.served) as second:
            # A little more than the goal is asked, since the last answers are waited for.
            goal = self.one_shared(a, first, second, 1_050, 2 if self.quick else 10)
            what = "Row-level security on, 500 streams see every change, two replicas, 1,050 changes/s asked"
            self.report.add(Row(
                f"{what}: changes", "≥ 1,000 changes/s", f"{goal['rate']:,.0f} changes/s",
                "published for an RLS-checked push at 500 clients: 30 changes/s", f"{goal['rate'] / 30:.0f}",
                "yes" if goal["rate"] >= 1_000 else "NO"))
            # The commit lies between the two moments, close to the second: until then the request waits and writes.
            for name, key in (("the answer that says committed", "answered95"), ("sending the request, so writing included", "p95")):
                self.report.add(Row.at_most(f"{what}: p95 from {name}", 20, goal[key], unit="ms",
                                            peers="published for the push alone: 228 to 618 ms"))
            if self.quick:
                return
            table = []
            for rate in (100, 300, 500, 2_000):
                one = self.one_shared(a, first, second, rate, 4)
                table.append(self._shared_line(rate, one))
            table.insert(3, self._shared_line(1_050, goal))
            self.report.add_curve(
                "500 streams on two replicas see every change (PostgreSQL, row-level security)",
                ["asked per second", "done per second", "deliveries per second", "p50, ms", "p95, ms", "p99, ms",
                 "p95 from the answer, ms", "CPU of the load client"], table)

    @staticmethod
    def _shared_line(rate, one):
        return [f"{rate:,}", f"{one['rate']:,.0f}", f"{one['deliveries']:,.0f}", f"{one['p50']:.1f}", f"{one['p95']:.1f}",
                f"{one['p99']:.1f}", f"{one['answered95']:.1f}", f"{one['client'] * 100:.0f} %"]

    def one_shared(self, replica, first, second, rate, seconds):
        replica.open_topics(first)
        ports = f"{first.port},{second.port}"
        result = load("sse_load", self.loading, port=ports, streams=500, mode="paced", rate=rate, threads=1, seconds=seconds,
                      warmup=0.5, **replica.shared(500))
        refused = {status: count for status, count in result["statuses"].items() if not status.startswith("2")}
        if refused or result["publishFailures"]:
            raise Unavailable(f"PUT barbers at {rate} changes/s: {refused}, {result['publishFailures']} failed")
        if result["lost"]:
            raise Unavailable(f"{result['lost']} of {result['lost'] + result['delivered']} deliveries did not arrive "
                              f"at {rate} changes/s; {result['closedByServer']} streams were closed")
        latency = {name: result["latencyUs"][name] / 1000 for name in ("p50", "p95", "p99")}
        return dict(latency, rate=result["published"] / result["seconds"], deliveries=result["deliveriesPerSecond"],
                    answered95=result["sinceAnswerUs"]["p95"] / 1000, client=result["clientCpu"])

    def idle_streams(self, installation):
        """What one replica asks of PostgreSQL in 10 s, without a stream and with 1,000 that nothing happens to."""
        replica, seconds = installation.replica("A"), 3 if self.quick else 10
        with replica.start(self.served) as process:
            none = self.statements_per_second(installation, seconds)
            held = Load("sse_load", self.loading, port=process.port, path="/v1/stream", mode="hold", streams=1_000, threads=1,
                        tokens=token_file(1_000), ready_event="stream:ready", open_timeout=60)
            held.ready()
            time.sleep(2)
            many = self.statements_per_second(installation, seconds)
            if held.result()["opened"] != 1_000:
                raise Unavailable("the streams did not stay open")
        polls, others = many["polls"], many["others"]
        what = "PostgreSQL, one replica with 1,000 idle streams"
        self.report.add(Row(
            f"{what}: polls of the event log", "≤ 1 /s", f"{polls:.2f} /s", f"without a stream: {none['polls']:.2f} /s",
            "", "yes" if polls <= 1.15 else "NO"))
        self.report.add(Row(
            f"{what}: other statements (upkeep)", "none for a stream", f"{others:.2f} /s",
            f"without a stream: {none['others']:.2f} /s", "", "yes" if others <= none["others"] + 2 else "NO"))

    def statements_per_second(self, installation, seconds):
        """Of the service's login, counted by the server; what only frames a query (BEGIN, COMMIT, the scope) belongs to
        the query. One poll more or less falls into a window, whence the 15 % above."""
        installation.sql("SELECT pg_stat_statements_reset();")
        begin = time.monotonic()
        time.sleep(seconds)
        lines = installation.sql(f"""
            SELECT calls, regexp_replace(left(query, 100), '\s+', ' ', 'g') FROM pg_stat_statements
            WHERE userid = '{SERVICE}'::regrole AND query !~* '^(begin|commit|rollback|start|set |reset|discard)'
              AND query !~* '^select set_config' ORDER BY calls DESC""")
        passed = time.monotonic() - begin
        counts = [(int(calls), text) for calls, text in (line.split("|", 1) for line in lines)]
        say(f"bench:     statements in {passed:.0f} s: " + "; ".join(f"{calls} × {text}" for calls, text in counts[:12]))
        polls = sum(calls for calls, text in counts if "FROM event_counter" in text or "FROM events WHERE sequence >" in text)
        return {"polls": polls / passed, "others": (sum(calls for calls, _ in counts) - polls) / passed}

    # -- requests ----------------------------------------------------------------------------------------------

    def durable(self, installation):
        """201 = committed with synchronous_commit=on; 64 connections in all; SQLite on the same disk and cores."""
        seconds, rates = 1.0 if self.quick else 3.0, {"one": [], "two": [], "sqlite": []}
        sqlite, a, b = Bellhop(installation.executable), installation.replica("A"), installation.replica("B")
        with a.start(self.served) as first, b.start(self.served) as second, sqlite.start(self.served) as embedded:
            for _ in range(self.turns):
                rates["one"].append(self.notified([first], seconds))
                rates["two"].append(self.notified([first, second], seconds))
                rates["sqlite"].append(self.notified([embedded], seconds))
        rates = {key: statistics.median(values) for key, values in rates.items()}
        for key, name in (("one", "one replica"), ("two", "two replicas")):
            self.report.add(Row(
                f"Durable notifications (`POST /v1/events`, 64 connections), PostgreSQL, {name} / SQLite", "",
                f"{rates[key]:,.0f} requests/s", f"{rates['sqlite']:,.0f} requests/s", f"{rates[key] / rates['sqlite']:.2f}"))

    def notified(self, processes, seconds):
        running = [
            Load("http_load", self.loading, port=process.port, connections=64 // len(processes), threads=1, method="POST",
                 path="/v1/events", header=self.service.publisher, users=1_000, seconds=seconds, warmup=0.5,
                 body=self.service.event_body(f"d{time.time_ns()}-{process.port}"))
            for process in processes]
        results = [one.result() for one in running]
        for result in results:
            if result["statuses"].get("201", 0) < result["requests"] * 0.99 or not result["requests"]:
                raise Unavailable(f"POST /v1/events: {result['statuses']}")
        return sum(result["goodRps"] for result in results)

    def changes(self, installation):
        """Delivered to A, told by B, whose streams have 100 ids each; 1 % of them watch rows that change."""
        streams, rows = 1_000 if self.quick else 2_000, ChangeRows(self.bench)
        changing = streams // 100 * IDS
        a, b = (installation.replica(name, BELLHOP_TABLES=TABLES) for name in "AB")
        with a.start(self.served) as first, b.start(self.served) as second:
            watching = Load("sse_load", self.loading, port=second.port, mode="hold", threads=1,
                            subscriptions=subscription_file("replicas", rows.wishes(streams)),
                            **rows.streams(streams, "table:change"))
            watching.ready()
            for name, (mark, places, deliveries, connections) in rows.FORMS.items():
                run = rows.deliver(first, a, [item(one) for one in names(mark, places)], 1, changing // places,
                                   deliveries // (10 if self.quick else 2), connections, teller=second)
                self.report.add(Row(
                    f"Table changes taken in by A and told by B, PostgreSQL, {streams:,} streams of which 1 % watch them: {name}",
                    "≥ 10,000 /s", f"{run['rate']:,.0f} changes/s",
                    f"CPU of A per change: {run['serverUsPerRequest'] / places:.0f} µs", "",
                    "yes" if run["rate"] >= 10_000 else "NO"))
            watching.result()

    def badges(self, installation):
        """The service against pgbench as its own pool would be: as many connections, the same query, prepared.

        Both have the whole machine: where pgbench speaks to PostgreSQL, the service and its load client stand together."""
        with installation.replica("A").start(self.every) as process:
            filled = self.service.notifications(process, count=1_000, users=1_000, cores=self.every)
            if filled["good"] < 1_000:
                raise Unavailable(f"POST /v1/events: {filled['statuses']}")
            installation.cluster.psql("VACUUM ANALYZE badges;", DATABASE)
            self.same_answer(installation, process)
            runs = {key: [] for key in ("service", "plain", "scoped", "secured")}
            for _ in range(1 if self.quick else 4):
                runs["service"].append(self.badges_rate(process))
                for key, script, user in (("plain", "badges_plain.pgbench", "postgres"),
                                          ("scoped", "badges_scoped.pgbench", "postgres"),
                                          ("secured", "badges_scoped.pgbench", SERVICE)):
                    runs[key].append(installation.cluster.pgbench(
                        script, self.every, DATABASE, user, clients=READERS, threads=2,
                        seconds=1 if self.quick else 2))
        rate = {key: statistics.median(run["rate"] for run in values) for key, values in runs.items()}
        mean = {key: statistics.median(run["meanMs"] for run in values) for key, values in runs.items() if key != "service"}
        what = f"`GET /v1/badges` 200, PostgreSQL, 64 connections, {READERS} readers: the service / pgbench, same query"
        self.report.add(Row.against(f"{what}, row-level security on", 0.6, rate["service"], rate["secured"], unit="requests/s"))
        self.report.add(Row.against(f"{what}, without security or scope", 0.6, rate["service"], rate["plain"],
                                    unit="requests/s"))
        self.report.add(Row(
            f"Cost of row-level security on that query: pgbench with / without, {READERS} connections, mean latency", "",
            f"{mean['secured']:.3f} ms", f"the scope set but not asked for: {mean['scoped']:.3f} ms; "
            f"the query alone: {mean['plain']:.3f} ms", f"{mean['secured'] / mean['plain']:.2f}"))

    def same_answer(self, installation, process):
        """The yardstick's query finds what the service answers, and nothing without a scope; else it measures nothing."""
        ours = self.service.call(process, "GET", "/v1/badges", bearer=token("u7"))
        query = "SELECT messages, requests, bell, version FROM badges WHERE tenant = 'bench' AND user_id = 'u7';"
        scope = "SELECT set_config('bellhop.tenant', 'bench', true), set_config('bellhop.key.user._', '{\"u7\"}', true);"
        theirs = installation.cluster.psql(f"BEGIN; {scope} {query} COMMIT;", DATABASE, SERVICE)[-1:]
        if theirs != ["|".join(str(ours[name]) for name in ("messages", "requests", "bell", "version"))]:
            raise Unavailable(f"the yardstick's query answers {theirs}, the service {ours}")
        if unscoped := installation.cluster.psql(query, DATABASE, SERVICE):
            raise Unavailable(f"without a scope the service's login sees {unscoped}")

    def badges_rate(self, process):
        result = load("http_load", self.every, port=process.port, connections=64, threads=1, path="/v1/badges",
                      tokens=token_file(1_000), seconds=1 if self.quick else 2, warmup=0.5, server_pid=process.pid)
        if result["statuses"].get("200", 0) < result["requests"] * 0.99 or not result["requests"]:
            raise Unavailable(f"GET /v1/badges: {result['statuses']}")
        return {"rate": result["rps"]}
