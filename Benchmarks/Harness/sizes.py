"""Rows for sizes: start, resident memory, growth with stored data, the image."""

import os
import sqlite3
import time

from .machine import WORK, Unavailable
from .processes import load
from .report import Row, at_most
from .servers import Bellhop


class SizeRows:
    def __init__(self, bench):
        self.bench, self.report, self.cores, self.pace = bench, bench.report, bench.cores, bench.pace
        self.two_cores = bench.cores.two_servers or bench.cores.server

    def start(self):
        """With an existing database of 1,000 notifications: from the start of the process to the first response."""
        filled = {}

        def service(binary):
            server = filled.get(binary) or filled.setdefault(binary, self.filled(Bellhop(binary)))
            with server.start(self.cores.server) as process:
                time.sleep(0.3)
                return {"ms": process.start_seconds * 1000, "MB": process.resident_bytes() / 2**20}

        found = self.bench.take_turns(service, turns=7)
        self.report.add(Row.measured("Start to first answer, existing database", found.ours("ms"), "ms", at_most(50, "ms")))
        self.report.add(Row.measured("Resident memory at start", found.ours("MB"), "MB", at_most(35, "MB")))

    def filled(self, server):
        with server.start(self.cores.server) as process:
            server.notifications(process, count=1_000, users=100, cores=self.cores.all_load())
        server.fresh = False
        return server

    def growth(self):
        """Repeats four measurements with more and more stored notifications, 50 per user. The last step would take too
        many requests: its rows are copied directly in the database, which the service opens as after a restart."""
        server, table, stored = Bellhop(self.bench.this), [], 0
        for size in self.pace.pick([1_000, 5_000, 50_000], [1_000, 100_000, 1_000_000]):
            is_last = size == self.pace.pick(50_000, 1_000_000)
            filling = "copied" if is_last else f"{self.fill(server, size - stored, max(1, size // 50)):,.0f}"
            if is_last:
                multiply(server.database, size // stored)
            stored, server.fresh = size, False
            with server.start(self.two_cores) as process:
                table.append([f"{size:,}"] + self.read_cells(process) + [filling])
        self.report.add_curve("Growth with stored notifications", [
            "stored", "start, ms", "resident, MB", "`GET /v1/badges`/s", "`GET /v1/notifications?limit=20`/s",
            "stored per second while filling up to here"], table)

    def fill(self, server, count, users):
        """Adds notifications by requests; returns the rate per second."""
        with server.start(self.two_cores) as process:
            result = server.notifications(process, count=count, users=users, cores=self.cores.all_load(),
                                          threads=self.bench.client_threads)
        if result["good"] < count:
            raise Unavailable(f"only {result['good']} of {count} were stored: {result['statuses']}")
        return result["goodRps"]

    def read_cells(self, process):
        badges, listing = (
            load("http_load", self.cores.all_load(), path=path, port=process.port, connections=64,
                 threads=self.bench.client_threads, tokens=str(WORK / "one-token.txt"), seconds=self.pace.seconds)
            for path in ("/v1/badges", "/v1/notifications?limit=20"))
        return [f"{process.start_seconds * 1000:.0f}", f"{process.resident_bytes() / 2**20:.0f}", f"{badges['goodRps']:,.0f}",
                f"{listing['goodRps']:,.0f}"]

    def image(self):
        self.report.add(Row("Container image", goal="≤ 100 MB", ours="not measured here: `make image-test` prints it"))


def multiply(database, times):
    """Multiplies the notifications for other users: their rows, inboxes and counts. The event log stays the same."""
    with sqlite3.connect(database) as connection:
        # Written once, and on disk before the service starts, which would otherwise wait for it.
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA journal_mode = OFF")
        for table in ("notifications", "inboxes", "badges"):
            columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
            values = ", ".join("user_id || '-' || copy" if name == "user_id" else name for name in columns)
            connection.execute(f"""
                WITH RECURSIVE copies (copy) AS (SELECT 1 UNION ALL SELECT copy + 1 FROM copies WHERE copy < {times - 1})
                INSERT INTO "{table}" ({", ".join(columns)}) SELECT {values} FROM copies CROSS JOIN "{table}" """)
        connection.commit()
        connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    with open(database, "rb") as file:
        os.fsync(file.fileno())
