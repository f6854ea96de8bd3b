#!/usr/bin/env python3
"""Measures what a durable notification costs PostgreSQL, by the number of replicas and clients (decision 0028).

    groups.py BINARY …                       the table for one or more builds, measured in turns
    groups.py BINARY --replicas 1,2,4 --clients 1,16,64 --seconds 3 --turns 2
    groups.py --simulate                     the simulation beside it; needs no build

All replicas and the load client share the machine with PostgreSQL. The CPU is that of all of PostgreSQL's processes, as
the kernel counts it: it does not depend on other processes as much as a rate does. `reading` is the part of the
connections on which replicas read each other's events."""

import argparse
import collections
import contextlib
import os
import pathlib
import random
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent / "Tests"), str(HERE)]
sys.dont_write_bytecode = True

from commits import SEED, Fifo, Model  # noqa: E402
from Harness import machine  # noqa: E402
from Harness.postgres import Cluster  # noqa: E402
from Harness.processes import Load, stop_all  # noqa: E402
from Harness.replicas import DATABASE, READERS, Installation  # noqa: E402
from Harness.turns import Binary  # noqa: E402
from harness.metrics import metric  # noqa: E402
from harness.processes import children  # noqa: E402

READING = "SELECT sequence, tenant, name%"
USERS = 1_000


# -- measurement -----------------------------------------------------------------------------------------------------


def cpu_microseconds(process):
    """Returns the CPU time of a process with one thread; 0 if it has ended."""
    with contextlib.suppress(OSError):
        return int(pathlib.Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1_000
    return 0


def snapshot(cluster):
    postmaster = int((cluster.folder / "data" / "postmaster.pid").read_text().splitlines()[0])
    return {process: cpu_microseconds(process) for process in children(postmaster)}


class Setup:
    """A cluster with replicas of one build."""

    def __init__(self, binary, replicas):
        self.stack, self.cores = contextlib.ExitStack(), ",".join(map(str, sorted(os.sched_getaffinity(0))))
        # Connections are some of what four replicas have; the server allows a hundred.
        self.cluster = self.stack.enter_context(Cluster(name=f"groups-{binary.name}", max_connections="200"))
        installation = Installation(self.cluster, binary).make()
        self.replicas = [installation.replica(f"{number}") for number in range(replicas)]
        self.servers = [self.stack.enter_context(replica.start(self.cores)) for replica in self.replicas]

    def measure(self, clients, seconds):
        warmup = 0.5
        loads = [
            Load("http_load", self.cores, port=server.port, connections=max(1, clients // len(self.servers)), threads=1,
                 method="POST", path="/v1/events", header=replica.publisher, users=USERS, seconds=seconds, warmup=warmup,
                 body=replica.event_body(f"g{time.time_ns()}-{server.port}"))
            for replica, server in zip(self.replicas, self.servers)]
        time.sleep(warmup)
        before, commits = snapshot(self.cluster), self.commits()
        time.sleep(seconds - 0.3)
        after, last = snapshot(self.cluster), self.commits()
        reading = {int(line) for line in self.cluster.psql(
            f"SELECT pid FROM pg_stat_activity WHERE datname = '{DATABASE}' AND query LIKE '{READING}'")}
        results = [one.result() for one in loads]
        for result in results:
            if result["statuses"].get("201", 0) < result["requests"] * 0.99 or not result["requests"]:
                raise machine.Unavailable(f"POST /v1/events: {result['statuses']}")
        used = {process: cpu - before.get(process, 0) for process, cpu in after.items()}
        jobs, groups = last[0] - commits[0], max(1, last[1] - commits[1])
        return {"rate": sum(result["goodRps"] for result in results), "cpu": sum(used.values()) / max(1, jobs),
                "reading": sum(cpu for process, cpu in used.items() if process in reading) / max(1, jobs),
                "group": jobs / groups, "p50": statistics.fmean(result["latencyUs"]["p50"] for result in results) / 1000}

    def commits(self):
        """Returns the numbers of committed writes and groups, by the services' own counters."""
        return [sum(metric(server.port, name) or 0 for server in self.servers)
                for name in ("bellhop_database_writes_total", "bellhop_database_commits_total")]

    def close(self):
        self.stack.close()


def measured(arguments):
    binaries = [Binary(f"build-{number}", pathlib.Path(path).resolve()) for number, path in enumerate(arguments.binary, 1)]
    found = collections.defaultdict(list)
    for replicas in arguments.replicas:
        for turn in range(arguments.turns):
            for binary in binaries[::1 if turn % 2 == 0 else -1]:
                setup = Setup(binary, replicas)
                try:
                    for clients in arguments.clients:
                        if clients >= replicas:
                            found[replicas, clients, binary.name].append(setup.measure(clients, arguments.seconds))
                finally:
                    setup.close()
    print("| replicas | clients | build | notifications/s | µs of PostgreSQL each | of which reading | group | p50, ms |")
    print("|---|---|---|---|---|---|---|---|")
    for (replicas, clients, name), turns in sorted(found.items()):
        def span(key, digits=0):
            values = sorted(turn[key] for turn in turns)
            return " to ".join(f"{value:,.{digits}f}" for value in dict.fromkeys((values[0], values[-1])))
        print(f"| {replicas} | {clients} | {name} | {span('rate')} | {span('cpu')} | {span('reading')} | {span('group', 1)}"
              f" | {span('p50', 1)} |")


# -- simulation ------------------------------------------------------------------------------------------------------


# Seconds of a core: a group's own work (its framing, the counter, the notification of the others), and a notification's
# in statements of 1 and of 64 rows. Fitted to the measurement with one replica.
GROUP_WORK, ROW_ALONE, ROW_AMONG_64 = 330e-6, 190e-6, 42e-6
# From the answer to a client's next request in the queue, and the flush of a commit, which takes no core.
THINK, FLUSH = 400e-6, 900e-6
# What each other replica spends to read a group's events: per statement and per notification.
READ_STATEMENT, READ_ROW, READ_PAUSE = 110e-6, 4e-6, 3e-3
CORES = 2
BOUND = 5e-3


class Replica:
    """The writers of a replica: one collects while another commits (`WriteQueue`)."""

    def __init__(self, model):
        self.model, self.waiting, self.held, self.expected = model, collections.deque(), 0, 1
        self.is_collecting, self.unread, self.is_reading = False, 0, False

    def append(self):
        self.waiting.append(self.model.now)
        self.look()
        if len(self.waiting) == 1:
            self.model.after(BOUND, self.look)

    def look(self):
        """Begins a group if enough writes wait for it, or the oldest has waited for long enough."""
        if self.is_collecting or not self.waiting:
            return
        age = self.model.now - self.waiting[0]
        if len(self.waiting) < min(self.expected, self.model.wanted) and age < BOUND * 0.999:
            self.model.after(BOUND - age, self.look)
            return
        count = len(self.waiting)
        self.waiting.clear()
        self.is_collecting, self.held = True, self.held + count
        self.model.spend(self.model.rows_work(count), lambda: self.model.counter.take(lambda: self.commit(count)))

    def commit(self, count):
        self.is_collecting = False
        self.look()
        self.model.spend(GROUP_WORK, lambda: self.model.after(FLUSH, lambda: self.committed(count)))

    def committed(self, count):
        model = self.model
        model.counter.give()
        self.expected = self.held + len(self.waiting)
        self.held -= count
        model.groups, model.jobs = model.groups + 1, model.jobs + count
        for _ in range(count):
            model.after(THINK * model.random.uniform(0.5, 1.5), self.append)
        for other in model.replicas:
            if other is not self:
                other.read(count)
        self.look()

    def read(self, count):
        self.unread += count
        if not self.is_reading:
            self.is_reading = True
            rows, self.unread = self.unread, 0
            self.model.spend(READ_STATEMENT + rows * READ_ROW, lambda: self.model.after(READ_PAUSE, self.paused))

    def paused(self):
        self.is_reading = False
        if self.unread:
            self.read(0)


class Groups(Model):
    """Clients that each send the next notification after the answer to the last, over all replicas."""

    def __init__(self, replicas, clients, wanted):
        self.now, self.order, self.agenda = 0.0, 0, []
        self.wanted, self.cores, self.counter = wanted, Fifo(CORES), Fifo(1)
        self.groups, self.jobs, self.spent, self.random = 0, 0, 0.0, random.Random(SEED)
        self.replicas = [Replica(self) for _ in range(replicas)]
        for number in range(clients):
            self.after(number * 1e-5, self.replicas[number % replicas].append)

    @staticmethod
    def rows_work(count):
        """Statements have 1, 2, 4 and so on up to 64 rows; a row costs less in a larger one."""
        work = 0.0
        while count:
            rows = min(64, 1 << (count.bit_length() - 1))
            work += rows * ROW_AMONG_64 + (ROW_ALONE - ROW_AMONG_64)
            count -= rows
        return work

    def spend(self, seconds, then):
        def done():
            self.cores.give()
            then()

        def begin():
            self.spent += seconds
            self.after(seconds, done)
        self.cores.take(begin)

    def result(self, seconds=3.0):
        self.run(1.0)
        groups, jobs, spent = self.groups, self.jobs, self.spent
        self.run(1.0 + seconds)
        count = max(1, self.jobs - jobs)
        return count / seconds, (self.spent - spent) / count * 1e6, count / max(1, self.groups - groups)


def simulated():
    print("| replicas | clients | waits for up to | notifications/s | µs of PostgreSQL each | group |")
    print("|---|---|---|---|---|---|")
    for replicas, clients in ((1, 1), (1, 16), (1, 64), (2, 64), (4, 64), (4, 256)):
        for wanted in (1, 16, 64):
            rate, cpu, group = Groups(replicas, clients, wanted).result()
            print(f"| {replicas} | {clients} | {wanted} | {rate:,.0f} | {cpu:.0f} | {group:.1f} |")


def numbers(text):
    return [int(part) for part in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", nargs="*", help="builds of the service")
    parser.add_argument("--replicas", type=numbers, default=[1, 2, 4])
    parser.add_argument("--clients", type=numbers, default=[1, 16, 64])
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--simulate", action="store_true", help="print the simulation instead")
    arguments = parser.parse_args()
    if arguments.simulate:
        return simulated()
    if not arguments.binary:
        parser.error("name a build, or --simulate")
    machine.WORK.mkdir(exist_ok=True)
    machine.install_packages({"postgresql"})
    machine.build_c()
    try:
        measured(arguments)
    finally:
        stop_all()


if __name__ == "__main__":
    main()
