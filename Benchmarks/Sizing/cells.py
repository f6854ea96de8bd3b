#!/usr/bin/env python3
"""Computes how far one PostgreSQL carries the service, and how many cells an app needs: the tables of Docs/scaling.md.

    cells.py                 prints the tables
    cells.py --write         writes them into Docs/scaling.md, between its markers
    cells.py --check         fails if the document has other tables; notes new measurements in Benchmarks/four-cores.md
    cells.py --notifications-one 9000 …   the same with another figure; --help lists them

Most of it is arithmetic with measured figures. Where arithmetic misleads, a simulation of serialized commits runs event
by event with a fixed seed: the same figures give the same tables."""

import argparse
import math
import pathlib
import re
import sys
from typing import NamedTuple

from commits import CLIENTS, CORES, Model, fitted_work, percentile, saturated

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "Docs/scaling.md"
MEASURED = ROOT / "Benchmarks/four-cores.md"

# ---------------------------------------------------------------------------------------------------------------
# Figures


class Figure(NamedTuple):
    name: str
    value: float
    what: str
    # The source: the beginning of a row of Benchmarks/four-cores.md (and the column), or words.
    source: str
    column: int = 0


TABLE = "four-cores.md | "
# Measured on a machine other than that of four-cores.md, as Docs/scaling.md says. These figures can be compared only
# with each other.
APART = "measured apart"
ACROSS = "Table changes stored by A and delivered by B, PostgreSQL, 2,000 streams, 1 % of them subscribed: "
BADGES = "`GET /v1/badges` 200, PostgreSQL, 64 connections, 8 readers: the service / pgbench, same query, row"
FIGURES = (
    Figure("notifications-one", 6_301, "notifications per second, one replica",
           TABLE + "Durable notifications (`POST /v1/events`, 64 connections), PostgreSQL, one replica", 3),
    Figure("notifications-two", 5_001, "… two replicas on the same three cores",
           TABLE + "Durable notifications (`POST /v1/events`, 64 connections), PostgreSQL, two replicas", 3),
    Figure("notifications-sqlite", 12_599, "… SQLite, same run",
           TABLE + "Durable notifications (`POST /v1/events`, 64 connections), PostgreSQL, one replica", 4),
    Figure("changes-batches", 45_740, "row changes per second, batches of 100, from A to streams of B",
           TABLE + ACROSS + "batches of 100", 3),
    Figure("changes-single", 17_138, "row changes per second, a webhook each",
           TABLE + ACROSS + "single", 3),
    Figure("shop-changes", 1_935, "changes of a shop's queue per second, two replicas", TABLE + "2,000", 2),
    Figure("big-messages-sqlite", 251, "messages per second to 256 members, SQLite",
           TABLE + "Durable messages into one conversation of 256, 64", 3),
    Figure("reads", 49_508, "`GET /v1/badges` per second, 8 readers, four cores",
           TABLE + BADGES, 3),
    Figure("deliveries", 145_184, "deliveries per second and core, 10,000 streams",
           TABLE + "Fan-out to 10,000 streams, 1 shard, 1 core: the service / the raw", 3),
    Figure("stream-kib", 1.44, "KiB of a stream, tables declared",
           TABLE + "Memory per idle stream with tables declared, 10,000 streams", 3),
    Figure("filtered-stream-kib", 8.1, "KiB of a stream with 100 filtered ids",
           TABLE + "Memory per stream with 100 filtered ids of 36 bytes, 10,000 streams", 3),
    Figure("commits", 4_562, "commits of one event per second, two writers, each with a NOTIFY",
           TABLE + "one-row counter", 3),
    Figure("grouped-events", 74_500, "events per second, two writers, groups of 32", "decision 0005"),
    Figure("answer-ms", 2.25, "ms from a notification's request to its 201, 50 a second",
           "four-cores.md: commit on A → client of B, 2.59 from sending less 0.34 from the 201"),
    Figure("event-bytes", 518, "bytes of an event in the log", "operations.md, the event log"),
    Figure("stream-max", 54_000, "streams of a replica, by its descriptors", "Deploy/compose.yaml"),
    Figure("connections", 14, "connections of a replica: 8 readers, 4 writers, 2 more", "operations.md, Sizing"),
    Figure("connections-max", 87, "connections for replicas: 100, without 3 for superusers and 10 for upkeep", "assumed"),
    Figure("events-kept", 1_000_000, "events retained", "`BELLHOP_EVENTS_KEPT_MAX`"),
    Figure("pruned", 10_000, "events that a replica's upkeep removes per second", "`Ticker`: 100 × 1,000 every 10 s"),
    Figure("queue-max", 1_024, "writes that wait for one of four writers", "`StoreOptions`: 4,096 for all four"),
    Figure("notification-events", 2, "events of a notification; a full list makes it 3", "counted"),
    Figure("postgres-cpu", 420, "µs of PostgreSQL's CPU for a notification", APART),
    Figure("replica-cpu", 270, "µs of its replica's", APART),
    Figure("postgres-reading-cpu", 22, "µs of PostgreSQL's CPU for an event of a small group, each further replica", APART),
    Figure("replica-reading-cpu", 16, "µs of that replica's", APART),
    Figure("notification-wal", 2_450, "bytes of WAL of a notification", APART),
    Figure("message-work", 2.1, "times the CPU of a notification: a message to one other", APART),
    Figure("like-work", 1.2, "… a like", APART),
    Figure("mark-work", 1.1, "… marking one as read", APART),
)


class Figures:
    """The figures by name, with underscores."""

    def __init__(self, values):
        self.__dict__.update({name.replace("-", "_"): value for name, value in values.items()})
        # The speed of a core of the benchmark machine, relative to a core of the machine on which CPU was counted.
        self.speed = (self.postgres_cpu + self.replica_cpu) / (CORES * 1e6 / self.notifications_one)
        self.replicas_max = int(self.connections_max // self.connections)
        self.messages, self.likes, self.marks = (
            self.notifications_two / work for work in (self.message_work, self.like_work, self.mark_work))
        # Reads had one core more than writes.
        self.polls = self.reads * CORES / (CORES + 1)


def measured(figure, text):
    """Returns the current figure in Benchmarks/four-cores.md; None if its row is missing."""
    start = "| " + figure.source.removeprefix(TABLE)
    for line in text.splitlines():
        if line.startswith(start):
            found = re.match(r"[\d,.]+", line.split(" | ")[figure.column - 1].lstrip("| "))
            return float(found.group().rstrip(",.").replace(",", "")) if found else None
    return None


# ---------------------------------------------------------------------------------------------------------------
# Apps


class Write(NamedTuple):
    """Writes of one kind per active user and day. `rate` names the figure for the database's maximum rate."""
    a_day: float
    rate: str
    events: float


class App(NamedTuple):
    name: str
    online: float
    peak: float
    receivers: float
    writes: tuple
    poll_seconds: float = 0
    stream: str = "stream_kib"
    said: str = ""


APPS = (
    App("school", 0.20, 30, 3, (Write(5, "changes_single", 1),),
        said="5 row changes, a webhook each; half of them in the 24 minutes in which attendance is taken"),
    App("barber shop", 0.05, 6, 20,
        (Write(2, "shop_changes", 2), Write(3, "notifications_two", 2), Write(3, "notifications_two", 1)),
        said="2 changes of a queue, 3 notifications, 3 votes or scores; Saturday noon"),
    App("clinic", 0.05, 5, 1, (Write(6, "notifications_two", 2), Write(4, "marks", 2)),
        said="6 notifications, 4 times read or seen; mornings"),
    App("social", 0.10, 3, 1.5,
        (Write(20, "messages", 3), Write(10, "likes", 0.2), Write(5, "notifications_two", 2)),
        poll_seconds=10, stream="filtered_stream_kib",
        said="20 messages to one other, 10 likes, 5 notifications; counts polled every 10 s, as its document asks"),
)
# Share of the measured saturation; the simulation shows why it is not more.
PLANNED = 0.5
SHARDS = 2


class Demand:
    """The load of an app's active users on a cell at the peak second, and the maximum number of users."""

    def __init__(self, app, figures):
        self.app, self.figures = app, figures
        self.peak = app.peak / 86_400
        self.writes = self.peak * sum(write.a_day for write in app.writes)
        self.events_a_day = sum(write.a_day * write.events for write in app.writes)
        self.events = self.peak * self.events_a_day
        self.polls = app.online / app.poll_seconds if app.poll_seconds else 0
        # The number of replicas that admits the most users: each replica carries streams, but also makes the database
        # read the log once more.
        self.replicas = max(range(2, figures.replicas_max + 1), key=lambda count: self.limits(count)[0][0])
        self.users = self.limits(self.replicas)[0][0]

    def work(self, replicas):
        """Returns the share of the database that one user takes. The measured rates include one further replica."""
        writes = self.peak * sum(write.a_day / getattr(self.figures, write.rate) for write in self.app.writes)
        reading = self.figures.postgres_reading_cpu / self.figures.speed / 1e6 / CORES
        return writes + self.polls / self.figures.polls + self.events * reading * (replicas - 2)

    def limits(self, replicas):
        """Returns the number of users at which each resource reaches its planned use, the most limiting resource first."""
        figures, app = self.figures, self.app
        return sorted([
            (PLANNED / self.work(replicas), "the database's cores"),
            (figures.stream_max * (replicas - 1) / app.online, f"streams of {replicas} replicas"),
            (PLANNED * figures.grouped_events / self.events, "commits that follow one another"),
            (PLANNED * figures.changes_batches / self.events, "a replica's reading of the log"),
            (PLANNED * figures.deliveries * SHARDS * replicas / (self.events * app.receivers), "deliveries"),
            (figures.pruned * replicas / (self.events_a_day / 86_400), "upkeep of the log"),
        ])


# ---------------------------------------------------------------------------------------------------------------
# Tables


def rounded(value, digits=2):
    """Rounds to the significant digits; more digits would suggest false precision."""
    if not value:
        return "0"
    step = 10 ** (math.floor(math.log10(abs(value))) - digits + 1)
    value = round(value / step) * step
    return f"{value:,.0f}" if value >= 10 else f"{value:.{max(0, digits - 1 - math.floor(math.log10(value)))}f}"


def milliseconds(seconds):
    return rounded(seconds * 1000)


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


def figures_table(figures):
    """Returns a table with four figures per row, filled by columns."""
    cells = []
    for figure in FIGURES:
        value = getattr(figures, figure.name.replace("-", "_"))
        source = "" if figure.source.startswith(TABLE) else f" ({figure.source})"
        cells.append([f"{value:,}", f"{figure.what}{source}: `--{figure.name}`"])
    height = math.ceil(len(cells) / 4)
    cells += [["", ""]] * (4 * height - len(cells))
    return table(["value", "quantity"] * 4, [sum(cells[row::height], []) for row in range(height)])


def carries_table(figures):
    counts = (1, 2, 4, 6)
    reading = figures.postgres_reading_cpu * figures.notification_events / figures.postgres_cpu
    changes = f"{rounded(figures.changes_batches)} / {rounded(figures.changes_single)}"
    alone, two = (f"{value:,}" for value in (figures.notifications_one, figures.notifications_two))
    names = [f"{count} replica{'s' if count > 1 else ''}" for count in counts]
    return table(["quantity", *names, "grows with replicas"], [
        ["notifications per second", alone, two, "not more", "not more", "no"],
        ["row changes per second, batches of 100 / single", *[changes] * len(counts), "no"],
        ["maximum events per second of the counter row", *[f"{figures.grouped_events:,}"] * len(counts), "no"],
        ["reads of counts per second", *[rounded(figures.reads)] * len(counts), "no: the database's cores"],
        ["additional database CPU for replicas that read the log",
         *(f"+{reading * (count - 1) * 100:.0f} %" for count in counts), "no, falls"],
        ["streams, with one replica down (column 1: none down)",
         *(f"{int(figures.stream_max * max(1, count - 1)):,}" for count in counts), "yes"],
        [f"deliveries per second, {SHARDS} shards each",
         *(rounded(figures.deliveries * SHARDS * count) for count in counts), "yes"],
        ["connections to PostgreSQL", *(int(figures.connections * count) for count in counts),
         f"up to {int(figures.connections_max)}"],
    ])


def log_table(figures):
    rows = []
    for rate in (10, 100, 1_000, 5_000):
        a_day = rate * 86_400
        window = min(24 * 3600, figures.events_kept / rate)
        rows.append([f"{rate:,}", rounded(a_day * figures.event_bytes / 1e6),
                     rounded(a_day / figures.notification_events * figures.notification_wal / 1e6),
                     f"{window / 3600:.0f} h" if window >= 3600 else f"{window / 60:.0f} min",
                     f"{math.ceil(a_day / 1e6):,} million"])
    return table(["events per second, daily mean", "MB of log a day", "MB of WAL a day, for notifications",
                  f"longest absence of a client, with {int(figures.events_kept):,} events",
                  "`BELLHOP_EVENTS_KEPT_MAX` for 24 h"], rows)


def commits_table(figures, work):
    """Returns a table of waits by utilization, for one replica and for two."""
    rows = []
    tops = {replicas: saturated(figures, replicas, work) for replicas in (1, 2)}
    for share in (0.3, 0.5, 0.8, 0.95):
        row = [f"{share * 100:.0f} %"]
        for replicas, top in tops.items():
            model = Model(figures, replicas, work, figures.notification_events)
            model.open_loop(share * top)
            model.run(10)
            row += [rounded(share * top), f"{model.jobs / model.groups:.1f}",
                    f"{milliseconds(percentile(model.waits, 0.5))} / {milliseconds(percentile(model.waits, 0.99))}"]
        rows.append(row)
    text = table(["load, % of maximum", "one replica: writes/s", "writes per commit", "response, ms, p50 / p99",
                  "two replicas: writes/s", "writes per commit", "response, ms, p50 / p99"], rows)
    return text + (
        f"\n\nFitted to one replica and {CLIENTS} clients that wait for their responses ({rounded(tops[1])} a second). "
        f"For two replicas, the model predicts {rounded(tops[2])}; {figures.notifications_two:,} were measured.")


def disturbed(figures, work, share, disturb):
    model = Model(figures, 2, work, figures.notification_events)
    model.open_loop(share * saturated(figures, 2, work))
    model.measured_from = 5.0
    model.run(5)
    disturb(model)
    return model


def recovery(figures, work, share, seconds):
    """Simulates a pause of all commits: the longest response time, the refusals, and the time until the queues are
    empty."""
    model = disturbed(figures, work, share, lambda model: model.lock_counter(0, seconds))
    model.run(5 + seconds)
    while model.waiting > CLIENTS and model.now < 60:
        model.run(model.now + 0.05)
    over = model.now - 5 - seconds
    model.run(model.now + 1)
    return [f"at most {rounded(max(model.waits))} s", f"{model.refused:,}", f"{rounded(over)} s later"]


def rush(figures, work, share, count):
    """Simulates a backend that sends as fast as it gets responses, and measures the waits of the others."""
    model = disturbed(figures, work, share, lambda model: model.closed_loop(CLIENTS, count))
    while not model.finished and model.now < 120:
        model.run(model.now + 0.5)
    took = rounded(model.finished - 5)
    return [f"p99 {milliseconds(percentile(model.waits, 0.99))} ms", f"{model.refused:,}", f"sent in {took} s"]


def lasting(figures, work, share, disturb):
    """Simulates a permanent condition."""
    model = disturbed(figures, work, share, disturb)
    model.run(15)
    return [f"p99 {milliseconds(percentile(model.waits, 0.99))} ms", f"{model.refused:,}", "never"]


def stalls_table(figures, work):
    big = figures.notifications_sqlite / figures.notifications_two / figures.big_messages_sqlite
    kinds = {
        "no commits for 1 s": (recovery, 1), "no commits for 2 s": (recovery, 2),
        f"a backend posts 20,000 notifications, {CLIENTS} at a time": (rush, 20_000),
        "20 messages a second to 256 members each":
            (lasting, lambda model: model.open_loop(20, work=big, events=512, watched=False)),
        "a network disk, whose flushes take 2 ms longer": (lasting, lambda model: model.slow_disk(0.002)),
    }
    rows = [[what, *kind(figures, work, 0.5, how), *kind(figures, work, 0.8, how)] for what, (kind, how) in kinds.items()]
    return table(["disturbance of two replicas", "at 50 % load: response time", "refused", "recovered", "at 80 % load: response time",
                  "refused", "recovered"], rows)


def apps_table(figures):
    rows = []
    for app in APPS:
        demand = Demand(app, figures)
        a_million = [rounded(part * 1e6) for part in (demand.writes, demand.events, demand.polls, app.online)]
        rows.append([app.name, app.said, f"{app.online * 100:.0f} %", f"{app.peak:g}", f"{app.receivers:g}", *a_million])
    return table(["app", "writes per active user and day", "online at the peak", "peak / mean",
                  "receiving streams per event", "per million users at the peak: writes/s", "events/s", "polls/s",
                  "streams"], rows)


def ends_table(figures):
    rows = []
    for app in APPS:
        demand = Demand(app, figures)
        (users, first), (more, second), (most, third) = demand.limits(demand.replicas)[:3]
        kib = getattr(figures, app.stream)
        rows.append([app.name, f"**{rounded(users)}**: {first}", f"{rounded(more)}: {second}", f"{rounded(most)}: {third}",
                     rounded(users * app.online), demand.replicas,
                     f"{rounded(min(figures.stream_max, users * app.online / (demand.replicas - 1)) * kib / 1024)} MiB",
                     rounded(users * demand.events_a_day * figures.event_bytes / 1e9), math.ceil(1e7 / users)])
    return table(["app", "active users at the first limit", "second limit", "third limit", "streams", "replicas",
                  "memory of a replica's streams", "GB of log a day", "cells for 10 million"], rows)


def tables(figures):
    work = fitted_work(figures)
    return {
        "figures": figures_table(figures), "carries": carries_table(figures), "log": log_table(figures),
        "commits": commits_table(figures, work), "stalls": stalls_table(figures, work),
        "apps": apps_table(figures), "ends": ends_table(figures),
    }


# ---------------------------------------------------------------------------------------------------------------
# The document


def parts(name):
    return re.compile(rf"(<!-- cells:begin {name} -->\n)(.*?)(\n<!-- cells:end -->)", re.S)


def with_tables(text, made):
    for name, content in made.items():
        text, count = parts(name).subn(lambda found: found[1] + content + found[3], text)
        if count != 1:
            sys.exit(f"cells.py: {DOCUMENT.name} has {count} places for the table “{name}” instead of one")
    return text


def check(made):
    """Prints differences as errors, and newer measurements as notes."""
    text = MEASURED.read_text(encoding="utf-8")
    for figure in FIGURES:
        if figure.source.startswith(TABLE) and (found := measured(figure, text)) != figure.value:
            says = "has no such row any more" if found is None else f"says {found:,g} now"
            print(f"note: --{figure.name} is {figure.value:,g} here; {MEASURED.name} {says}")
    document = DOCUMENT.read_text(encoding="utf-8")
    if with_tables(document, made) == document:
        print(f"{DOCUMENT.name} has the {len(made)} tables that cells.py makes")
        return 0
    stale = [name for name, content in made.items() if parts(name).search(document)[2] != content]
    print(f"{DOCUMENT.name}: cells.py makes other tables than these: {', '.join(stale)}. Run {sys.argv[0]} --write",
          file=sys.stderr)
    return 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the tables into Docs/scaling.md")
    parser.add_argument("--check", action="store_true", help="fail if Docs/scaling.md has other tables")
    for figure in FIGURES:
        parser.add_argument(f"--{figure.name}", type=float, default=figure.value, metavar="N",
                            help=f"{figure.what} ({figure.value:,g}; {figure.source})".replace("%", "%%"))
    given = vars(parser.parse_args())
    values = {figure.name: given[figure.name.replace("-", "_")] for figure in FIGURES}
    made = tables(Figures({name: int(value) if value == int(value) else value for name, value in values.items()}))
    if given["check"]:
        sys.exit(check(made))
    if given["write"]:
        DOCUMENT.write_text(with_tables(DOCUMENT.read_text(encoding="utf-8"), made), encoding="utf-8")
        return
    for name, content in made.items():
        print(f"## {name}\n\n{content}\n")


if __name__ == "__main__":
    main()
