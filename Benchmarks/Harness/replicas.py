"""Rows for two replicas on one PostgreSQL: from a commit on A to a client of B, a shared topic, idle streams, reads,
writes."""

import contextlib
import os
import subprocess
import time

from harness.ports import free_port
from harness.services import environment_for

from . import commit_order
from .changes import IDS, TABLES, ChangeRows, item, names, subscription_file
from .machine import Unavailable, say
from .notifications import Arrivals, webhook_at_once
from .postgres import Cluster
from .processes import Load, Server, load
from .report import Row, at_least, at_most
from .servers import SECRET, Bellhop, token, token_file
from .turns import THIS, Servers

DATABASE, OWNER, SERVICE = "bellhop", "bellhop_owner", "bellhop"
READERS = 8
TOPICS = 64  # the number of changes in flight: two changes of one shop would race for its row


class Installation:
    """A database set up as in production: the owner migrates, and the service connects with a separate login that owns
    nothing and cannot bypass row-level security."""

    def __init__(self, cluster, binary):
        self.cluster, self.binary = cluster, binary

    def make(self):
        self.cluster.psql(f"CREATE ROLE {OWNER} LOGIN CREATEROLE; CREATE EXTENSION pg_stat_statements;")
        self.cluster.psql(f"CREATE DATABASE {DATABASE} OWNER {OWNER};")
        done = subprocess.run([str(self.binary.executable), "migrate", "--database", self.cluster.url(OWNER, DATABASE)],
                              capture_output=True, text=True, timeout=120, env=environment_for(BELLHOP_JWT_SECRET=SECRET))
        if done.returncode != 0:
            raise Unavailable(f"bellhop migrate failed: {(done.stdout + done.stderr).strip()[-300:]}")
        self.cluster.psql(f"CREATE ROLE {SERVICE} LOGIN IN ROLE bellhop_service;")
        return self

    def replica(self, name, **settings):
        return Replica(self, name, settings)

    def sql(self, text):
        """Runs a query in a database other than the service's, so that the query itself is not counted."""
        return self.cluster.psql(text)


class Replica(Bellhop):
    """One process of the service on the shared database."""

    def __init__(self, installation, name, settings):
        super().__init__(installation.binary, settings=settings)
        self.installation, self.name = installation, name

    def start(self, cores):
        port = free_port()
        return Server(f"replica-{self.name}-{self.binary.name}", [self.binary.executable, "serve"], cores, port, {
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
        """Each stream belongs to a different user, each notification to one of them."""
        run = f"r{time.time_ns()}-"
        options = self.targeted(streams)
        return dict(options, publish_body=self.event_body(run[:-1]), marker=f'"eventId":"{run}')


class ReplicaRows:
    """The group `postgres`. PostgreSQL, both replicas and the load clients share the machine. Each binary has a
    separate cluster and database."""

    def __init__(self, bench):
        self.bench, self.report, self.pace = bench, bench.report, bench.pace
        # PostgreSQL and the replicas share all cores except the last, which belongs to the load client.
        every = [str(core) for core in sorted(os.sched_getaffinity(0))][:4]
        self.served, self.loading = ",".join(every[:-1] or every), every[-1]
        self.every = ",".join(every)
        self.service = Bellhop(bench.this)
    def measure(self):
        parts = [("PostgreSQL: commit on A → client on B", self.across_replicas),
                 ("PostgreSQL: a topic that all streams share", self.shared_topic),
                 ("PostgreSQL: idle streams", self.idle_streams),
                 ("PostgreSQL: durable notifications", self.durable),
                 ("PostgreSQL: a webhook at once", self.webhook_at_once),
                 ("PostgreSQL: table changes", self.changes)]
        with Servers() as clusters:
            self.clusters, self.cores = clusters, self.served
            self.bench.parts(parts)
        with Servers() as clusters:
            self.clusters, self.cores, self.report.cores = clusters, self.every, self.bench.cores.words("all")
            self.bench.parts([("PostgreSQL: `GET /v1/badges`", self.badges)])

    def installation(self, binary):
        def made():
            cluster = self.clusters.get((binary, "cluster"), lambda: Cluster(self.cores, name=binary.name))
            return contextlib.nullcontext(Installation(cluster, binary).make())

        return self.clusters.get((binary, "installation"), made)

    def replicas(self, servers, binary, names="AB", **settings):
        """Replicas and their processes, each started at its first use."""
        replicas = [self.installation(binary).replica(name, **settings) for name in names]
        return replicas + [servers.get((binary, replica.name), lambda replica=replica: replica.start(self.cores))
                           for replica in replicas]

    def order(self):
        cores = self.bench.cores
        with Cluster(cores.two_servers or cores.server) as cluster:
            commit_order.report(cluster, cores.all_load(), self.report, turns=1, seconds=self.pace.pick(1, 2),
                                writers=self.pace.pick((8,), (1, 2, 8)), held_seconds=self.pace.pick(0.3, 2.0))

    def webhook_at_once(self):
        """Two replicas: the one that sends first asks the other one for streams of the user."""
        with Arrivals() as arrivals:
            @contextlib.contextmanager
            def start(binary):
                with Servers() as servers:
                    a, _, first, _ = self.replicas(servers, binary, **arrivals.settings())
                    yield a, first

            webhook_at_once(self.bench, "PostgreSQL, two replicas", arrivals, start)

    # -- streams -----------------------------------------------------------------------------------------------

    def across_replicas(self):
        """50 notifications per second are posted to A; each arrives at the one stream of its user."""
        for what, is_on_both in (("1,000 streams on B", False), ("500 streams on each", True))[:self.pace.pick(1, 2)]:
            with Servers() as servers:
                def service(binary):
                    a, _, first, second = self.replicas(servers, binary)
                    result = load(
                        "sse_load", self.loading, port=f"{second.port},{first.port}" if is_on_both else second.port,
                        publish_port=first.port, streams=1_000, mode="paced", rate=50, threads=1,
                        seconds=self.pace.pick(1, 4), warmup=self.pace.pick(0.3, 0.5), **a.own(1_000))
                    if result["lost"]:
                        raise Unavailable(f"{result['lost']} notifications did not arrive")
                    return {(moment, part): result[moment][part] / 1000 for moment in ("latencyUs", "sinceAnswerUs")
                            for part in ("p50", "p99")}

                found = self.bench.take_turns(service, turns=2)
            for part, goal in (("p50", 5), ("p99", 25)):
                self.report.add(Row.measured(
                    f"Commit on A → client of B, PostgreSQL, 50 notifications/s, {what}, {part} (from sending the request)",
                    found.ours(("latencyUs", part)), "ms", at_most(goal, "ms"),
                    beside=f"from the 201: {found.peer(THIS, ('sinceAnswerUs', part)).text('ms')}"))

    def shared_topic(self):
        """500 streams over both replicas watch the same queues; changes go to both replicas."""
        with Servers() as servers:
            def one(binary, rate, seconds):
                a, _, first, second = self.replicas(servers, binary)
                return self.one_shared(a, first, second, rate, seconds)

            # Sends slightly more than the goal, because the time includes the wait for the last responses.
            found = self.bench.take_turns(lambda binary: one(binary, 1_050, self.pace.pick(1, 5)), turns=2)
            curve = [] if self.pace.is_quick else [(rate, one(self.bench.this, rate, 2)) for rate in (100, 300, 500, 1_050, 2_000)]
        what = "Row-level security on, 500 streams see every change, two replicas, 1,050 changes/s asked"
        self.report.add(Row.measured(f"{what}: changes", found.ours("rate"), "changes/s", at_least(1_000, "changes/s"),
                                     beside="published for an RLS-checked push at 500 clients: 30 changes/s"))
        # The commit lies between the two moments, close to the second: until then the request waits and writes.
        for name, key in (("the 201", "answered95"), ("sending the request, so writing included", "p95")):
            self.report.add(Row.measured(f"{what}: p95 from {name}", found.ours(key), "ms", at_most(15, "ms"),
                                         beside="published for the push alone: 228 to 618 ms"))
        if curve:
            self.report.add_curve(
                "500 streams on two replicas see every change (PostgreSQL, row-level security)",
                ["asked per second", "done per second", "deliveries per second", "p50, ms", "p95, ms", "p99, ms",
                 "p95 from the answer, ms", "CPU of the load client"], [self._shared_line(rate, one) for rate, one in curve])

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

    def idle_streams(self):
        """Counts the statements that one replica sends to PostgreSQL in some seconds, without a stream and with 1,000
        idle streams."""
        found = self.bench.take_turns(self.statements_of_idle_streams, once=True)
        what = "PostgreSQL, one replica with 1,000 idle streams"
        polls, others = (found.peer(THIS, ("none", name)) for name in ("polls", "others"))
        self.report.add(Row.measured(f"{what}: polls of the event log", found.ours("polls"), "/s", at_most(1.15, "/s", "≤ 1 /s"),
                                     is_steady=True, beside=f"without a stream: {polls.text('/s')}"))
        upkeep = others.median if others else 0
        self.report.add(Row.measured(f"{what}: other statements (upkeep)", found.ours("others"), "/s",
                                     at_most(upkeep + 2, "/s", "none for a stream"), is_steady=True,
                                     beside=f"without a stream: {others.text('/s')}"))

    def statements_of_idle_streams(self, binary):
        with Servers() as servers:
            _, process = self.replicas(servers, binary, "A")
            seconds = self.pace.pick(2, 8)
            none = self.statements_per_second(self.installation(binary), seconds)
            held = Load("sse_load", self.loading, port=process.port, path="/v1/stream", mode="hold", streams=1_000, threads=1,
                        tokens=token_file(1_000), ready_event="stream:ready", open_timeout=60)
            held.ready()
            time.sleep(self.pace.pick(0.5, 2))
            many = self.statements_per_second(self.installation(binary), seconds)
            if held.result()["opened"] != 1_000:
                raise Unavailable("the streams did not stay open")
        return {**many, **{("none", name): value for name, value in none.items()}}

    def statements_per_second(self, installation, seconds):
        """Counts the statements of the service's login with the server's own counter. Statements that only frame a
        query (BEGIN, COMMIT, the scope) count as part of the query. A window may contain one poll more or less, hence
        the 15 % above."""
        installation.sql("SELECT pg_stat_statements_reset();")
        begin = time.monotonic()
        time.sleep(seconds)
        lines = installation.sql(f"""
            SELECT calls, query LIKE 'SELECT%event_counter%', regexp_replace(left(query, 100), '\s+', ' ', 'g')
            FROM pg_stat_statements
            WHERE userid = '{SERVICE}'::regrole AND query !~* '^(begin|commit|rollback|start|set |reset|discard)'
              AND query !~* '^select set_config' ORDER BY calls DESC""")
        passed = time.monotonic() - begin
        counts = [(int(calls), is_poll == "t", text) for calls, is_poll, text in (line.split("|", 2) for line in lines)]
        say(f"bench:     statements in {passed:.0f} s: " + "; ".join(f"{calls} × {text}" for calls, _, text in counts[:12]))
        polls = sum(calls for calls, is_poll, _ in counts if is_poll)
        return {"polls": polls / passed, "others": (sum(calls for calls, *_ in counts) - polls) / passed}

    # -- requests ----------------------------------------------------------------------------------------------

    def durable(self):
        """201 = committed with synchronous_commit=on; 64 connections in total; SQLite on the same disk and cores."""
        seconds = self.pace.pick(0.6, 2.0)
        with Servers() as servers:
            def service(binary):
                _, _, first, second = self.replicas(servers, binary)
                return {"one": self.notified([first], seconds), "two": self.notified([first, second], seconds)}

            def sqlite():
                return {"rate": self.notified([servers.get("sqlite", lambda: self.service.start(self.served))], seconds)}

            found = self.bench.take_turns(service, {"sqlite": sqlite})
        what = "Durable notifications (`POST /v1/events`, 64 connections), PostgreSQL"
        self.report.add(Row.measured(f"{what}, one replica / SQLite", found.ours("one"), "requests/s", None,
                                     found.peer("sqlite", "rate")))
        self.report.add(Row.measured(f"{what}, two replicas / one", found.ours("two"), "requests/s", at_least(1.0),
                                     found.ours("one")))

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

    def changes(self):
        """Posted to A, delivered by B, whose streams have 100 ids each; 1 % of them watch changing rows."""
        streams, rows = self.pace.pick(1_000, 2_000), ChangeRows(self.bench)
        with Servers() as servers:
            found = self.bench.take_turns(
                lambda binary: self.changes_across(servers.get((binary, "watched"), lambda: self.watched(binary, rows, streams)),
                                                   rows, streams), turns=2)
        for name in rows.FORMS:
            self.report.add(Row.measured(
                f"Table changes stored by A and delivered by B, PostgreSQL, {streams:,} streams, 1 % of them subscribed: {name}",
                found.ours(name), "changes/s", at_least(10_000, "/s"),
                beside=f"CPU of A per change: {found.peer(THIS, ('cpu', name)).text('µs')}"))

    @contextlib.contextmanager
    def watched(self, binary, rows, streams):
        """Two replicas, with streams on the second one that watch rows."""
        with Servers() as servers:
            a, _, first, second = self.replicas(servers, binary, BELLHOP_TABLES=TABLES)
            watching = Load("sse_load", self.loading, port=second.port, mode="hold", threads=1,
                            subscriptions=subscription_file("replicas", rows.wishes(streams)),
                            **rows.streams(streams, "table:change"))
            watching.ready()
            yield a, first, second
            watching.result()

    def changes_across(self, watched, rows, streams):
        a, first, second = watched
        changing, figures = streams // 100 * IDS, {}
        for name, (mark, places, deliveries, connections) in rows.FORMS.items():
            run = rows.ingest_bodies(first, a, [item(one) for one in names(mark, places)], 1, changing // places,
                                     deliveries // self.pace.pick(10, 2), connections, deliverer=second)
            figures[name], figures["cpu", name] = run["rate"], run["serverUsPerRequest"] / places
        return figures

    def badges(self):
        """Compares the service with pgbench in the role of its pool: as many connections, the same prepared query.

        Both have the whole machine: pgbench takes the place of the service and its load client together."""
        with Servers() as servers:
            def service(binary):
                return self.badges_rate(servers.get((binary, "filled"), lambda: self.filled(binary)))

            def pgbench(script, user):
                servers.get((self.bench.this, "filled"), lambda: self.filled(self.bench.this))
                return self.installation(self.bench.this).cluster.pgbench(
                    script, self.every, DATABASE, user, clients=READERS, threads=2, seconds=self.pace.pick(1, 2))

            found = self.bench.take_turns(service, {
                "plain": lambda: pgbench("badges_plain.pgbench", "postgres"),
                "scoped": lambda: pgbench("badges_scoped.pgbench", "postgres"),
                "secured": lambda: pgbench("badges_scoped.pgbench", SERVICE)})
        what = f"`GET /v1/badges` 200, PostgreSQL, 64 connections, {READERS} readers: the service / pgbench, same query"
        ours = found.ours("rate")
        self.report.add(Row.measured(f"{what}, row-level security on", ours, "requests/s", at_least(0.75),
                                     found.peer("secured", "rate")))
        self.report.add(Row.measured(f"{what}, without security or scope", ours.alone(), "requests/s", None,
                                     found.peer("plain", "rate")))
        plain, scoped, secured = (found.peer(key, "meanMs") for key in ("plain", "scoped", "secured"))
        self.report.add(Row.measured(
            f"Cost of row-level security on that query: pgbench with / without, {READERS} connections, mean latency", secured,
            "ms", None, plain, beside=f"the scope set but not queried: {scoped.text('ms')}; the query alone: {plain.text('ms')}"))

    @contextlib.contextmanager
    def filled(self, binary):
        """Returns a replica with a badge for each user; pgbench queries its database."""
        installation = self.installation(binary)
        with installation.replica("A").start(self.every) as process:
            filled = self.service.notifications(process, count=1_000, users=1_000, cores=self.every)
            if filled["good"] < 1_000:
                raise Unavailable(f"POST /v1/events: {filled['statuses']}")
            installation.cluster.psql("VACUUM ANALYZE badges;", DATABASE)
            self.same_answer(installation, process)
            yield process

    def same_answer(self, installation, process):
        """Checks that the yardstick's query returns the service's answer, and nothing without a scope. Otherwise it
        measures nothing."""
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
                      tokens=token_file(1_000), seconds=self.pace.pick(0.6, 2), warmup=self.pace.warmup, server_pid=process.pid)
        if result["statuses"].get("200", 0) < result["requests"] * 0.99 or not result["requests"]:
            raise Unavailable(f"GET /v1/badges: {result['statuses']}")
        return {"rate": result["rps"]}
