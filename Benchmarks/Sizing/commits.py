"""Simulates, event by event, writers that work on waiting requests and commit one after another, over all replicas.

It follows EventLog.append, and the writers as they were before they shared one queue (decision 0028), so its groups are
smaller and its rates lower than today's. A replica has four writers, each with its share of the users. A
writer takes its waiting requests as one group and executes them one by one. It then waits for its turn in the replica,
then for the counter's row, and commits. Requests that arrive while it waits for the turn join the group."""

import collections
import functools
import heapq
import math
import random

SEED = 14
# The benchmark gave PostgreSQL and both replicas three cores.
CORES = 3
CLIENTS = 64


class Job:
    """A write: its arrival, the seconds of a core and the events that it takes, and the client that waits for the
    response."""
    __slots__ = ("arrived", "work", "events", "client", "watched")

    def __init__(self, arrived, work, events, client=None, watched=True):
        self.arrived, self.work, self.events, self.client, self.watched = arrived, work, events, client, watched


class Fifo:
    """A resource with a fixed number of holders; others wait in order of arrival."""

    def __init__(self, count):
        self.free, self.waiting = count, collections.deque()

    def take(self, then):
        if self.free:
            self.free -= 1
            then()
        else:
            self.waiting.append(then)

    def give(self):
        if self.waiting:
            self.waiting.popleft()()
        else:
            self.free += 1


class Writer:
    """One of a replica's writers."""
    GROUP_MAX, GROUP_SECONDS = 512, 0.020

    def __init__(self, model, turn):
        self.model, self.turn = model, turn
        self.queue, self.todo, self.group = collections.deque(), collections.deque(), []
        self.is_busy, self.taken, self.deadline = False, 0, 0.0

    @property
    def depth(self):
        return len(self.queue) + self.taken

    def append(self, job):
        self.queue.append(job)
        if not self.is_busy:
            self.begin()

    def take_waiting(self):
        while self.queue and self.taken < self.GROUP_MAX:
            self.todo.append(self.queue.popleft())
            self.taken += 1

    def begin(self):
        self.take_waiting()
        self.is_busy = bool(self.todo)
        if self.is_busy:
            self.group, self.deadline = [], self.model.now + self.GROUP_SECONDS
            self.step()

    def step(self):
        """Executes the next request's statements on a core; after the last one, waits for the turn. Requests that
        arrive before the turn join the group."""
        is_open = self.model.now < self.deadline or not self.group
        if is_open and not self.todo and not self.turn.free:
            self.take_waiting()
        if is_open and self.todo:
            self.model.cores.take(self.work)
        else:
            self.turn.take(self.wait_for_counter)

    def work(self):
        job = self.todo.popleft()
        self.group.append(job)
        self.model.after(job.work, self.worked)

    def worked(self):
        self.model.cores.give()
        self.step()

    def wait_for_counter(self):
        self.model.counter.take(self.commit)

    def commit(self):
        events = sum(job.events for job in self.group)
        self.model.after(self.model.commit_seconds + events * self.model.event_seconds, self.committed)

    def committed(self):
        self.model.counter.give()
        self.turn.give()
        self.taken -= len(self.group)
        self.model.answer(self.group, self.turn)
        self.begin()


class Model:
    """Replicas with four writers each, three cores for all, one counter."""

    def __init__(self, figures, replicas, work, events):
        self.figures, self.work, self.events = figures, work, events
        self.random = random.Random(SEED)
        self.now, self.order, self.agenda = 0.0, 0, []
        self.cores, self.counter = Fifo(CORES), Fifo(1)
        # The duration of a commit while others wait for it, and the additional time per event.
        self.commit_seconds = 1 / figures.commits
        self.event_seconds = max(0, 32 / figures.grouped_events - self.commit_seconds) / 31
        self.reading_seconds = (figures.postgres_reading_cpu + figures.replica_reading_cpu) / figures.speed / 1e6
        # The time of a response without waiting, beyond its statements and its commit: HTTP and thread wake-ups.
        self.path_seconds = max(0, figures.answer_ms / 1000 - work - self.commit_seconds)
        self.turns = [Fifo(1) for _ in range(replicas)]
        self.writers = [Writer(self, turn) for turn in self.turns for _ in range(4)]
        self.waits, self.groups, self.jobs, self.refused = [], 0, 0, 0
        self.measured_from = 1.0

    def after(self, seconds, then):
        self.order += 1
        heapq.heappush(self.agenda, (self.now + seconds, self.order, then))

    def run(self, until):
        while self.agenda and self.agenda[0][0] <= until:
            self.now, _, then = heapq.heappop(self.agenda)
            then()
        self.now = until

    def arrive(self, work=None, events=None, client=None, watched=True):
        writer = self.writers[int(self.random.random() * len(self.writers))]
        if writer.depth >= self.figures.queue_max:
            self.refused += 1
            return False
        writer.append(Job(self.now, work or self.work, events or self.events, client, watched))
        return True

    def open_loop(self, rate, **job):
        """Sends requests with random arrivals (Poisson), independent of response times."""
        def next_one():
            self.arrive(**job)
            self.after(-math.log(1 - self.random.random()) / rate, next_one)
        self.after(-math.log(1 - self.random.random()) / rate, next_one)

    def closed_loop(self, clients, count=None):
        """Runs clients that each send the next request after the response to the last."""
        left = [math.inf if count is None else count]

        def client():
            if left[0] > 0:
                if self.arrive(client=client, watched=count is None):
                    left[0] -= 1
                else:
                    self.after(1, client)
            elif left[0] == 0 and not self.finished:
                self.finished = self.now
        self.finished = 0.0
        for _ in range(clients):
            self.after(0, client)

    def answer(self, group, turn):
        for job in group:
            if job.watched and job.arrived >= self.measured_from:
                self.waits.append(self.now - job.arrived + self.path_seconds)
            if job.client:
                self.after(self.path_seconds, job.client)
        if self.now >= self.measured_from:
            self.groups += 1
            self.jobs += len(group)
        # Every other replica reads the events of this commit.
        events = sum(job.events for job in group)
        for other in self.turns:
            if other is not turn:
                self.cores.take(lambda: self.after(events * self.reading_seconds, self.cores.give))

    def lock_counter(self, at, seconds):
        """Blocks all commits for some seconds: a transaction stays open after its last step, or the disk does not
        respond."""
        self.after(at, lambda: self.counter.take(lambda: self.after(seconds, self.counter.give)))

    def slow_disk(self, seconds):
        """Makes each commit slower from now on."""
        self.commit_seconds += seconds

    @property
    def waiting(self):
        return sum(writer.depth for writer in self.writers)


@functools.cache
def saturated(figures, replicas, work):
    model = Model(figures, replicas, work, figures.notification_events)
    model.closed_loop(CLIENTS)
    model.run(3)
    return model.jobs / (model.now - model.measured_from)


def fitted_work(figures):
    """Returns the seconds of a core for a notification's statements, fitted so that one replica reaches the measured
    rate."""
    low, high = 0.0, 3 * CORES / figures.notifications_one
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (middle, high) if saturated(figures, 1, middle) > figures.notifications_one else (low, middle)
    return (low + high) / 2


def percentile(values, part):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))] if ordered else 0
