"""Rows for an app's own PostgreSQL whose log is read: the ingest rate, and the latency to a client."""

import contextlib
import http.client
import json
import subprocess
import threading
import time

from harness.events import events_of

from .changes import delivered_rows, subscription, subscription_file
from .machine import Unavailable
from .postgres import Cluster, Session
from .processes import Load, cpu_seconds, metric, request, until
from .report import Row, at_least, at_most
from .servers import Bellhop, token, token_file

TABLES = __file__.replace("source.py", "source.yaml")
BOARDS, ROWS = 100, 10_000
WRITERS, ROWS_OF_A_TRANSACTION = 4, 100


class SourceRows:
    def __init__(self, bench):
        self.bench, self.report, self.cores, self.pace = bench, bench.report, bench.cores, bench.pace

    @contextlib.contextmanager
    def service(self, binary, streams, wishes):
        """Starts a service that reads the log of an app, and streams that watch its rows."""
        server = Bellhop(binary)
        with Cluster(self.cores.all_load(), name="app", wal_level="logical") as app:
            app.psql(f"""
                CREATE TABLE notes (id integer PRIMARY KEY, n bigint NOT NULL, board integer NOT NULL, title text NOT NULL);
                INSERT INTO notes SELECT id, 0, id % {BOARDS}, 'A row of ordinary length, as lists show them'
                FROM generate_series(0, {ROWS - 1}) AS id;""")
            done = subprocess.run([binary.executable, "source", "setup", "--database", app.url(), "--tables", TABLES],
                                  capture_output=True, text=True)
            if done.returncode != 0:
                raise Unavailable(f"source setup: {done.stderr.strip()[:200]}")
            server.settings = {"BELLHOP_TABLES": TABLES, "BELLHOP_SOURCE": app.url()}
            with server.start(self.cores.server) as process:
                until(lambda: metric(process, "bellhop_source_connected") == 1, "the log is read")
                held = Load("sse_load", self.cores.load[0], port=process.port, mode="hold", threads=1, streams=streams,
                            path="/v1/stream", tokens=token_file(streams), ready_event="stream:ready", event="table:change",
                            open_timeout=90, subscriptions=subscription_file("source", wishes))
                held.ready()
                yield app, process
                held.result()

    # -- taken in ----------------------------------------------------------------------------------------------

    def taken_in(self):
        found = self.bench.take_turns(self.one_flood)
        self.report.add(Row.measured(
            f"Rows of an app's log, on disk, and each delivered to one of {BOARDS} streams, "
            f"{ROWS_OF_A_TRANSACTION} a transaction, {WRITERS} writers at once",
            found.ours("rate"), "rows/s", at_least(15_000, "rows/s"),
            beside=f"CPU of each {found.ours('cpu').text('µs')}; of the app's database, to read its log for us, "
            f"{found.ours('sender').text('µs')} a transaction"))

    def one_flood(self, binary):
        wishes = ([dict(subscription("notes"), filter=f"board=eq.{board}")] for board in range(BOARDS))
        with self.service(binary, BOARDS, wishes) as (app, process):
            sender = int(app.psql("SELECT active_pid FROM pg_replication_slots WHERE active")[0])
            before, cpu, sending = delivered_rows(process), cpu_seconds(process.pid), cpu_seconds(sender)
            begin = time.monotonic()
            result = app.pgbench("source_rows.pgbench", self.cores.all_load(), clients=WRITERS, seconds=self.pace.pick(1, 4))
            rows = result["count"] * ROWS_OF_A_TRANSACTION
            until(lambda: delivered_rows(process) - before >= rows, f"{rows:,} rows are delivered")
            took = time.monotonic() - begin
            return {"rate": rows / took, "cpu": (cpu_seconds(process.pid) - cpu) / rows * 1e6,
                    "sender": (cpu_seconds(sender) - sending) / result["count"] * 1e6}

    # -- latency -----------------------------------------------------------------------------------------------

    def latency(self):
        """50 commits per second, each of a row for all streams; received by a client that sleeps until data arrives."""
        streams = self.pace.pick(200, 1_000)
        found = self.bench.take_turns(lambda binary: self.paced(binary, streams))
        for part, goal in (("p50", 3), ("p99", 10)):
            self.report.add(Row.measured(
                f"Commit in the app's database → client that sleeps, {streams:,} streams, 50/s to all, {part}",
                found.ours(("answered", part)), "ms", at_most(goal, "ms"),
                beside=f"from sending the statement: {found.ours(('sent', part)).text('ms')}"))

    def paced(self, binary, streams):
        with self.service(binary, streams, [[subscription("notes")]]) as (app, process), Session(app) as writer, \
                Listener(process.port) as listener:
            sent, answered = {}, {}
            for number in range(1, self.pace.pick(60, 250)):
                time.sleep(0.02)
                sent[number] = time.monotonic()
                writer.run(f"UPDATE notes SET n = {number} WHERE id = 7;")
                answered[number] = time.monotonic()
            until(lambda: number in listener.arrived, "the last row is there")
            figures = {}
            for name, moments in (("sent", sent), ("answered", answered)):
                took = sorted((listener.arrived[one] - at) * 1000 for one, at in moments.items() if one > 20)
                for part in (50, 99):
                    figures[name, f"p{part}"] = max(0, took[min(len(took) - 1, len(took) * part // 100)])
            return figures


class Listener:
    """One stream that watches all rows, and the arrival time of each `n`."""

    def __init__(self, port):
        self.arrived = {}
        bearer = {"Authorization": f"Bearer {token('listener')}"}
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.connection.request("GET", "/v1/stream", headers=bearer)
        self.answer = self.connection.getresponse()
        self.events = events_of(self.answer)
        stream = next(json.loads(event.data)["streamId"] for event in self.events if event.data)
        body = json.dumps({"tables": [subscription("notes")]})
        status, text = request(port, "PUT", f"/v1/streams/{stream}/subscriptions", body,
                               {**bearer, "Content-Type": "application/json"})
        if status >= 300:
            raise Unavailable(f"the listener's subscription: {status} {text[:200]}")
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            for event in self.events:
                data = json.loads(event.data or "{}")
                if number := (data.get("record") or {}).get("n"):
                    self.arrived.setdefault(number, time.monotonic())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()
