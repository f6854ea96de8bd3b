"""Compares three methods that put the rows of an event log into commit order, without the service.

A reader that takes the rows after the newest one it has seen skips a row that commits later with a lower number. A
counter's row lock or an advisory lock, taken as a transaction's last step, serializes the commits. With the horizon of
a snapshot, commits may overtake each other, and the reader waits instead."""

import pathlib
import statistics
import tempfile
import threading
import time

from .machine import WORK, Unavailable
from .postgres import YARDSTICKS, Session

WAYS = {"counter": "one-row counter", "lock": "advisory lock", "horizon": "no lock, xmin horizon"}
READABLE = {
    "counter": "sequence IS NOT NULL", "lock": "sequence IS NOT NULL",
    "horizon": "xid < pg_snapshot_xmin(pg_current_snapshot())",
}


def make_tables(cluster):
    cluster.psql("SET client_min_messages = warning;\n" + (YARDSTICKS / "commit_order.sql").read_text())


def script(way, notify):
    """Returns the method's transaction, optionally with the NOTIFY that wakes the readers."""
    text = (YARDSTICKS / f"commit_order_{way}.pgbench").read_text()
    if not notify:
        return text
    return text.replace("COMMIT;", "NOTIFY commit_order;\nCOMMIT;")


def statements(way):
    """Returns the transaction of one event as plain SQL, without its BEGIN and COMMIT: the work, and the last step."""
    lines = [line for line in script(way, False).splitlines() if not line.startswith(("\\", "--"))]
    text = "\n".join(lines).replace("(:events)", "(1)").replace("(:user)", "(1)")
    work, last = text.split("BEGIN;")[1].split("COMMIT;")[0].strip().split(";", 1)
    return work + ";", last.strip()


def throughput(cluster, cores, way, writers, events, notify, seconds):
    make_tables(cluster)
    with tempfile.NamedTemporaryFile("w", suffix=".pgbench", dir=WORK) as file:
        file.write(script(way, notify))
        file.flush()
        return cluster.pgbench(pathlib.Path(file.name), cores, clients=writers, threads=2, seconds=seconds, events=events)


def held_open(cluster, way, reached_last_step, held_seconds):
    """Keeps a transaction open while another one commits an event.

    Returns the seconds that the other commit took, and how long after it a reader could take the row."""
    make_tables(cluster)
    work, last = statements(way)
    with Session(cluster) as holder, Session(cluster) as writer, Session(cluster) as reader:
        # The tables are empty: this fills the sessions' caches with plans and catalogs before anything is measured.
        writer.run(f"BEGIN; {work} {last} ROLLBACK;")
        readable = f"SELECT count(*) FROM commit_order.events WHERE {READABLE[way]};"
        reader.run(readable)
        holder.run(f"BEGIN; {work} {last if reached_last_step else ''}")
        timer = threading.Timer(held_seconds, lambda: holder.send("COMMIT;"))
        timer.start()
        begin = time.perf_counter()
        writer.run(f"BEGIN; {work} {last} COMMIT;")
        committed = time.perf_counter()
        # The holder has done its last step, so its own event becomes readable no later than the writer's.
        while int(reader.run(readable)[-1]) < 1:
            if time.perf_counter() - committed > 30:
                raise Unavailable("the row did not become readable within 30 s")
            time.sleep(0.002)
        seen = time.perf_counter()
        timer.join()
        holder.receive()
    return committed - begin, seen - committed


def skipped(cluster, cores, way, in_order=True, writers=8, seconds=2):
    """Returns how many rows a polling reader misses, and how many there are."""
    make_tables(cluster)
    by_transaction = way == "horizon" and in_order
    if by_transaction:
        ask = ("SELECT pg_snapshot_xmin(pg_current_snapshot()), count(*) FROM commit_order.events "
               "WHERE xid >= '{0}' AND xid < pg_snapshot_xmin(pg_current_snapshot());")
    else:
        ask = "SELECT coalesce(max(sequence), {0}), count(*) FROM commit_order.events WHERE sequence > {0};"
    with Session(cluster) as reader, tempfile.NamedTemporaryFile("w", suffix=".pgbench", dir=WORK) as file:
        file.write(script(way, False))
        file.flush()
        done = threading.Event()

        def write():
            try:
                cluster.pgbench(pathlib.Path(file.name), cores, clients=writers, threads=2, seconds=seconds, events=1)
            finally:
                done.set()

        thread = threading.Thread(target=write)
        thread.start()
        last, seen, final = "0", 0, False
        while True:
            last, count = reader.run(ask.format(last))[-1].split("|")
            seen += int(count)
            if final:
                break
            # One more round after the last commit takes the rest.
            final = done.is_set()
        thread.join()
        total = int(reader.run("SELECT count(*) FROM commit_order.events;")[-1])
    return total - seen, total


def with_old_snapshot(cluster, cores, way, writers, seconds):
    """Returns the rate while an old snapshot keeps every old version of the counter's row: a backup, a long report."""
    make_tables(cluster)
    with Session(cluster) as old:
        old.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM commit_order.event_counter;")
        with tempfile.NamedTemporaryFile("w", suffix=".pgbench", dir=WORK) as file:
            file.write(script(way, True))
            file.flush()
            return cluster.pgbench(pathlib.Path(file.name), cores, clients=writers, threads=2, seconds=seconds, events=1)


def report(cluster, cores, report, turns, seconds, full=False, writers=(1, 2, 8), held_seconds=2.0):
    """Writes tables that compare the methods. The turns alternate so that a slow minute affects all of them."""
    sizes, notified = ((1, 32), (False, True)) if full else ((1,), (True,))
    for events in sizes:
        for notify in notified:
            results = {}
            for _ in range(turns):
                for count in writers:
                    for way in WAYS:
                        results.setdefault((way, count), []).append(
                            throughput(cluster, cores, way, count, events, notify, seconds))
            table = []
            for way, name in WAYS.items():
                cells = [name]
                for count in writers:
                    runs = results[(way, count)]
                    rate, p50, p99 = (statistics.median(run[key] for run in runs) for key in ("rate", "p50Ms", "p99Ms"))
                    cells.append(f"{rate * events:,.0f}/s, {p50:.2f} / {p99:.2f} ms")
                table.append(cells)
            report.add_curve(
                f"Commit order: events per second, p50 / p99 of a transaction of {events} event{'s' if events > 1 else ''}, "
                f"{'each with a NOTIFY' if notify else 'without NOTIFY'}",
                ["way"] + [f"{count} writer{'s' if count > 1 else ''}" for count in writers], table)
    report_held(cluster, report, turns, held_seconds)
    if full:
        report_order(cluster, cores, report, seconds)


def report_held(cluster, report, turns, held_seconds):
    table = []
    for way, name in WAYS.items():
        cells = [name]
        for reached in (False, True):
            pairs = [held_open(cluster, way, reached, held_seconds) for _ in range(turns)]
            commit, read = (statistics.median(pair[which] for pair in pairs) * 1000 for which in (0, 1))
            cells += [f"{commit:,.1f} ms", f"{read:,.1f} ms"]
        table.append(cells)
    report.add_curve(
        f"Commit order: another writing transaction is held open for {held_seconds:g} s",
        ["way", "before its last step: a commit takes", "… until a reader may take the row",
         "after its last step: a commit takes", "… until a reader may take the row"], table)


def report_order(cluster, cores, report, seconds):
    table = []
    for way, name, in_order in [(way, name, True) for way, name in WAYS.items()] + [
            ("horizon", "control: no lock, no horizon", False)]:
        missed, total = skipped(cluster, cores, way, in_order)
        table.append([name, f"{missed:,} of {total:,}"])
    report.add_curve("Commit order: rows that a reader misses beside 8 writers", ["way", "missed"], table)
    table = []
    for way, name in WAYS.items():
        run = with_old_snapshot(cluster, cores, way, 2, 10)
        table.append([name, f"{run['rate']:,.0f}/s", f"{run['p50Ms']:.2f} / {run['p99Ms']:.2f} ms"])
    report.add_curve("Commit order: 2 writers for 10 s while an old snapshot is held, one event each, with NOTIFY",
                     ["way", "events per second", "p50 / p99"], table)
