"""Rows for a leaderboard of a million entries and a sorted set of Redis: each turn is one score with its rank, and the
entries around it.

One client sends sequential requests to both over one socket each, so the client's cost is the same. The service gets a
POST (committed, on disk, with the rank in its response) and a GET of the entries around it; Redis gets ZADD with
ZREVRANK, and ZREVRANGE."""

import json
import pathlib
import random
import shutil
import socket
import sqlite3
import statistics
import time
import uuid

from harness.ports import free_port

from .machine import WORK, Unavailable, say
from .processes import Server, required_metric, run_json
from .report import Row, at_most
from .servers import Bellhop, remove_database, token
from .turns import Servers

SIDE = 5  # neighbours on each side


def user(number):
    return f"user-{number:07d}"


class HTTPClient:
    """A keep-alive client over one socket; responses are read by their Content-Length."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""

    def ask(self, head, body=b""):
        self.socket.sendall(head + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body if body else head + b"\r\n\r\n")
        while b"\r\n\r\n" not in self.buffer:
            self._receive()
        answer, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        length = int(answer.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        while len(self.buffer) < length:
            self._receive()
        body, self.buffer = self.buffer[:length], self.buffer[length:]
        if not answer.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201")):
            raise Unavailable(f"{answer.splitlines()[0].decode()}: {body[:200].decode(errors='replace')}")
        return body

    def _receive(self):
        data = self.socket.recv(1 << 16)
        if not data:
            raise OSError("the server has closed the connection")
        self.buffer += data


class RedisClient:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def send(self, *commands):
        """Sends commands in one pipeline; returns their responses."""
        out = b""
        for words in commands:
            words = [str(word).encode() for word in words]
            out += b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
        self.socket.sendall(out)
        return [self._read() for _ in commands]

    def _read(self):
        line = self.file.readline()
        kind, rest = line[:1], line[1:-2]
        if kind in b":+":
            return rest
        if kind == b"$":
            length = int(rest)
            return None if length < 0 else self.file.read(length + 2)[:-2]
        if kind == b"*":
            return [self._read() for _ in range(int(rest))]
        raise Unavailable(f"redis: {line.decode(errors='replace').strip()}")


class Redis:
    """Redis without a log, as sorted sets are mostly used, or with one that is flushed for each write, like the
    service's."""

    def __init__(self, folder, is_durable):
        if not shutil.which("redis-server"):
            raise Unavailable("redis-server is not installed")
        self.folder, self.is_durable = folder, is_durable

    def start(self, cores):
        port = free_port()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        command = ["redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", self.folder, "--save", "",
                   "--appendonly", "yes" if self.is_durable else "no", "--appendfsync", "always", "--protected-mode", "no",
                   "--auto-aof-rewrite-percentage", "0"]
        return RedisServer(f"redis-{'durable' if self.is_durable else 'memory'}", command, cores, port)

    @staticmethod
    def fill(client, entries, scores):
        for start in range(0, entries, 5_000):
            words = ["ZADD", "board"]
            for number in range(start, min(start + 5_000, entries)):
                words += [scores[number], user(number)]
            client.send(words)


class RedisServer(Server):
    """Does not use HTTP: it is ready when it answers PING."""

    def _wait_ready(self, begin, path, statuses):
        while time.perf_counter() - begin < 60:
            if self.process.poll() is not None:
                raise Unavailable(f"{self.name} ended at its start: {self.last_words()}")
            try:
                if RedisClient(self.port).send(["PING"]) == [b"PONG"]:
                    return
            except OSError:
                pass
            time.sleep(0.005)
        raise Unavailable(f"{self.name} did not answer within 60 s")


class LeaderboardRows:
    """The rows of the group `leaderboards`."""

    def __init__(self, bench):
        self.bench, self.report = bench, bench.report
        self.entries = bench.pace.pick(20_000, 1_000_000)
        self.questions = bench.pace.pick(500, 3_000)
        rng = random.Random(7)
        self.scores = [rng.randrange(1_000_000) for _ in range(self.entries)]

    def measure(self):
        memory = pathlib.Path("/dev/shm") / f"bench-{uuid.uuid4().hex[:8]}"
        try:
            for where, folder, is_durable in (("flushed to the disk", WORK / "boards", True),
                                              ("without a flush", memory, False)):
                folder.mkdir(parents=True, exist_ok=True)
                self.compare(where, folder, is_durable)
        finally:
            shutil.rmtree(memory, ignore_errors=True)
            shutil.rmtree(WORK / "boards", ignore_errors=True)

    def compare(self, where, folder, is_durable):
        with Servers() as servers:
            def service(binary):
                server = Bellhop(binary, folder=folder)
                process = servers.get(binary, lambda: self.start(server))
                # The resident set would also contain the pages of the file that the kernel maps.
                return {**self.ours(server, process), "bytes": required_metric(process, "bellhop_leaderboard_bytes") / self.entries}

            def redis():
                process = servers.get("redis", lambda: self.start_redis(Redis(folder / "redis", is_durable)))
                return {**self.peers(RedisClient(process.port)), "bytes": process.grown / self.entries}

            peers = {"redis": redis, "commit": lambda: self.commits(folder)} if is_durable else {"redis": redis}
            found = self.bench.take_turns(service, peers)
        what = f"Leaderboard of {self.entries:,}: score, rank and {2 * SIDE + 1} around, {where}"
        redis50, redis99 = (found.peer("redis", part) for part in ("p50", "p99"))
        beside = f"Redis p50 {redis50.text()}, p99 {redis99.text('ms')}" if redis99 else f"Redis: {redis99.missing}"
        ours, p50 = found.ours("p99"), found.ours("p50").text("ms")
        if is_durable:
            commit = found.peer("commit", "p99")
            self.report.add(Row.measured(f"{what}, p99 (p50 {p50}) / one flushed commit of SQLite in C, p99", ours, "ms",
                                         at_most(1.5), commit, beside=f"the commit {commit.text('ms')}; {beside}"))
            return
        self.report.add(Row.measured(f"{what}, p99 (p50 {p50})", ours, "ms", at_most(1, "ms"), redis99, beside=beside))
        bytes_of_redis = found.peer("redis", "bytes")
        self.report.add(Row.measured("Memory of a leaderboard, an entry with an id of 12 bytes", found.ours("bytes"), "bytes", None,
                                     bytes_of_redis, beside=f"Redis {bytes_of_redis.text('bytes')}",
                                     is_steady=True))

    def commits(self, folder):
        """Measures as many commits as there are requests, on the same disk."""
        database = folder / "commits.sqlite"
        remove_database(database)
        times = run_json(WORK / "flushed_commit", database, self.questions, cores=self.bench.cores.server)["commitUs"]
        return {part: times[part] / 1000 for part in ("p50", "p99")}

    # -- ours --------------------------------------------------------------------------------------------------

    def start(self, server):
        """Starts the service, which creates the tables. The rows are written directly into the database, as a restart
        would find them."""
        with server.start(self.bench.cores.server) as process:
            server.call(process, "PUT", "/v1/challenges/board", {
                "name": "Board", "startsAt": "2020-01-01T00:00:00Z", "endsAt": "2200-01-01T00:00:00Z", "mode": "best",
                "order": "descending"})
        with sqlite3.connect(server.database) as database:
            tenant, board = database.execute("SELECT tenant, board_id FROM challenge_boards").fetchone()
            database.executemany(
                "INSERT INTO challenge_scores (tenant, board_id, user_id, score, standing, reached, revision, updated_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, 0)",
                ((tenant, board, user(number), score, ~score, number + 1, number + 1)
                 for number, score in enumerate(self.scores)))
            database.execute("UPDATE challenge_boards SET revision = ?, published_revision = ?, entries = ?", (self.entries,) * 3)
        database.close()
        server.fresh = False
        return server.start(self.bench.cores.server)

    def ours(self, server, process):
        client, rng = HTTPClient(process.port), random.Random(11)
        readers = [token(user(rng.randrange(self.entries))) for _ in range(200)]
        get = [f"GET /v1/challenges/board/leaderboard?around=me&limit={SIDE} HTTP/1.1\r\nHost: bench\r\n"
               f"Authorization: Bearer {reader}".encode() for reader in readers]
        post = (f"POST /v1/challenges/board/scores HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {server.service}\r\n"
                "Content-Type: application/json\r\nIdempotency-Key: ")
        # The first request loads the board into memory; until then the database answers.
        begin = time.monotonic()
        while time.monotonic() - begin < 120:
            asked = time.perf_counter()
            client.ask(get[0])
            if time.perf_counter() - asked < 0.002:
                break
            time.sleep(0.05)
        say(f"bench:   the board was in memory after {time.monotonic() - begin:.1f} s")

        # Scores rise, because in mode `best` only a higher score is a change.
        top = 1_000_000

        def turn(index):
            body = json.dumps({"userId": user(rng.randrange(self.entries)), "score": top + rng.randrange(top)}).encode()
            client.ask(f"{post}{uuid.uuid4().hex}".encode(), body)
            client.ask(get[index % len(get)])

        return self.timed(turn)

    # -- Redis -------------------------------------------------------------------------------------------------

    def start_redis(self, redis):
        process = redis.start(self.bench.cores.server)
        resident = process.resident_bytes()
        redis.fill(RedisClient(process.port), self.entries, self.scores)
        process.grown = process.resident_bytes() - resident
        return process

    def peers(self, client):
        rng = random.Random(11)
        top = 1_000_000

        def turn(_):
            member = user(rng.randrange(self.entries))
            _, rank = client.send(["ZADD", "board", "GT", top + rng.randrange(top), member], ["ZREVRANK", "board", member])
            rank = int(rank)
            client.send(["ZREVRANGE", "board", max(0, rank - SIDE), rank + SIDE, "WITHSCORES"])

        return self.timed(turn)

    def timed(self, turn):
        for index in range(min(200, self.questions)):
            turn(index)
        times, deadline = [], time.monotonic() + 20
        for index in range(self.questions):
            begin = time.perf_counter()
            turn(index)
            times.append((time.perf_counter() - begin) * 1000)
            if time.monotonic() > deadline:
                break
        return {"p50": statistics.median(times), "p99": statistics.quantiles(times, n=100)[98]}
