"""Rows for durable notifications on SQLite: the service and a C program that writes the same rows with the same group
commit."""

import contextlib
import http.server
import queue
import sqlite3
import threading
import time
from pathlib import Path

from .machine import WORK, Unavailable
from .processes import cpu_seconds, metric, until
from .report import Row, at_least, at_most
from .servers import Bellhop, NotificationServer, Receiver, copy_database, webhooks_to
from .turns import Servers

PUBLISHED = '{"event": "order:changed", "to": ["user:u{u}"], "data": {"orderId": "o{n}", "status": "ready"}}'
WEBHOOKS_SENT = 'bellhop_webhooks_sent_total{type="notification.unreached"}'
COMPARED = 20  # notifications after which both databases must have grown by the same amount


class Arrivals:
    """A receiver of webhooks that notes when each arrives."""

    def __init__(self):
        times = self._times = queue.Queue()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                times.put(time.monotonic())
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]

    def settings(self):
        return webhooks_to(self.port)

    def next(self):
        try:
            return self._times.get(timeout=30)
        except queue.Empty:
            raise Unavailable("a webhook did not arrive within 30 s") from None

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()


def webhook_at_once(bench, store, arrivals, start):
    """Adds the row of notifications of users without a stream on an idle service, one after the other: the time from the
    backend's request to the receiver.

    `start(binary)` returns a context with the service and one of its processes."""
    count = bench.pace.pick(50, 300)

    def measure(binary):
        with start(binary) as (server, process):
            took = []
            for number in range(count + 10):
                begin = time.monotonic()
                server.call(process, "POST", "/v1/notifications", {
                    "userId": f"w{number}-{time.time_ns()}", "category": "visit", "priority": "HIGH", "title": "T",
                    "message": "M"})
                took.append((arrivals.next() - begin) * 1000)
        # The first ones open connections and prepare statements.
        ordered = sorted(took[10:])
        return {"p50": ordered[len(ordered) // 2], "p99": ordered[len(ordered) * 99 // 100]}

    found = bench.take_turns(measure)
    bench.report.add(Row.measured(
        f"A webhook at once, from the backend's request to the receiver, {store}: p50", found.ours("p50"), "ms",
        at_most(20, "ms"), beside=f"p99 {found.ours('p99').text('ms')}"))


class NotificationRows:
    """The row of the group `events`: 201 means on disk, with synchronous=FULL."""

    def __init__(self, bench):
        self.bench, self.report = bench, bench.report
        self.cores = bench.cores.two_servers or bench.cores.server
        self.seconds = bench.pace.pick(0.6, 2.0)

    def durable(self):
        """64 connections, unique ids, 1,000 users. Each turn begins with an empty database, so a faster contestant does
        not have a larger database in the next turn."""
        with Servers() as models:
            model = models.get("model", lambda: Model(self.bench.this, self.cores, self.post))
            found = self.bench.take_turns(self.service, {"C": lambda: self.yardstick(model)})
        theirs = found.peer("C", "rate")
        self.report.add(Row.measured(
            "Durable notifications (`POST /v1/events`, 64 connections): the service / C with the same rows and group commit",
            found.ours("rate"), "requests/s", at_least(0.5), theirs,
            beside=f"{theirs.text('requests/s')}; CPU of each {found.ours('cpu').text('µs')}, "
            f"of C's {found.peer('C', 'cpu').text('µs')}"))

    def publish(self):
        """Custom events of an app, each in one transaction, compared with notifications of the same service: only rows
        of the log."""
        def measure(binary):
            server = Bellhop(binary)
            with server.start(self.cores) as process:
                result = server.posts(process, "/v1/publish", PUBLISHED, self.bench.cores.all_load(), users=1_000,
                                      threads=self.bench.client_threads, seconds=self.seconds, warmup=0.3)
                if result["statuses"].get("202", 0) < result["requests"] * 0.99:
                    raise Unavailable(f"POST /v1/publish on {process.name}: {result['statuses']}")
                rate = result["goodRps"]
                return {"rate": rate, "cpu": result["serverUsPerRequest"], "notified": self.rate(process, server)["rate"]}

        found = self.bench.take_turns(measure)
        self.report.add(Row.measured(
            "Events of one's own (`POST /v1/publish`, 64 connections) / durable notifications of the same service",
            found.ours("rate"), "requests/s", None, found.ours("notified"),
            beside=f"{found.ours('notified').text('requests/s')}; CPU of each {found.ours('cpu').text('µs')}"))

    def webhooks(self):
        """Notifications of users without a stream, each of which is sent; measures those still waiting when the last
        one was stored."""
        count = self.bench.pace.pick(2_000, 20_000)

        def measure(binary):
            with Receiver().start(self.bench.cores.all_load()) as receiver:
                server = Bellhop(binary, settings=webhooks_to(receiver.port))
                with server.start(self.cores) as process:
                    self.post(process, server, count=count)
                    before, begin, cpu = metric(process, WEBHOOKS_SENT), time.monotonic(), cpu_seconds(process.pid)
                    until(lambda: metric(process, WEBHOOKS_SENT) >= count, f"{count:,} webhooks are sent", seconds=120)
                    sent = count - before
                    return {"rate": sent / (time.monotonic() - begin), "cpu": (cpu_seconds(process.pid) - cpu) / sent * 1e6}

        found = self.bench.take_turns(measure)
        self.report.add(Row.measured(
            "Webhooks, each of one notification, sent to nginx on this machine, 1,000 users", found.ours("rate"), "webhooks/s",
            beside=f"CPU of each {found.ours('cpu').text('µs')}"))

    def at_once(self):
        with Arrivals() as arrivals:
            @contextlib.contextmanager
            def start(binary):
                server = Bellhop(binary, settings=arrivals.settings())
                with server.start(self.cores) as process:
                    yield server, process

            webhook_at_once(self.bench, "SQLite", arrivals, start)

    def stops(self):
        """Writes without a pause, for long enough that the write-ahead log would have to restart several times."""
        seconds = self.bench.pace.pick(3.0, 20.0)

        def measure(binary):
            server = Bellhop(binary)
            with server.start(self.cores) as process:
                latency = self.post(process, server, seconds=seconds)["latencyUs"]
                # SQLite never shrinks the file below the length that it had within these seconds.
                log = Path(f"{server.database}-wal").stat().st_size
                return {"longest": latency["max"] / 1000, "p99": latency["p99"] / 1000, "p50": latency["p50"] / 1000,
                        "log": log / 1e6}

        found = self.bench.take_turns(measure)
        self.report.add(Row.measured(
            f"Durable notifications for {seconds:.0f} s without a pause: longest request", found.ours("longest"), "ms",
            beside=f"p50 {found.ours('p50').text('ms')}, p99 {found.ours('p99').text('ms')}"))
        self.report.add(Row.measured(
            "SQLite's write-ahead log after it", found.ours("log").alone(), "MB", at_most(16, "MB")))

    def service(self, binary):
        server = Bellhop(binary)
        with server.start(self.cores) as process:
            return self.rate(process, server)

    def yardstick(self, model):
        with model.yardstick().start(self.cores) as process:
            return self.rate(process, model.server)

    def rate(self, process, server):
        result = self.post(process, server, seconds=self.seconds)
        return {"rate": result["goodRps"], "cpu": result["serverUsPerRequest"]}

    def post(self, process, server, **options):
        result = server.notifications(process, cores=self.bench.cores.all_load(), threads=self.bench.client_threads, **options)
        if result["statuses"].get("201", 0) < result["requests"] * 0.99:
            raise Unavailable(f"POST /v1/events on {process.name}: {result['statuses']}")
        return result


class Model:
    """A database with the service's tables, empty except for the rows of one notification. It proves that the yardstick
    writes the same rows as the service."""

    def __init__(self, binary, cores, post):
        self.cores, self.post = cores, post
        self.server = Bellhop(binary)
        self.path = WORK / "model.sqlite"

    def __enter__(self):
        self.grown(self.server, self.server.database, count=1)
        copy_database(self.server.database, self.path)
        self.server.fresh = False
        before = sizes(self.path)
        ours = growth(before, self.grown(self.server, self.server.database))
        theirs = growth(before, self.grown(self.yardstick(), WORK / "notifications.sqlite"))
        if {table: rows for table, (rows, _) in ours.items()} != {table: rows for table, (rows, _) in theirs.items()} or any(
                not 0.9 < theirs[table][1] / size < 1.1 for table, (_, size) in ours.items()):
            raise Unavailable(f"the yardstick writes other rows than the service: {theirs} and {ours} (rows, bytes)")
        self.server.fresh = True
        return self

    def __exit__(self, *_):
        pass

    def yardstick(self):
        return NotificationServer(self.path)

    def grown(self, server, database, count=COMPARED):
        with server.start(self.cores) as process:
            self.post(process, self.server, count=count)
        return sizes(database)


def sizes(database):
    """Returns the rows and the bytes of their columns, by table."""
    with sqlite3.connect(database) as connection:
        found = {}
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
            lengths = " + ".join(f'coalesce(length("{column}"), 0)' for column in columns)
            found[table] = connection.execute(f'SELECT count(*), coalesce(sum({lengths}), 0) FROM "{table}"').fetchone()
    connection.close()
    return found


def growth(before, after):
    """Returns the growth per notification, by table. A start leaves less behind than that. The first user already
    exists."""
    grown = {table: (rows - before[table][0], size - before[table][1]) for table, (rows, size) in after.items()}
    return {table: (round(rows / COMPARED), size / COMPARED) for table, (rows, size) in grown.items() if rows > COMPARED / 2}
