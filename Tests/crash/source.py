#!/usr/bin/env python3
"""Repeatedly kills a service that reads an app's log, restarts the app's PostgreSQL and cuts their connection, while
writers race. It then proves that the delivered changes are the committed ones: nothing lost, nothing doubled, each row
in order, and no change that was rolled back.

    Tests/crash/source.py --binary .build/debug/bellhop [--rounds 6] [--writers 4] [--seed 1]

Needs only Python's standard library and PostgreSQL. Each writer increments a count in its own row and sometimes inserts
thousands of rows at once. Its final count is the number of changes that must have been delivered, in order. The choices
follow from the seed, which is printed. The moment of a kill within a commit depends on the machine.
"""

import contextlib
import json
import pathlib
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
import time

import postgres
from crash import PATIENCE_SECONDS, Failed, Service, run_script

DATABASE = "app"
TABLES = """
version: 1
tables:
  - table: counters
    primaryKey: [id]
    tenant: {constant: default}
    audience: {select: ["user:{id}"]}
  - table: bulk
    primaryKey: [id]
    tenant: {constant: default}
    audience: {select: [everyone]}
"""
SCHEMA = """
CREATE TABLE counters (id text PRIMARY KEY, number integer NOT NULL);
CREATE TABLE bulk (id text PRIMARY KEY);
ALTER TABLE counters REPLICA IDENTITY FULL;
"""


class Cluster(postgres.Cluster):
    SETTINGS = dict(postgres.Cluster.SETTINGS, wal_level="logical", max_replication_slots=4)


class Writer:
    """Changes its own row, in transactions of all sizes, some of which are rolled back."""

    def __init__(self, cluster, name, seed):
        self.cluster, self.name = cluster, name
        self.choices = random.Random(seed)
        self.is_over = threading.Event()
        self.bulk = 0
        self.problem = None
        cluster.sql(f"INSERT INTO counters VALUES ('{name}', 0)", DATABASE)
        self.thread = threading.Thread(target=self._write, daemon=True)
        self.thread.start()

    def _write(self):
        while not self.is_over.is_set():
            try:
                # Only the table shows whether an interrupted commit took effect; it is read at the end.
                with postgres.Session(self.cluster, DATABASE) as session:
                    while not self.is_over.is_set():
                        session.run(self._statements())
                        # A server that shuts down sends the rest of its log. The pause limits that rest to an amount
                        # that a debug build can read in time.
                        self.is_over.wait(self.choices.random() / 40)
            except (postgres.Trouble, OSError):
                self.is_over.wait(0.05)
            except Exception as problem:  # A writer that fails unnoticed would make the test meaningless.
                self.problem = problem
                return

    def _statements(self):
        update = f"UPDATE counters SET number = number + 1 WHERE id = '{self.name}'"
        kind = self.choices.random()
        if kind < 0.6:
            return update
        count = self.choices.randint(2, 20)
        if kind < 0.8:
            return f"BEGIN; {'; '.join([update] * count)}; COMMIT"
        if kind < 0.997:
            return f"BEGIN; {'; '.join([update] * count)}; ROLLBACK"
        self.bulk += 1
        rows = f"SELECT '{self.name}-{self.bulk}-' || n FROM generate_series(1, {self.choices.randint(1, 2000)}) AS n"
        return f"BEGIN; INSERT INTO bulk {rows}; {update}; COMMIT"

    def end(self):
        self.is_over.set()
        self.thread.join(PATIENCE_SECONDS)
        if self.problem or self.thread.is_alive():
            raise Failed(f"writer {self.name} did not end well: {self.problem}")


def disturb(cluster, service, choices):
    """Causes one of the failures."""
    kind = choices.choice(["kill", "kill", "stop", "fast", "immediate", "cut"])
    print(f"  {kind}", flush=True)
    if kind in ("kill", "stop"):
        service.kill() if kind == "kill" else service.stop()
        time.sleep(choices.random() / 2)
        service.start()
    elif kind == "cut":
        cluster.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'bellhop'")
    else:
        # A server that shuts down waits for its readers; it must not wait for this one.
        cluster.stop(kind)
        cluster.start()


def told(folder):
    """Returns the row changes in the service's event log, in its order."""
    with contextlib.closing(sqlite3.connect(f"file:{folder / 'crash.sqlite'}?mode=ro", uri=True, timeout=PATIENCE_SECONDS)) as log:
        for (data,) in log.execute("SELECT data FROM events WHERE name = 'table:change' ORDER BY sequence"):
            change = json.loads(data)
            yield change["table"], change["record"]


def wait_for_end(cluster, service, folder):
    cluster.sql("INSERT INTO bulk VALUES ('the end')", DATABASE)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while ("bulk", {"id": "the end"}) not in told(folder):
        if time.monotonic() > deadline:
            raise Failed(f"what was committed last was not told:\n{service.log()}")
        time.sleep(0.2)


def judge(cluster, folder, writers):
    numbers = {writer.name: [] for writer in writers}
    bulk = []
    for table, record in told(folder):
        if table == "counters":
            numbers[record["id"]].append(record["number"])
        else:
            bulk.append(record["id"])
    for name, seen in numbers.items():
        committed = int(cluster.sql(f"SELECT number FROM counters WHERE id = '{name}'", DATABASE))
        if seen != list(range(committed + 1)):
            wrong = next((place for place, number in enumerate(seen) if number != place), len(seen))
            raise Failed(f"{name}: {committed} were committed, {len(seen)} told; wrong from {seen[wrong - 2:wrong + 3]}")
    committed = sorted(cluster.sql("SELECT id FROM bulk", DATABASE).splitlines())
    if sorted(bulk) != committed:
        raise Failed(f"{len(committed)} rows were committed in bulk, {len(bulk)} told, {len(set(bulk))} different ones")
    return sum(len(seen) for seen in numbers.values()) + len(bulk)


def run(options, folder):
    place = postgres.make_folder()
    cluster, service, writers = Cluster(place), Service(options.binary, folder), []
    choices = random.Random(options.seed)
    try:
        cluster.create()
        cluster.start()
        cluster.sql(f"CREATE DATABASE {DATABASE}")
        cluster.sql("CREATE ROLE reader LOGIN REPLICATION PASSWORD 'of-a-day'")
        cluster.sql(SCHEMA, DATABASE)
        tables = pathlib.Path(folder) / "tables.yaml"
        tables.write_text(TABLES)
        # Superusers connect only by the socket here, so the printed statements are run instead of the command.
        cluster.sql(setup(options.binary, tables, service), DATABASE)
        service.environment.update(
            BELLHOP_SOURCE=postgres.url("reader", "of-a-day", DATABASE, cluster.port), BELLHOP_TABLES=str(tables)
        )
        service.start()
        wait_for_slot(cluster, service)
        writers = [Writer(cluster, f"w{number}", choices.random()) for number in range(options.writers)]
        for number in range(options.rounds):
            print(f"round {number + 1}", flush=True)
            time.sleep(0.5 + choices.random())
            disturb(cluster, service, choices)
        for writer in writers:
            writer.end()
        wait_for_end(cluster, service, folder)
        service.stop()
        print(f"source: {judge(cluster, folder, writers)} changes were told, each once and in order", flush=True)
        return options.rounds
    finally:
        for writer in writers:
            writer.is_over.set()
        with contextlib.suppress(Failed):
            service.stop()
        cluster.stop()
        shutil.rmtree(place, ignore_errors=True)


def setup(binary, tables, service):
    return subprocess.run(
        [binary, "source", "setup", "--tables", str(tables), "--role", "reader", "--sql"], env=service.environment,
        capture_output=True, text=True, check=True,
    ).stdout


def wait_for_slot(cluster, service):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while cluster.sql("SELECT count(*) FROM pg_replication_slots WHERE active") != "1":
        if time.monotonic() > deadline:
            raise Failed(f"the service does not read the log:\n{service.log()}")
        time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(run_script("source", __doc__, run, rounds=6, writers=4))
