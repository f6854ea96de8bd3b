#!/usr/bin/env python3
"""Repeatedly kills a service that reads an app's log, restarts the app's PostgreSQL and cuts their connection, while
writers race. It then proves that the delivered changes are the committed ones: nothing lost, nothing doubled, each row
in order, and no change that was rolled back.

Then a failover: the app's PostgreSQL is gone for good, and its standby takes over, without the last commits, which the
service has read. All streams must begin again, memberships must be those of the new server, and what is committed there
must be told.

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
import subprocess
import sys
import threading
import time

from crash import database_rows, run_script
from harness import postgres
from harness.services import Service
from harness.tokens import token
from harness.waiting import PATIENCE_SECONDS, Failed, wait_until

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
  - table: members
    primaryKey: [id]
    tenant: {constant: default}
    audience: {select: ["user:{user_id}"]}
    memberships:
      - {name: team, subject: "user:{user_id}", grants: "team:{team_id}:member"}
"""
SCHEMA = """
CREATE TABLE counters (id text PRIMARY KEY, number integer NOT NULL);
CREATE TABLE bulk (id text PRIMARY KEY);
CREATE TABLE members (id text PRIMARY KEY, user_id text NOT NULL, team_id text NOT NULL);
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
    for (data,) in database_rows(folder, "SELECT data FROM events WHERE name = 'table:change' ORDER BY sequence"):
        change = json.loads(data)
        yield change["table"], change.get("record")


def wait_for(condition, problem, service):
    """Waits for a condition. The error states the problem, with the log of the service."""
    try:
        wait_until(condition, problem)
    except Failed:
        raise Failed(f"{problem}:\n{service.log()}") from None


def wait_for_end(cluster, service, folder):
    cluster.sql("INSERT INTO bulk VALUES ('the end')", DATABASE)
    wait_for(lambda: ("bulk", {"id": "the end"}) in told(folder), "what was committed last was not told", service)


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


def make_app(cluster, service, folder):
    """Makes the app's database, and says to the service which tables to read."""
    cluster.create()
    cluster.start()
    cluster.sql(f"CREATE DATABASE {DATABASE}")
    cluster.sql("CREATE ROLE reader LOGIN REPLICATION PASSWORD 'of-a-day'")
    cluster.sql(SCHEMA, DATABASE)
    tables = pathlib.Path(folder) / "tables.yaml"
    tables.write_text(TABLES)
    # Superusers come by the socket alone here, so the statements are run as they are printed.
    cluster.sql(setup(service.binary, tables, service), DATABASE)
    service.environment.update(BELLHOP_TABLES=str(tables))


def start_reading(service, *clusters):
    ports = [cluster.port for cluster in clusters]
    service.environment.update(BELLHOP_SOURCE=postgres.url("reader", "of-a-day", DATABASE, *ports))
    service.start()
    wait_for_slot(clusters[0], service)


@contextlib.contextmanager
def app_of(options, folder):
    """An app's server and the service beside it, both gone afterwards."""
    place = postgres.make_folder()
    cluster, service = Cluster(place), Service(options.binary, folder)
    try:
        make_app(cluster, service, folder)
        yield cluster, service
    finally:
        with contextlib.suppress(Failed):
            service.stop()
        cluster.stop()
        shutil.rmtree(place, ignore_errors=True)


def run(options, folder):
    (folder / "races").mkdir()
    (folder / "failover").mkdir()
    return races(options, folder / "races") + failover(options, folder / "failover")


def races(options, folder):
    writers = []
    choices = random.Random(options.seed)
    with app_of(options, folder) as (cluster, service):
        try:
            start_reading(service, cluster)
            writers = [Writer(cluster, f"w{number}", choices.random()) for number in range(options.writers)]
            for number in range(options.rounds):
                print(f"round {number + 1}", flush=True)
                time.sleep(0.5 + choices.random())
                disturb(cluster, service, choices)
            for writer in writers:
                writer.end()
        finally:
            for writer in writers:
                writer.is_over.set()
        wait_for_end(cluster, service, folder)
        service.stop()
        print(f"source: {judge(cluster, folder, writers)} changes were told, each once and in order", flush=True)
        return options.rounds


def failover(options, folder):
    """A standby takes over that has not got the last commits."""
    begin = time.monotonic()
    with app_of(options, folder) as (cluster, service):
        standby = cluster.make_standby()
        try:
            cluster.sql("INSERT INTO members VALUES ('m1', 'ada', 't1'), ('m2', 'ben', 't1')", DATABASE)
            start_reading(service, cluster, standby)
            wait_for(lambda: is_member(service, "ada"), "the first rows are not known", service)
            # From here on the standby receives nothing, and commits do not wait for it: they are lost with the server.
            standby.sql("ALTER SYSTEM SET primary_conninfo = ''")
            standby.sql("SELECT pg_reload_conf()")
            cluster.sql("ALTER SYSTEM RESET synchronous_standby_names")
            cluster.sql("SELECT pg_reload_conf()")
            following = "SELECT count(*) FROM pg_stat_replication WHERE application_name <> 'bellhop'"
            wait_for(lambda: cluster.sql(following) == "0", "the standby still follows", service)
            cluster.sql(
                "INSERT INTO members VALUES ('m3', 'eve', 't1'); DELETE FROM members WHERE id = 'm2';"
                "INSERT INTO bulk VALUES ('lost')", DATABASE)
            wait_for(lambda: ("bulk", {"id": "lost"}) in told(folder), "the lost row was not read", service)
            wait_for(lambda: is_member(service, "eve"), "the lost membership was not read", service)
            before = epoch(folder)
            cluster.stop()
            standby.promote()
            # Perhaps before the service is back: a slot that is made later does not bring it.
            standby.sql("INSERT INTO members VALUES ('m4', 'fay', 't1')", DATABASE)
            wait_for(lambda: epoch(folder) != before, "no stream begins again after the failover", service)
            for user, is_there in (("ada", True), ("ben", True), ("fay", True), ("eve", False)):
                wait_for(lambda: is_member(service, user) == is_there,
                         f"{user} {'lacks' if is_there else 'has'} a key after the failover", service)
            standby.sql("INSERT INTO bulk SELECT 'new-' || n FROM generate_series(1, 500) AS n", DATABASE)
            wait_for_end(standby, service, folder)
            rows = [record["id"] for table, record in told(folder) if table == "bulk"]
            expected = ["lost"] + [f"new-{number}" for number in range(1, 501)] + ["the end"]
            if rows != expected:
                raise Failed(f"after the failover {len(rows)} rows were told, not {len(expected)}: {rows[:3]} … {rows[-3:]}")
            reasons = service.log().count("another server took over")
            if reasons != 1:
                raise Failed(f"the log tells of the failover {reasons} times:\n{service.log()}")
            service.stop()
        finally:
            standby.stop()
    print(f"source: a failover with lost commits was told, and read on ({time.monotonic() - begin:.1f} s)", flush=True)
    return 1


def is_member(service, user):
    status, body = service.request("GET", "/v1/me", token(service.secret, user, "authenticated"))
    if status != 200:
        raise Failed(f"/v1/me of {user} was answered with {status}")
    return "team:t1:member" in json.loads(body)["scope"]


def epoch(folder):
    """The name of the event log: with another one, all streams begin again."""
    return database_rows(folder, "SELECT epoch FROM event_epochs")


def setup(binary, tables, service):
    return subprocess.run(
        [binary, "source", "setup", "--tables", str(tables), "--role", "reader", "--sql"], env=service.environment,
        capture_output=True, text=True, check=True,
    ).stdout


def wait_for_slot(cluster, service):
    wait_for(lambda: cluster.sql("SELECT count(*) FROM pg_replication_slots WHERE active") == "1",
             "the service does not read the log", service)


if __name__ == "__main__":
    sys.exit(run_script("source", __doc__, run, rounds=6, writers=4))
