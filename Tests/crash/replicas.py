#!/usr/bin/env python3
"""Runs several replicas on one PostgreSQL: no event is lost or doubled across them, whatever fails.

    Tests/crash/replicas.py --binary .build/debug/bellhop [--seed 1] [--rounds 3] [--reconnections 10000]
        [--quick] [--only killed …] [--within-ms 1000]

Starts a separate PostgreSQL, migrates it as its owner, and runs two replicas on it with the service's role. Every
scenario compares the events of its streams with the event log, and every response with the final state.

Needs only Python's standard library; PostgreSQL and PgBouncer must be installed. The choices follow from the seed,
which is printed. The interleaving of threads and transactions depends on the machine.
"""

import argparse
import base64
import contextlib
import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback

import behind
import crowd
from event_ids import IDS, SECRET_POSTGRES
from harness import postgres
from harness.services import Service, environment_for
from harness.tokens import token
from harness.waiting import PATIENCE_SECONDS, Failed, seconds_until, wait_until
from witnesses import (
    HANG_SECONDS, TIMES, Budget, Client, Listeners, Load, Log, Refusal, Stream, Traveller, check_refusal, judge_load,
    judge_stream, judge_streams,
)

DATABASE = "bellhop"
# The service and its streams recover from an outage in this time. Only runs with --within-ms check it.
RECOVERY_SECONDS = 5
# Not secret: the database exists only during this process and listens only on this machine.
OWNER_PASSWORD, SERVICE_PASSWORD = "owner-of-a-day", "service-of-a-day"


class Replica(Service):
    """One of the equal processes on the database."""

    def __init__(self, name, binary, folder, secret, settings):
        super().__init__(binary, folder)
        self.name = name
        self.log_path = folder / f"replica-{name}.log"
        self.secret = secret
        self.environment.update(
            # These users do more than people would, and post scores. The limits have separate tests.
            BELLHOP_JWT_SECRET=secret, BELLHOP_RATE_LIMIT_USER="0", BELLHOP_SELF_DECLARED="true",
            BELLHOP_STREAMS_PER_USER_MAX="1000", **settings
        )


class Stage:
    """The database, and the checks that all scenarios use."""

    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.secret = base64.b64encode(os.urandom(32)).decode()
        self.cluster = postgres.Cluster(folder)
        self.clusters = [self.cluster]
        self.replicas = []

    # MARK: Setup

    def build(self):
        self.cluster.create()
        self.cluster.start()
        self.cluster.sql(
            f"""CREATE ROLE keeper LOGIN CREATEROLE PASSWORD '{OWNER_PASSWORD}';
            CREATE ROLE guest LOGIN;
            CREATE DATABASE {DATABASE} OWNER keeper"""
        )
        self.cluster.sql("GRANT ALL ON SCHEMA public TO keeper", DATABASE)
        # As in a deployment, where every replica migrates at its start, at the same time.
        commands = [self.spawn("migrate", "--database", self.owner_url()) for _ in range(4)]
        for command in commands:
            printed, _ = command.communicate(timeout=PATIENCE_SECONDS)
            if command.returncode != 0:
                raise Failed(f"bellhop migrate ended with {command.returncode}: {printed}")
        self.cluster.sql(f"CREATE ROLE bellhop LOGIN PASSWORD '{SERVICE_PASSWORD}' IN ROLE bellhop_service")

    def spawn(self, *arguments, **settings):
        environment = environment_for(BELLHOP_JWT_SECRET=self.secret, **settings)
        return subprocess.Popen(
            [self.options.binary, *arguments], env=environment, cwd=self.folder, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )

    def owner_url(self):
        return postgres.url("keeper", OWNER_PASSWORD, DATABASE, self.cluster.port)

    def service_url(self, *ports):
        return postgres.url("bellhop", SERVICE_PASSWORD, DATABASE, *(ports or (self.cluster.port,)))

    @contextlib.contextmanager
    def running(self, **settings):
        """Runs two replicas and stops them at the end; they must also stop cleanly."""
        settings = {"BELLHOP_DATABASE": self.service_url(), **settings}
        database = settings["BELLHOP_DATABASE"]
        self.replicas = [
            Replica(name, self.options.binary, self.folder, self.secret, {
                **settings, "BELLHOP_DATABASE": postgres.with_parameter(database, f"application_name=bellhop-{name}"),
            }) for name in "AB"
        ]
        try:
            for replica in self.replicas:
                replica.start()
            IDS.learn(self.cluster.sql(SECRET_POSTGRES, DATABASE))
            yield self.replicas
            for replica in self.replicas:
                replica.stop()
        finally:
            for replica in self.replicas:
                if replica.process is not None and replica.process.poll() is None:
                    replica.kill()

    def tear_down(self):
        for cluster in self.clusters:
            with contextlib.suppress(postgres.Trouble, subprocess.SubprocessError):
                cluster.stop()

    # MARK: State of the database

    def log(self):
        return Log(self.cluster.rows(
            f"SELECT json_build_array({Log.COLUMNS}) FROM events ORDER BY sequence", DATABASE
        ))

    def epoch(self):
        return self.cluster.sql("SELECT epoch FROM event_epochs", DATABASE)

    def newest(self, users):
        """Returns the sequence of each user's newest event."""
        rows = self.cluster.rows(
            "SELECT json_build_array(audience, max(sequence)) FROM events WHERE audience LIKE 'user:%' GROUP BY audience",
            DATABASE,
        )
        newest = {audience[5:]: sequence for audience, sequence in rows}
        return {user: newest.get(user, 0) for user in users}

    def wait_until_told(self, listeners, what="every stream to tell what happened"):
        """Waits until the streams have received everything up to the current end of the log; returns the seconds that
        this took."""
        newest = self.newest({stream.user for stream in listeners.streams})
        behind = [stream for stream in listeners.streams if stream.last_sequence < newest[stream.user]]

        def is_told():
            behind[:] = [stream for stream in behind if stream.last_sequence < newest[stream.user]]
            return not behind

        try:
            return seconds_until(is_told, what, listeners.problems)
        except Failed as problem:
            if listeners.problems:
                raise
            shown = [(s.user, s.replica.name, s.last_sequence, newest[s.user]) for s in behind[:5]]
            raise Failed(f"{problem}: {len(behind)} of {len(listeners.streams)} are behind, such as {shown}") from None

    def streams(self, users, replicas, choose=None):
        return [
            Stream(user, token(self.secret, user), replica, choose and choose(replica))
            for user in users for replica in replicas
        ]

    def judge(self, load, listeners, must_be_whole=True, earlier=()):
        """Checks everything that must hold at the end of a load, whatever failed during it; returns the number of
        reported gaps."""
        log = self.log()
        judge_load(load, log)
        gaps = judge_streams(listeners, log, self.epoch(), must_be_whole, earlier)
        self.check_rows(load)
        self.check_badges(load)
        return gaps

    def judge_crowd(self, people, listeners):
        """Checks a crowd after its play, when its streams have received everything."""
        self.wait_until_told(listeners)
        log = self.log()
        judge_streams(listeners, log, self.epoch())
        crowd.judge_talk(people, log)
        self.check()

    def check_rows(self, load):
        """Checks that every acknowledged event has exactly one row, including events whose notification was evicted."""
        rows = self.cluster.rows(
            "SELECT json_build_array(user_id, event_id) FROM notifications WHERE event_id IS NOT NULL", DATABASE
        )
        kept = {(user, event) for user, event in rows}
        for user, events in load.events.items():
            if lost := {event for event in events if (user, event) not in kept}:
                raise Failed(f"{user}: acknowledged, and not in the database: {sorted(lost)[:5]}")

    def check_badges(self, load):
        """Compares the stored counts, the recounted ones, and those that both replicas return."""
        recounted = self.cluster.rows(
            """SELECT json_build_array(
                user_id,
                (SELECT count(*) FROM user_requests
                    WHERE to_user_id = notifications.user_id AND status = 'open' AND user_requests.seen_at IS NULL),
                count(*) FILTER (WHERE seen_at IS NULL AND category <> 'message' AND request_id IS NULL),
                count(*)
            ) FROM notifications WHERE removed_at IS NULL GROUP BY user_id""",
            DATABASE,
        )
        recounted = {user: counts for user, *counts in recounted}
        kept = {user: count for user, count in self.cluster.rows(
            "SELECT json_build_array(user_id, kept) FROM inboxes", DATABASE)}
        client = Client(self.replicas)
        try:
            for user in load.users:
                requests, bell, count = recounted.get(user, (0, 0, 0))
                if kept.get(user, 0) != count:
                    raise Failed(f"{user} keeps {count} notifications, counted as {kept.get(user, 0)}")
                for replica in self.replicas:
                    status, _, content = client.ask(replica, "GET", "/v1/badges", load.bearers[user])
                    if status != 200:
                        raise Failed(f"GET /v1/badges at {replica.name} answered {status}: {content[:300]!r}")
                    told = json.loads(content)
                    if (told["requests"], told["bell"]) != (requests, bell):
                        raise Failed(f"{user} has {requests} requests and {bell} in the bell, and {replica.name} tells {told}")
        finally:
            client.close()

    def check(self):
        """Runs the service's own recount."""
        check = self.spawn("check", "--database", self.owner_url())
        printed, _ = check.communicate(timeout=PATIENCE_SECONDS)
        if check.returncode != 0:
            raise Failed(f"bellhop check ended with {check.returncode}: {printed.strip()}")

    # MARK: Health

    def wait_until_missed(self, replica):
        """Waits until PostgreSQL has ended the sessions of a killed replica. After this, its statements are either done
        or will never run."""
        sessions = f"SELECT count(*) FROM pg_stat_activity WHERE application_name = 'bellhop-{replica.name}'"
        wait_until(lambda: self.cluster.sql(sessions) == "0", "PostgreSQL to miss the killed")

    def status(self, replica, path="/readyz"):
        try:
            return replica.request("GET", path, None)[0]
        except (OSError, http.client.HTTPException) as problem:
            raise Failed(f"{path} of {replica.name}: {problem!r}") from None

    def wait_until_ready(self, is_ready, what):
        """Waits until /readyz of all replicas is positive; /healthz must stay positive all the time."""
        wanted = 200 if is_ready else 503

        def says_so():
            for replica in self.replicas:
                if (alive := self.status(replica, "/healthz")) != 200:
                    raise Failed(f"/healthz of {replica.name} says {alive}")
            return all(self.status(replica) == wanted for replica in self.replicas)

        return seconds_until(says_so, what)


def users_of(scenario, count):
    return [f"{scenario}-{number}" for number in range(count)]


# MARK: Scenarios. Each returns one line about its result and raises an error for a difference.


def crosswise(stage, scenario="crosswise", count=50, rounds=None, **settings):
    """Writers on both replicas, and a stream of every user on each of them."""
    users = users_of(scenario, count)
    # With this timeout a slow machine does not lead to refusals.
    with stage.running(BELLHOP_DATABASE_TIMEOUT_SECONDS="60", **settings) as replicas:
        with Listeners(stage.streams(users, replicas)) as listeners:
            with Load(replicas, users, f"{stage.options.seed}-{scenario}") as load:
                load.wait_for(1000 * (rounds or stage.options.rounds))
            stage.wait_until_told(listeners)
            if listeners.breaks or listeners.refusals or load.refusals:
                raise Failed(f"{listeners.breaks} streams broke, {load.refusals} requests were refused, for no reason")
        stage.judge(load, listeners)
        told = sum(len(c.facts) for stream in listeners.streams for c in stream.connections)
        return f"{load.acknowledged} writes on 2 replicas, {told} events on {len(listeners.streams)} streams"


def reconnections(stage):
    """Streams that break at random moments and resume on any replica."""
    users = users_of("reconnections", 40)
    seed = f"{stage.options.seed}-reconnections"
    # First a log whose oldest events are pruned. The replicas prune it every 10 s.
    with stage.running(BELLHOP_EVENTS_KEPT_MAX="1000") as replicas:
        with Load(replicas, users, f"{seed}-first") as load:
            load.wait_for(1000)
        oldest = "SELECT coalesce(min(sequence), 0) FROM events"
        wait_until(lambda: int(stage.cluster.sql(oldest, DATABASE)) > 200, "the log's beginning to be forgotten")
    with stage.running() as replicas:
        first = int(stage.cluster.sql(Log.FIRST, DATABASE))
        budget = Budget(stage.options.reconnections)
        travellers = [
            Traveller(
                user, token(stage.secret, user), replicas, random.Random(f"{seed}-{number}"), budget, range(first - 1)
            )
            for number, user in enumerate(users * 3)
        ]
        start = time.monotonic()
        with Listeners(travellers) as listeners:
            with Load(replicas, users, seed, writers=3) as later:
                # Each tenth has the timeout of one wait, so that the test requires progress and not speed.
                for tenth in range(9, -1, -1):
                    left = tenth * stage.options.reconnections // 10
                    wait_until(
                        lambda left=left: budget.left <= left or later.problems,
                        f"{stage.options.reconnections} reconnections", listeners.problems,
                    )
            took = time.monotonic() - start
            wait_until(
                lambda: all(t.is_ready and t.closes_at is None for t in travellers), "the last connections to open",
                problems=listeners.problems,
            )
            stage.wait_until_told(listeners)
        gaps = judge_pruned(stage, load, later, listeners)
        connections = sum(len(traveller.connections) for traveller in travellers)
        return f"{connections} connections in {took:.0f} s, {later.acknowledged} writes meanwhile, {gaps} gaps told"


def judge_pruned(stage, earlier, later, listeners):
    """Does what `Stage.judge` does, for a log whose oldest events are pruned: only the rows show what was written then."""
    log = stage.log()
    epoch = stage.epoch()
    gaps = sum(judge_stream(stream, log, epoch) for stream in listeners.streams)
    log.check_counts()
    judge_load(later, log, is_all=False)
    stage.check_rows(earlier)
    stage.check_rows(later)
    stage.check_badges(later)
    return gaps


def killed(stage):
    """A replica is killed in the middle of its work; its streams continue on the other."""
    users = users_of("killed", 20)
    choices = random.Random(f"{stage.options.seed}-killed")
    with stage.running() as replicas:
        alive = set(replicas)
        with Listeners(stage.streams(users, replicas, prefer_living_replica(alive))) as listeners:
            with Load(replicas, users, f"{stage.options.seed}-killed", may_break=True) as load:
                for turn in range(2 * stage.options.rounds):
                    load.wait_for(choices.randint(50, 200))
                    victim = replicas[turn % 2]
                    alive.discard(victim)
                    victim.kill()
                    load.wait_for(choices.randint(20, 100))
                    victim.start()
                    alive.add(victim)
                load.wait_for(100)
            stage.wait_until_told(listeners)
            if listeners.breaks == 0:
                raise Failed("no stream noticed that its replica was killed")
        stage.judge(load, listeners)
        return (
            f"{2 * stage.options.rounds} kills, {load.acknowledged} writes, {load.breaks} answers lost and asked for "
            "again, "
            f"{sum(len(stream.connections) - 1 for stream in listeners.streams)} resumptions"
        )


def prefer_living_replica(alive):
    """Returns a function that chooses a stream's replica: the current one while it is alive, else another."""

    def elsewhere(replica):
        place = {"at": replica}

        def choose():
            if place["at"] not in alive:
                place["at"] = next(iter(alive))
            return place["at"]

        return choose

    return elsewhere


def crowded(stage):
    """Messages, scores, votes and likes, while replicas are killed one after another, and sometimes PostgreSQL under
    the remaining one."""
    with stage.running() as replicas:
        alive = set(replicas)
        people = crowd.Crowd(replicas, "crowd", stage.options.seed)
        choices = random.Random(f"{stage.options.seed}-crowd-restarts")

        def kill(blow):
            alive.discard(blow.victim)
            people.strike(blow)
            stage.wait_until_missed(blow.victim)
            if choices.random() < 0.25:
                stage.cluster.stop("immediate")
                stage.cluster.start()
            blow.victim.start()
            alive.add(blow.victim)
            took = stage.wait_until_ready(True, "/readyz to tell that both replicas are there")
            TIMES.note("the readiness of both replicas", took, RECOVERY_SECONDS)

        with Listeners(stage.streams(people.users, replicas, prefer_living_replica(alive))) as listeners:
            line = crowd.play(people, listeners, 6 * stage.options.rounds, kill)
            stage.judge_crowd(people, listeners)
        return line


def storm(stage):
    """Everything at the same time: streams come and go, replicas are killed, and PostgreSQL is restarted."""
    users = users_of("storm", 30)
    seed = f"{stage.options.seed}-storm"
    choices = random.Random(seed)
    turns = 3 * stage.options.rounds
    with stage.running() as replicas:
        # More than there is time for: they continue until the last round is over.
        budget = Budget(sys.maxsize)
        travellers = [
            Traveller(user, token(stage.secret, user), replicas, random.Random(f"{seed}-{number}"), budget, ())
            for number, user in enumerate(users * 2)
        ]
        with Listeners(travellers) as listeners:
            with Load(replicas, users, seed, may_break=True) as load:
                for _ in range(turns):
                    load.wait_for(choices.randint(20, 120))
                    victims = choices.choice([replicas[:1], replicas[1:], [], replicas])
                    for victim in victims:
                        victim.kill()
                    if choices.random() < 0.5 or not victims:
                        stage.cluster.stop("immediate")
                        stage.cluster.start()
                    for victim in victims:
                        victim.start()
                load.wait_for(50)
                budget.left = 0
                load.wait_for(50)
            wait_until(
                lambda: all(t.is_ready and t.closes_at is None for t in travellers), "the last connections to open",
                problems=listeners.problems,
            )
            stage.wait_until_told(listeners)
        gaps = stage.judge(load, listeners, must_be_whole=False)
        stage.check()
        return (
            f"{turns} blows, {load.acknowledged} writes, {load.breaks} answers lost and {load.refusals} refused, "
            f"{sum(len(traveller.connections) for traveller in travellers)} connections, {gaps} gaps told"
        )


def long_transactions(stage):
    """Long transactions must not delay requests that do not need their rows."""
    users = users_of("long", 20)
    with stage.running() as replicas:
        with Listeners(stage.streams(users, replicas)) as listeners:
            with Load(replicas, users, f"{stage.options.seed}-long") as load:
                load.wait_for(100)
                waited = beside_open_transactions(stage, load, listeners)
                crossed = across_held_row(stage, load, listeners)
                in_deadlock(stage, load, listeners)
                behind_held_counter(stage, load)
                load.wait_for(100)
            stage.wait_until_told(listeners)
            if listeners.breaks:
                raise Failed(f"{listeners.breaks} streams broke")
        stage.judge(load, listeners)
        return (
            f"{load.acknowledged} writes; told {waited * 1000:.0f} ms late beside open transactions; {crossed} crossed a "
            "held row; 1 deadlock"
        )


def beside_open_transactions(stage, load, listeners):
    """While an older writing transaction on other rows is open, events are delivered as usual. When it commits, its
    events are not skipped."""
    badges = "INSERT INTO badges (tenant, user_id, messages, requests, bell, version, updated_at)"
    with postgres.Session(stage.cluster, DATABASE) as elsewhere, postgres.Session(stage.cluster, DATABASE) as same:
        with postgres.Session(stage.cluster, DATABASE) as reader:
            elsewhere.run("BEGIN; CREATE TABLE elsewhere (number integer); INSERT INTO elsewhere VALUES (1)")
            same.run(f"BEGIN; {badges} VALUES ('default', 'nobody', 0, 0, 0, 1, 0)")
            reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM events")
            load.wait_for(300)
            # The transactions stay open until the streams have received everything.
            waited = stage.wait_until_told(listeners, "events to be told beside open transactions")
            TIMES.note("telling events beside open transactions", waited, 2)
            same.run("COMMIT")
            load.wait_for(50)
            elsewhere.run("COMMIT")
            load.wait_for(50)
            reader.run("COMMIT")
    stage.cluster.sql("DROP TABLE elsewhere; DELETE FROM badges WHERE user_id = 'nobody'", DATABASE)
    return waited


@contextlib.contextmanager
def holding(stage, load, name):
    """Runs a session that locks a user's counts, and a write of that user that waits for them in the middle of its
    transaction."""
    user = load.users[0]
    with postgres.Session(stage.cluster, DATABASE) as holder:
        # The service, and not this session, is the victim of a deadlock.
        process = holder.run("SET deadlock_timeout = '30s'; SELECT pg_backend_pid()")
        writer = threading.Thread(target=load.write_event, args=(user, f"{name}-{stage.options.seed}"), daemon=True)
        # The others begin once this write waits at this row.
        with load.paused():
            holder.run(f"BEGIN; SELECT 1 FROM badges WHERE user_id = '{user}' FOR UPDATE")
            writer.start()
            waiting = f"SELECT count(*) FROM pg_stat_activity WHERE {process} = ANY (pg_blocking_pids(pid))"
            wait_until(
                lambda: stage.cluster.sql(waiting) != "0" or not writer.is_alive(), "a write to wait for the held row",
                problems=load.problems,
            )
        if not writer.is_alive():
            raise Failed("a write of a user did not wait for the user's counts")
        yield holder, user
        holder.run("COMMIT")
    writer.join(PATIENCE_SECONDS)


def across_held_row(stage, load, listeners):
    """A writer waits in the middle of its transaction for a user's row. Others overtake it, so it commits after
    transactions that began later. Returns how many overtook it."""
    before = load.acknowledged
    with holding(stage, load, "held"):
        load.wait_for(10)
    TIMES.note("telling events across a held row", stage.wait_until_told(listeners), RECOVERY_SECONDS)
    return load.acknowledged - before


def in_deadlock(stage, load, listeners):
    """PostgreSQL aborts a transaction of the service because of a deadlock. The service runs it again, or asks the
    sender to retry."""

    def deadlocks():
        return stage.cluster.log_path.read_text(errors="replace").count("deadlock detected")

    before = deadlocks()
    for attempt in range(5):
        with holding(stage, load, f"deadlock-{attempt}") as (holder, user):
            holder.run(f"SELECT 1 FROM inboxes WHERE user_id = '{user}' FOR UPDATE")
        # PostgreSQL checks for a deadlock once, a second after a wait has begun. A busy machine may be too late to
        # complete the deadlock by then.
        if deadlocks() > before:
            break
    else:
        raise Failed("PostgreSQL told of no deadlock")
    TIMES.note("telling events after a deadlock", stage.wait_until_told(listeners), RECOVERY_SECONDS)


def behind_held_counter(stage, load):
    """Locks the one row that every write needs. Writes wait or are refused, and continue when it is unlocked."""
    with postgres.Session(stage.cluster, DATABASE) as holder:
        holder.run("BEGIN; SELECT * FROM event_counter FOR UPDATE")
        user = load.users[0]
        client = Client(load.replicas)
        for replica in load.replicas:
            status, _, content = client.ask(replica, "GET", "/v1/badges", load.bearers[user])
            if status != 200:
                raise Failed(f"reading waits for a writer: {status} {content[:300]!r}")
        client.close()
        holder.run("COMMIT")
    TIMES.note("20 writes after the counter was free", load.wait_for(20), RECOVERY_SECONDS)


def restarts(stage):
    """PostgreSQL is restarted during the load, and its sessions are terminated."""
    users = users_of("restarts", 30)
    recoveries = []
    with stage.running() as replicas, contextlib.ExitStack() as stack:
        with Listeners(stage.streams(users, replicas)) as listeners:
            with Load(replicas, users, f"{stage.options.seed}-restarts") as load:
                load.wait_for(200)
                for turn in range(stage.options.rounds):
                    # The first outage is long enough for all clients to notice; the later ones are as short as
                    # possible.
                    stage.cluster.stop("immediate")
                    if turn == 0:
                        away(stage, load)
                        late = stack.enter_context(latecomers(listeners))
                    stage.cluster.start()
                    recoveries.append(back(stage, load, listeners))
                    if turn == 0:
                        took = seconds_until(
                            lambda: all(stream.is_ready for stream in late.streams),
                            "streams that came without a database", late.problems,
                        )
                        TIMES.note("opening streams that came without a database", took, RECOVERY_SECONDS)
                    load.wait_for(100)
                    # As administrators do it. This also terminates the sessions that only listen.
                    stage.cluster.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'bellhop'")
                    recoveries.append(back(stage, load, listeners))
                    load.wait_for(50)
            stage.wait_until_told(listeners)
            stage.wait_until_told(late)
            same_connections(listeners)
        stage.judge(load, listeners)
        log, epoch = stage.log(), stage.epoch()
        if any(judge_stream(stream, log, epoch) for stream in late.streams):
            raise Failed("streams that came without a database were told of a gap")
        stage.check()
        return outage(load, recoveries, "restarts and ended sessions")


def away(stage, load):
    """Stops PostgreSQL until this returns. Every replica must refuse requests in the meantime and give the reason."""
    TIMES.note("noticing that the database is away", stage.wait_until_ready(False, "/readyz to tell of it"), HANG_SECONDS)

    def ask(replica, method, path, body):
        client = Client([replica])
        try:
            status, headers, content = client.request(replica, method, path, load.backend, body)
            with contextlib.suppress(Refusal):
                check_refusal(status, headers, content, f"{method} {path} at {replica.name}, without a database,")
        finally:
            client.close()

    before = load.refusals
    at_once(*(
        lambda replica=replica, question=question: ask(replica, *question)
        for replica in stage.replicas for question in (
            ("GET", "/v1/notifications", None),
            ("POST", "/v1/events", {"id": "away", "type": "auth.login", "userId": load.users[0], "data": {}}),
            ("POST", "/v1/stream-tickets", None),
        )
    ))
    wait_until(lambda: load.refusals > before, "requests to be refused", load.problems)


def back(stage, load, listeners):
    """Checks that both replicas write and are ready and that their streams catch up. Returns the seconds."""
    start = time.monotonic()
    load.wait_for_all(start, "both replicas to write again")
    stage.wait_until_ready(True, "/readyz to tell that the database is back")
    stage.wait_until_told(listeners, "the streams to catch up")
    return TIMES.note("the recovery", time.monotonic() - start, RECOVERY_SECONDS)


def latecomers(listeners):
    """Streams that resume without a database may be refused or held, but must recover once it is back."""
    return Listeners(
        [Stream(one.user, one.bearer, one.replica, cursor=one.cursor) for one in listeners.streams[:10]], waits=False
    )


def same_connections(listeners):
    """Checks that streams survive the absence of the database."""
    broken = [stream for stream in listeners.streams if len(stream.connections) != 1 or stream.breaks]
    if broken:
        stream = broken[0]
        raise Failed(
            f"{len(broken)} of {len(listeners.streams)} streams did not stay open, such as {stream.user} at "
            f"{stream.replica.name}: {stream.connections[0].closing}"
        )


def outage(load, recoveries, what):
    return (
        f"{len(recoveries)} {what}, back after {max(recoveries):.1f} s at most, {load.acknowledged} writes, "
        f"{load.refusals} refused meanwhile, the slowest answer after {load.slowest:.1f} s"
    )


def failover(stage):
    """PostgreSQL is lost, and its standby takes over on another port. The log gets another epoch. A replica cannot know
    which events others have published, so every stream is notified, even if nothing was lost."""
    users = users_of("failover", 20)
    standby = stage.cluster.make_standby()
    stage.clusters.append(standby)
    with stage.running(BELLHOP_DATABASE=stage.service_url(stage.cluster.port, standby.port)) as replicas:
        with Listeners(stage.streams(users, replicas)) as listeners:
            with Load(replicas, users, f"{stage.options.seed}-failover") as load:
                load.wait_for(200)
                before = stage.epoch()
                cut_off(stage, load)
                # At once, while replicas are still checking the outcome of their last transactions.
                standby.promote()
                stage.cluster = standby
                recovery = back(stage, load, listeners)
                load.wait_for(100)
            stage.wait_until_told(listeners)
            wait_until(lambda: not streams_without_epoch(listeners, before), "every stream to be told of the new epoch")
        expect_one_line("another database server took over", replicas)
        gaps = stage.judge(load, listeners, must_be_whole=False, earlier=(before,))
        stage.check()
        return f"{outage(load, [recovery], 'failover')}; {gaps} streams told of the new epoch"


def expect_one_line(text, replicas):
    """Checks that the replicas logged a message once in total."""
    lines = [line for replica in replicas for line in replica.log().splitlines() if text in line]
    if len(lines) != 1:
        raise Failed(f"{len(lines)} log lines, not 1, contain “{text}”")


def streams_without_epoch(listeners, epoch):
    """Returns the streams that are still in this epoch or never received a resync with the reason `epoch`."""
    marks = [[mark for connection in stream.connections for mark in connection.marks] for stream in listeners.streams]
    return [own for own in marks if not own or own[-1][1] == epoch or "epoch" not in {mark[3] for mark in own}]


def frozen(stage):
    """PostgreSQL is suspended: every request is refused until it continues."""
    users = users_of("frozen", 15)
    with stage.running(BELLHOP_DATABASE_TIMEOUT_SECONDS="1") as replicas:
        with Listeners(stage.streams(users, replicas)) as listeners:
            with Load(replicas, users, f"{stage.options.seed}-frozen") as load:
                load.wait_for(200)
                with stage.cluster.frozen():
                    away(stage, load)
                recoveries = [back(stage, load, listeners)]
                load.wait_for(100)
                # A short suspension: the service may refuse requests or outlast it.
                for _ in range(stage.options.rounds):
                    with stage.cluster.frozen():
                        time.sleep(0.5)
                    recoveries.append(back(stage, load, listeners))
                    load.wait_for(50)
            stage.wait_until_told(listeners)
            same_connections(listeners)
        stage.judge(load, listeners)
        stage.check()
        return outage(load, recoveries, "standstills")


def erased(stage):
    """Users are erased on one replica while the other one is suspended, and writers go on."""
    # So many that no user gets more notifications than an inbox remembers: `check_rows` wants them all.
    users = users_of("erased", 100)
    turns = min(stage.options.rounds, 3)
    with stage.running() as (working, suspended):
        with Listeners(stage.streams(users[:10], [suspended])) as listeners:
            with Load([working], users, f"{stage.options.seed}-erased") as load:
                load.wait_for(50)
                slowest = max(
                    behind.erase(stage, working, suspended, f"leaving-{turn}", listeners) for turn in range(turns))
                load.wait_for(50)
            stage.wait_until_told(listeners)
        stage.check_rows(load)
        stage.check_badges(load)
        stage.check()
        return (
            f"{turns} users erased beside {load.acknowledged} writes; the suspended replica refused their tokens and told "
            f"its streams {slowest * 1000:.0f} ms after it continued at most"
        )


def cut_off(stage, load):
    """Stops the server at the worst moment: commits wait for a standby that has not received them. They are lost, and
    no client got a response. The standby assigns the numbers of their transactions to others."""
    sender = int(stage.cluster.sql("SELECT pid FROM pg_stat_replication"))
    # Between requests, so that the standby knows nothing of the transactions that follow.
    with load.paused():
        os.kill(sender, signal.SIGSTOP)
    stopping = threading.Thread(target=stage.cluster.stop, daemon=True)
    waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND usename = 'bellhop'"
    try:
        wait_until(lambda: stage.cluster.sql(waiting), "a commit to wait for the standby")
        backends = stage.cluster.sql(waiting).split()
        stopping.start()
        wait_until(lambda: not any(map(is_running, backends)), "PostgreSQL to end its sessions")
    finally:
        # A suspended process cannot be stopped otherwise.
        with contextlib.suppress(ProcessLookupError):
            os.kill(sender, signal.SIGKILL)
    stopping.join(PATIENCE_SECONDS)


def is_running(process):
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def outlived(stage, name, trouble, **settings):
    """Runs writers and streams before, during and after a failure; returns the load, the result of the failure and the
    recovery time."""
    users = users_of(name, 10)
    with stage.running(**settings) as replicas:
        with Listeners(stage.streams(users, replicas)) as listeners:
            with Load(replicas, users, f"{stage.options.seed}-{name}", writers=4) as load:
                load.wait_for(100)
                told = trouble(stage, load)
                recovery = back(stage, load, listeners)
                load.wait_for(100)
            stage.wait_until_told(listeners)
            same_connections(listeners)
        stage.judge(load, listeners)
        stage.check()
    return load, told, recovery


def exhausted(stage):
    """Other clients take all connections."""
    load, eaten, recovery = outlived(stage, "exhausted", starve)
    return outage(load, [recovery], f"time without connections, {eaten} taken by others")


def locked(stage):
    """A table is locked for longer than the timeout of a query."""
    load, told, recovery = outlived(stage, "locked", lock_out, BELLHOP_DATABASE_TIMEOUT_SECONDS="1")
    return f"{told}; {outage(load, [recovery], 'locked table')}"


def starve(stage, load):
    with postgres.Eater(stage.cluster, "guest", DATABASE) as eater:

        def is_starved():
            eater.eat()
            stage.cluster.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'bellhop'")
            eater.eat()
            return len(eater.held) == stage.cluster.connections

        wait_until(is_starved, "the replicas to lose their connections", problems=load.problems)
        away(stage, load)
        return len(eater.held)


def lock_out(stage, load):
    """Keeps a table locked until every request that needs it was refused. The service refuses them together. One client
    of each replica, which retries after each refusal, counts how many timeouts this takes.
    """
    bearer = load.bearers[load.users[0]]
    writes = 24
    is_over = threading.Event()
    refusals = []

    def ask(replica, method, path, bearer, body):
        client = Client([replica])
        try:
            status, headers, content = client.request(replica, method, path, bearer, body)
            with contextlib.suppress(Refusal):
                check_refusal(status, headers, content, f"{method} {path} at {replica.name}, with the table locked,")
            return client.slowest
        finally:
            client.close()

    def count(replica):
        number = 0
        while not is_over.is_set():
            ask(replica, "GET", "/v1/notifications", bearer, None)
            number += 1
        refusals.append(number)

    def questions(replica):
        for number in range(12):
            yield replica, "GET", "/v1/notifications", bearer, None
        for number in range(writes):
            body = {"id": f"locked-out-{number}", "type": "auth.login", "userId": f"nobody-{number}", "data": {}}
            yield replica, "POST", "/v1/events", load.backend, body

    def ask_all():
        try:
            asked = [question for replica in stage.replicas for question in questions(replica)]
            return max(at_once(*(lambda question=question: ask(*question) for question in asked)))
        finally:
            is_over.set()

    with postgres.Session(stage.cluster, DATABASE) as holder:
        holder.run("BEGIN; LOCK TABLE notifications IN ACCESS EXCLUSIVE MODE")
        slowest, *_ = at_once(ask_all, *(lambda replica=replica: count(replica) for replica in stage.replicas))
        for replica in stage.replicas:
            if (alive := stage.status(replica, "/healthz")) != 200:
                raise Failed(f"/healthz of {replica.name} says {alive} because a table is locked")
        holder.run("COMMIT")
    # If the service refused writes one after another, the number of timeouts would equal the number of writes.
    if max(refusals) > writes / 2:
        raise Failed(f"refusing {writes} writes at each replica took as long as {max(refusals)} refusals in a row")
    TIMES.note("the last refusal with a timeout of 1 s", slowest, writes / 2)
    return f"{writes} writes refused at each replica during {max(refusals)} refusals in a row, after {slowest:.1f} s at most"


def pgbouncer(stage):
    """The same load through PgBouncer in transaction mode, with fewer connections than the replicas would use. Then
    PgBouncer and the PostgreSQL behind it are restarted."""
    with postgres.Pooler(stage.cluster, DATABASE, "bellhop", SERVICE_PASSWORD, connections=4) as pooler:
        settings = {
            "BELLHOP_DATABASE": stage.service_url(pooler.port), "BELLHOP_DATABASE_POOLED": "true",
            "BELLHOP_DATABASE_LISTEN": stage.service_url(),
        }
        with counting_connections(stage) as taken:
            line = crosswise(stage, "pgbouncer", count=20, rounds=1, **settings)
        # Four for all queries, and one for LISTEN of each replica.
        if max(taken) > 6:
            raise Failed(f"{max(taken)} connections were open: not all went through PgBouncer")
        return f"{line}, on at most {max(taken)} connections; {pooler_restarts(stage, pooler, settings)}"


@contextlib.contextmanager
def counting_connections(stage):
    taken = []
    counting = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'bellhop'"
    is_over = threading.Event()

    def count():
        while not is_over.wait(0.2):
            taken.append(int(stage.cluster.sql(counting)))

    counter = threading.Thread(target=count, daemon=True)
    counter.start()
    try:
        yield taken
    finally:
        is_over.set()
        counter.join(PATIENCE_SECONDS)


def pooler_restarts(stage, pooler, settings):
    users = users_of("pooler", 10)
    recoveries = []
    with stage.running(**settings) as replicas:
        with Listeners(stage.streams(users, replicas)) as listeners:
            with Load(replicas, users, f"{stage.options.seed}-pooler") as load:
                load.wait_for(100)
                pooler.stop()
                away(stage, load)
                pooler.start()
                recoveries.append(back(stage, load, listeners))
                load.wait_for(50)
                stage.cluster.stop("immediate")
                away(stage, load)
                stage.cluster.start()
                recoveries.append(back(stage, load, listeners))
                load.wait_for(50)
            stage.wait_until_told(listeners)
            same_connections(listeners)
        stage.judge(load, listeners)
        return outage(load, recoveries, "outages of either")


# MARK: Guarantees across replicas


def across(stage):
    """An operation that begins on one replica continues on the other."""
    with stage.running() as replicas:
        client = Client(replicas)
        try:
            lines = [
                part(stage, client, *replicas)
                for part in (tickets, one_key_at_once, bookings, subscriptions, counts_elsewhere, revocations)
            ]
        finally:
            client.close()
        stage.check()
        return "; ".join(lines)


def call(client, replica, method, path, bearer, body=None, expect=200, **more):
    status, headers, content = client.ask(replica, method, path, bearer, body, **more)
    if status != expect:
        raise Failed(f"{method} {path} at {replica.name} answered {status}, not {expect}: {content[:300]!r}")
    return json.loads(content) if content else None, headers


def open_by(replica, ticket):
    """Returns the status of a request that opens a stream with a ticket."""
    with socket.create_connection(("127.0.0.1", replica.port), timeout=PATIENCE_SECONDS) as connection:
        connection.sendall(f"GET /v1/stream?ticket={ticket} HTTP/1.1\r\nHost: replica\r\n\r\n".encode())
        head = b""
        while b"\r\n" not in head:
            piece = connection.recv(4096)
            if not piece:
                raise Failed(f"{replica.name} broke the connection of a ticket")
            head += piece
        return int(head.split(b" ", 2)[1])


def at_once(*calls):
    """Runs all functions at the same moment; returns their results."""
    barrier = threading.Barrier(len(calls))
    results = [None] * len(calls)

    def run(place, one):
        barrier.wait()
        try:
            results[place] = one()
        except Exception as problem:  # Raised again by the calling thread.
            results[place] = problem

    threads = [threading.Thread(target=run, args=pair, daemon=True) for pair in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * PATIENCE_SECONDS)
        if thread.is_alive():
            raise Failed(f"a request was not answered in {2 * PATIENCE_SECONDS} s")
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results


def tickets(stage, client, a, b):
    bearer = token(stage.secret, "ticket-holder")
    for _ in range(5):
        ticket = call(client, a, "POST", "/v1/stream-tickets", bearer, expect=201)[0]["ticket"]
        statuses = [open_by(b, ticket), open_by(a, ticket), open_by(b, ticket)]
        if statuses != [200, 401, 401]:
            raise Failed(f"a ticket of A was taken at B, A, B with {statuses}")
    for _ in range(20):
        ticket = call(client, b, "POST", "/v1/stream-tickets", bearer, expect=201)[0]["ticket"]
        statuses = sorted(at_once(*(lambda r=r: open_by(r, ticket) for r in (a, b, a, b))))
        if statuses != [200, 401, 401, 401]:
            raise Failed(f"a ticket taken on both replicas at once was answered {statuses}")
    return "tickets open once"


def one_key_at_once(stage, client, a, b):
    """Sends the same request with the same key to both replicas at the same moment."""
    backend = token(stage.secret, "backend", "service_role")
    count = 40
    for number in range(count):
        body = {"userId": "key-holder", "category": "system", "priority": "LOW", "title": f"key-{number}", "message": "m"}

        def post(replica):
            own = Client([replica])
            try:
                status, _, content = own.ask(replica, "POST", "/v1/notifications", backend, body, f"key-{number}")
                return status, content
            finally:
                own.close()

        answers = at_once(*(lambda r=r: post(r) for r in (a, b, a, b)))
        if len(set(answers)) != 1 or answers[0][0] != 201:
            raise Failed(f"one key on both replicas was answered {answers}")
    made = stage.cluster.sql(
        """SELECT count(*) FROM events WHERE audience = 'user:key-holder'
        AND (name = 'notification:created' OR earlier LIKE '% notification:created %')""", DATABASE
    )
    if int(made) != count:
        raise Failed(f"{count} keys made {made} notifications")
    return f"{count} keys sent to both at once done once"


def bookings(stage, client, a, b):
    """Requests one barber's time on both replicas at the same moment: one request succeeds. Changes one version on
    both: one succeeds."""
    backend = token(stage.secret, "backend", "service_role")
    call(client, a, "PUT", "/v1/shops/twice", backend, {"name": "Twice", "timeZone": "UTC"}, 201)
    call(client, a, "PUT", "/v1/shops/twice/barbers/b1", backend, {"onDuty": True}, 201)
    customers = [token(stage.secret, f"customer-{number}") for number in range(6)]
    start = int(time.time()) // 3600 * 3600 + 86400

    def ask(replica, *request, **more):
        own = Client([replica])
        try:
            status, _, content = own.ask(replica, *request, **more)
            return status, json.loads(content)
        finally:
            own.close()

    count = 15
    for number in range(count):
        # Each overlaps all others, and no two begin at the same time.
        wishes = [
            {"shopId": "twice", "barberId": "b1", "service": "cut", "durationMinutes": 30, "scheduledStart":
             time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(start + number * 3600 + place * 60))}
            for place in range(len(customers))
        ]
        answers = at_once(*(
            lambda place=place: ask((a, b)[place % 2], "POST", "/v1/bookings", customers[place], wishes[place])
            for place in range(len(customers))
        ))
        statuses = sorted(status for status, _ in answers)
        if statuses != [201] + [409] * (len(customers) - 1):
            raise Failed(f"one time wanted by {len(customers)} on both replicas was answered {statuses}")
        made = next(body for status, body in answers if status == 201)
        path, known = f"/v1/bookings/{made['id']}", f'"{made["version"]}-{made["epoch"]}"'
        answers = at_once(*(
            lambda place=place: ask(
                (a, b)[place % 2], "PATCH", path, backend, {"durationMinutes": 20 + place}, headers={"If-Match": known}
            )
            for place in range(4)
        ))
        statuses = sorted(status for status, _ in answers)
        if statuses != [200, 412, 412, 412]:
            raise Failed(f"one version of a booking changed on both replicas at once was answered {statuses}")
    return f"{count} times booked once"


def subscriptions(stage, client, a, b):
    """Reads and changes the subscriptions of a stream on A through B."""
    backend = token(stage.secret, "backend", "service_role")
    bearer = token(stage.secret, "subscriber")
    call(client, a, "PUT", "/v1/shops/across", backend, {"name": "Across", "timeZone": "UTC"}, 201)
    call(client, a, "PUT", "/v1/shops/across/barbers/b1", backend, {"onDuty": True}, 201)
    stream = Stream("subscriber", bearer, a)
    with Listeners([stream]) as listeners:
        path = f"/v1/streams/{stream.stream_id}"
        told = call(client, b, "GET", f"{path}/subscriptions", bearer)[0]["topics"]
        if told != ["personal"]:
            raise Failed(f"B tells other topics of a stream of A: {told}")
        topics = {"topics": ["queue:across"]}
        told = call(client, b, "PUT", f"{path}/subscriptions", bearer, topics)[0]["topics"]
        if told != ["personal", "queue:across"]:
            raise Failed(f"B gave a stream of A the topics {told}")
        if call(client, a, "GET", f"{path}/subscriptions", bearer)[0]["topics"] != told:
            raise Failed("a change of topics through B did not reach A")
        # Another user has no access, on either replica.
        stranger = token(stage.secret, "stranger")
        for replica in (a, b):
            call(client, replica, "PUT", f"{path}/subscriptions", stranger, topics, 404)
        call(client, b, "POST", "/v1/shops/across/queue/entries", backend, {"service": "cut", "customerName": "Kim"}, 201)
        wait_until(
            lambda: any(fact.name == "queue:update" for fact in stream.connections[-1].facts),
            "the queue on a stream of A whose topics came by B", problems=listeners.problems,
        )
        renewed = token(stage.secret, "subscriber", app_metadata={"class_ids": ["c1"]})
        expires = call(client, b, "PUT", f"{path}/token", bearer, {"token": renewed})[0]["expiresAt"]
        wait_until(
            lambda: any(name == "stream:scope" for name, _ in stream.notices),
            f"the new scope on a stream of A whose token (until {expires}) came by B", problems=listeners.problems,
        )
        call(client, b, "GET", "/v1/streams/nowhere-0-0-0/subscriptions", bearer, expect=404)
        same_connections(listeners)
    return "streams changed through the other replica"


def counts_elsewhere(stage, client, a, b):
    """After A has changed a version, B no longer answers it with 304."""
    backend = token(stage.secret, "backend", "service_role")
    bearer = token(stage.secret, "poller")
    slowest = 0.0
    for number in range(10):
        writer, reader = (a, b) if number % 2 else (b, a)
        _, headers = call(client, reader, "GET", "/v1/badges", bearer)
        etag = {"If-None-Match": headers["etag"]}
        call(client, reader, "GET", "/v1/badges", bearer, expect=304, headers=etag)
        body = {"id": f"poll-{number}", "type": "auth.profile_updated", "userId": "poller", "data": {}}
        call(client, writer, "POST", "/v1/events", backend, body, 201)

        def is_new():
            status, _, content = client.ask(reader, "GET", "/v1/badges", bearer, headers=etag)
            if status not in (200, 304):
                raise Failed(f"GET /v1/badges at {reader.name} answered {status}: {content[:300]!r}")
            return status == 200

        took = seconds_until(is_new, f"{reader.name} to tell the counts that {writer.name} has changed")
        slowest = max(slowest, TIMES.note("telling counts that were changed elsewhere", took, 1))
    return f"counts changed elsewhere told within {slowest * 1000:.0f} ms"


def revocations(stage, client, a, b):
    """A revocation that is sent to one replica closes streams and refuses tokens on both."""
    backend = token(stage.secret, "backend", "service_role")
    slowest = 0.0
    for number, kind in enumerate(("jti", "session_id", "sub") * 2):
        name = f"revoked-{number}"
        bearer = token(stage.secret, name, **({} if kind == "sub" else {kind: name}))
        at, other = (a, b) if number % 2 else (b, a)
        streams = [Stream(name, bearer, replica, returns=False) for replica in (a, b)]
        with Listeners(streams) as listeners:
            moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 2))
            body = {
                "jti": {"tokenId": name}, "session_id": {"sessionId": name}, "sub": {"userId": name, "issuedBefore": moment}
            }[kind]
            call(client, at, "POST", "/v1/revocations", backend, body, 201)
            start = time.monotonic()
            wait_until(
                lambda: all(stream.connections[0].closing for stream in streams),
                f"a revocation by {kind} at {at.name} to close the streams", listeners.problems,
            )
            wait_until(
                lambda: client.request(other, "GET", "/v1/badges", bearer)[0] == 401,
                f"{other.name} to refuse a token revoked at {at.name}",
            )
            slowest = max(slowest, TIMES.note("a revocation", time.monotonic() - start, 1))
            reasons = [stream.connections[0].closing for stream in streams]
            if reasons != ["revoked", "revoked"]:
                raise Failed(f"revoked streams were closed as {reasons}")
    return f"revocations everywhere within {slowest * 1000:.0f} ms"


# MARK: Roles


def roles(stage):
    """The service's login sees nothing without a scope. With a login that could see more, the service does not start."""
    with stage.running() as replicas:
        users = users_of("roles", 5)
        with Load(replicas, users, f"{stage.options.seed}-roles", writers=2) as load:
            load.wait_for(50)
    secured = stage.cluster.rows(
        """SELECT json_build_array(relname, relforcerowsecurity) FROM pg_class
        WHERE relrowsecurity AND relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace ORDER BY relname""",
        DATABASE,
    )
    names = [name for name, _ in secured]
    if missing := {"notifications", "badges", "bookings", "booking_history", "preferences"} - set(names):
        raise Failed(f"no row-level security on {sorted(missing)}")
    if unforced := [name for name, is_forced in secured if not is_forced]:
        raise Failed(f"row-level security is not forced on {unforced}")
    blind(stage, names)
    refused = [refuses(stage, *login) for login in logins(stage)]
    # A database that was never migrated. The service's role cannot migrate it, and the error names the role that can.
    stage.cluster.sql("DROP DATABASE IF EXISTS untouched")
    stage.cluster.sql("CREATE DATABASE untouched OWNER keeper")
    refuses(stage, "bellhop", SERVICE_PASSWORD, "a role on a database without tables", r"bellhop migrate", "untouched")
    return f"{len(names)} tables show nothing without a scope; {len(refused)} logins refused"


def as_service(stage, statements, goes_on=False):
    """Runs statements by psql with the service's own login, over TCP as the service does.

    - goes_on: continues after errors and returns all output of psql, including errors.
    """
    done = subprocess.run(
        [postgres.program("psql"), "-XqAt", "-v", f"ON_ERROR_STOP={0 if goes_on else 1}", "-d",
         postgres.url("bellhop", SERVICE_PASSWORD, DATABASE, stage.cluster.port), "-f", "-"],
        input=statements, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE_SECONDS,
    )
    if goes_on and done.returncode != 0:
        raise Failed(f"psql as the service's login ended with {done.returncode}: {done.stdout[-500:]}")
    return done.stdout if goes_on else done


def rows_of(stage, tables):
    """Returns the number of rows in each table."""
    counts = " UNION ALL ".join(f"SELECT json_build_array('{table}', (SELECT count(*) FROM {table}))" for table in tables)
    return dict(stage.cluster.rows(counts, DATABASE))


def blind(stage, tables):
    there = rows_of(stage, tables)
    filled = sum(count > 0 for count in there.values())
    kinds = {
        "sees": "SELECT count(*) FROM {0}",
        "removed": "WITH gone AS (DELETE FROM {0} RETURNING 1) SELECT count(*) FROM gone",
    }
    asked = [(verb, table) for table in tables for verb in kinds]
    # One psql for all statements. It continues after an error and prints the statement of each answer.
    script = "".join(f"\\echo '# {verb} {table}'\n{kinds[verb].format(table)};\n" for verb, table in asked)
    answers = {}
    for part in as_service(stage, script, goes_on=True).split("# ")[1:]:
        question, _, answer = part.partition("\n")
        answers[tuple(question.split(" "))] = answer.strip()
    for verb, table in asked:
        answer = answers.get((verb, table), "no answer")
        # A table for which the role lacks permission shows nothing either.
        if answer != "0" and "permission denied" not in answer:
            raise Failed(f"the service's login, without a scope, {verb} rows of {table} ({there[table]}): {answer}")
    if changed := {table: count for table, count in rows_of(stage, tables).items() if count != there[table]}:
        raise Failed(f"rows were removed without a scope: {changed}")
    if filled < 2:
        raise Failed("there was nothing to be seen: this proves nothing")
    for statements in (
        "ALTER TABLE notifications DISABLE ROW LEVEL SECURITY", "ALTER TABLE notifications NO FORCE ROW LEVEL SECURITY",
        "CREATE POLICY anybody ON notifications USING (true)", "SET ROLE keeper", "SET SESSION AUTHORIZATION keeper",
        "CREATE TABLE public.own (number integer)", "TRUNCATE notifications",
        "INSERT INTO badges (tenant, user_id, messages, requests, bell, version, updated_at) "
        "VALUES ('default', 'forged', 0, 0, 9, 1, 0)",
    ):
        done = as_service(stage, statements)
        if done.returncode == 0 and "forged" not in statements:
            raise Failed(f"the service's login may do this: {statements}")
        if done.returncode == 0:
            raise Failed("the service's login wrote a user's row without a scope")


def logins(stage):
    """Returns logins that could see everything, each with its password."""
    stage.cluster.sql(
        """DROP ROLE IF EXISTS almighty, bypassing, heir;
        CREATE ROLE almighty LOGIN SUPERUSER PASSWORD 'p';
        CREATE ROLE bypassing LOGIN BYPASSRLS PASSWORD 'p' IN ROLE bellhop_service;
        CREATE ROLE heir LOGIN PASSWORD 'p' IN ROLE bellhop_service, keeper""",
        DATABASE,
    )
    return [
        ("keeper", OWNER_PASSWORD, "the owner of the tables"), ("almighty", "p", "a superuser"),
        ("bypassing", "p", "a role with BYPASSRLS"), ("heir", "p", "a member of the owner"),
    ]


def refuses(stage, user, password, what, advice=r"CREATE\s+ROLE", database=DATABASE):
    serve = stage.spawn(
        "serve", BELLHOP_DATABASE=postgres.url(user, password, database, stage.cluster.port), BELLHOP_PORT="0"
    )
    try:
        printed, _ = serve.communicate(timeout=PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        serve.kill()
        serve.communicate()
        raise Failed(f"bellhop serve runs as {what}") from None
    if serve.returncode == 0 or not re.search(advice, printed):
        raise Failed(f"bellhop serve as {what} ended with {serve.returncode}, saying: {printed.strip()[-1000:]}")
    return what


SCENARIOS = {
    "crosswise": crosswise, "reconnections": reconnections, "killed": killed, "crowd": crowded, "storm": storm, "long": long_transactions,
    "restarts": restarts, "frozen": frozen, "exhausted": exhausted, "locked": locked, "pgbouncer": pgbouncer,
    "across": across, "roles": roles, "erased": erased,
    # The last scenario, because afterwards the database runs elsewhere.
    "failover": failover,
}


# The scenarios of a quick run: one of each kind.
QUICK = ("crosswise", "killed", "long", "restarts", "locked", "across", "roles", "erased")


def play(stage, name):
    """Runs one scenario. Returns false if there is a difference."""
    start = time.monotonic()
    try:
        line = SCENARIOS[name](stage)
    except Exception as problem:  # An unexpected error must not hide the other scenarios.
        print(f"  {name}: DIFFERS after {time.monotonic() - start:.1f} s: {problem}", flush=True)
        if not isinstance(problem, (Failed, postgres.Trouble)):
            traceback.print_exc()
        for replica in stage.replicas:
            lines = replica.log().splitlines()
            trouble = [line for line in lines if re.search("warning|error|critical|fatal", line, re.I)]
            for line in trouble[-3:]:
                print(f"    {replica.name}: {line[:300]}", flush=True)
        return False
    print(f"  {name}: {line} ({time.monotonic() - start:.1f} s)", flush=True)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--reconnections", type=int, default=10000)
    parser.add_argument("--only", choices=SCENARIOS, nargs="+", action="extend", help="run only these scenarios")
    parser.add_argument("--quick", action="store_true", help=f"one round of {', '.join(QUICK)}")
    parser.add_argument("--within-ms", type=int, help="check times, on an idle machine: the service promises 1000")
    parser.add_argument("--keep", action="store_true", help="keep the folder with all logs")
    options = parser.parse_args()
    options.binary = os.path.abspath(options.binary)
    TIMES.within_ms = options.within_ms
    if options.quick:
        options.rounds, options.only = 1, options.only or QUICK
    names = options.only or list(SCENARIOS)
    print(f"replicas: seed {options.seed}, {options.rounds} rounds, {options.reconnections} reconnections", flush=True)
    # A terminated run stops its servers too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    folder = postgres.make_folder()
    stage = Stage(options, folder)
    is_well = False
    try:
        stage.build()
        is_well = all([play(stage, name) for name in names])
    except (Failed, postgres.Trouble) as problem:
        print(f"replicas: {problem}", flush=True)
    finally:
        stage.tear_down()
        if options.keep:
            print(f"replicas: the logs are in {folder}", flush=True)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    if not is_well:
        print(f"replicas: seed {options.seed}: differences", file=sys.stderr)
        return 1
    print(f"cases: {len(names)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
