#!/usr/bin/env python3
"""Measures what messages cost that wait for a provider which is away: the CPU of the service, and of its PostgreSQL.

    outbox.py BINARY
    outbox.py BINARY --rows 10000,100000 --seconds 60 --stores sqlite,postgres

One notification of one user waits for a webhook whose port nobody listens at; SQL then copies its rows, in three shapes: a
lane for each user, lanes of a thousand messages, and one lane. The goal is at most 2 % of a core. More than 100,000 cannot
wait: the oldest become dead."""

import argparse
import contextlib
import os
import pathlib
import sqlite3
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent / "Tests")]
sys.dont_write_bytecode = True

from harness.ports import free_port  # noqa: E402

from Harness.machine import WORK, Unavailable  # noqa: E402
from Harness.postgres import Cluster  # noqa: E402
from Harness.processes import cpu_seconds, metric, stop_all, until  # noqa: E402
from Harness.replicas import DATABASE, Installation  # noqa: E402
from Harness.servers import Bellhop, webhooks_to  # noqa: E402
from Harness.turns import Binary  # noqa: E402

SERVER, DATABASE_CORE = "0", "1"
USER = "sample"
WAITING = "bellhop_webhooks_waiting"
# The number of lanes, by the number of messages.
SHAPES = {"a lane each": lambda rows: rows, "lanes of 1,000": lambda rows: max(1, rows // 1000), "one lane": lambda _: 1}
# What is a row's own, beside the columns that count by themselves. A user of the last two shapes has many messages.
COPIES = {
    "notifications": {"user_id": "{user}", "id": "id || '-' || i"},
    "outbox": {"user_id": "{user}", "lane": "replace(lane, '%s', {user})" % USER, "subject": "subject || '-' || i",
               "slot": "slot || '-' || i", "id": "id || '-' || i"},
    "outbox_lanes": {"user_id": "{user}", "lane": "replace(lane, '%s', {user})" % USER},
}
COUNTED = {"outbox": "number", "outbox_lanes": "id"}


class SQLiteStore:
    def __init__(self, path):
        self.path = path

    def run(self, statements):
        with contextlib.closing(sqlite3.connect(self.path)) as database:
            for statement in statements:
                database.execute(statement)
            database.commit()

    def columns(self, table):
        with contextlib.closing(sqlite3.connect(self.path)) as database:
            return [row[1] for row in database.execute(f"PRAGMA table_info({table})")]

    def cpu_seconds(self):
        return 0.0


class PostgresStore:
    def __init__(self, cluster):
        self.cluster = cluster

    def run(self, statements):
        self.cluster.psql(";\n".join(statements), DATABASE)

    def columns(self, table):
        return self.cluster.psql(
            f"SELECT column_name FROM information_schema.columns WHERE table_name = '{table}' ORDER BY ordinal_position",
            DATABASE)

    def cpu_seconds(self):
        """The CPU of all server processes that live now."""
        return sum(cpu_seconds(pid) for pid in self.pids())

    def pids(self):
        root = int((self.cluster.folder / "data" / "postmaster.pid").read_text().split()[0])
        for entry in os.listdir("/proc"):
            with contextlib.suppress(OSError, ValueError):
                fields = pathlib.Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()
                if int(entry) == root or int(fields[1]) == root:
                    yield int(entry)


def copies(store, rows, lanes):
    """Returns the statements that copy the rows of the one message."""
    for table, own in COPIES.items():
        count = lanes if table == "outbox_lanes" else rows
        user = f"'{USER}-' || ((i - 1) % {lanes})"
        columns = [name for name in store.columns(table) if name != COUNTED.get(table)]
        values = [own[name].format(user=user) if name in own else name for name in columns]
        yield (f"INSERT INTO {table} ({', '.join(columns)}) WITH RECURSIVE numbers(i) AS (SELECT 1 UNION ALL SELECT i + 1 "
               f"FROM numbers WHERE i < {count}) SELECT {', '.join(values)} FROM numbers, {table} WHERE user_id = '{USER}'")


def measure(server, store, rows, lanes, seconds):
    with server.start(SERVER) as process:
        server.call(process, "POST", "/v1/notifications", {
            "userId": USER, "category": "visit", "priority": "HIGH", "title": "T", "message": "M"})
        until(lambda: metric(process, WAITING) >= 1, "the webhook waits", seconds=60)
    store.run(copies(store, rows, lanes))
    store.run(["ANALYZE"])
    server.fresh = False
    with server.start(SERVER) as process:
        until(lambda: metric(process, WAITING) >= rows, "the copies are counted", seconds=300)
        before, begin = (cpu_seconds(process.pid), store.cpu_seconds()), time.monotonic()
        time.sleep(seconds)
        took = time.monotonic() - begin
        after = (cpu_seconds(process.pid), store.cpu_seconds())
        return [(end - start) / took * 100 for start, end in zip(before, after)]


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--rows", default="100000")
    parser.add_argument("--stores", default="sqlite,postgres")
    parser.add_argument("--seconds", type=int, default=60)
    return parser.parse_args()


def main():
    options = parse()
    WORK.mkdir(exist_ok=True)
    binary = Binary("outbox", pathlib.Path(options.binary).resolve())
    print("| store | waiting messages | lanes | CPU of the service | of PostgreSQL |\n|---|---|---|---|---|")
    for name in options.stores.split(","):
        for rows in map(int, options.rows.split(",")):
            for shape, lanes in SHAPES.items():
                settings = webhooks_to(free_port())
                with contextlib.ExitStack() as stack:
                    if name == "postgres":
                        store = PostgresStore(stack.enter_context(Cluster(DATABASE_CORE)))
                        server = Installation(store.cluster, binary).make().replica("A", **settings)
                    else:
                        server = Bellhop(binary, settings=settings)
                        store = SQLiteStore(server.database)
                    ours, theirs = measure(server, store, rows, lanes(rows), options.seconds)
                said = f"{theirs:.2f} %" if name == "postgres" else ""
                print(f"| {name} | {rows:,} | {shape} | {ours:.2f} % | {said} |", flush=True)


if __name__ == "__main__":
    try:
        main()
    except Unavailable as error:
        sys.exit(str(error))
    finally:
        stop_all()
