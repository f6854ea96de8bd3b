"""Rows for posts and feeds: an author with a million followers and one with ten, and the feed of a user that follows a
thousand authors.

One client sends sequential requests over one socket, without a flush, because flushes would hide the cost of
a follower. The rows are written directly into the database, which the service opens as after a restart."""

import json
import pathlib
import shutil
import sqlite3
import statistics
import time
import uuid

from .leaderboards import HTTPClient
from .report import Row, at_most
from .servers import Bellhop, token
from .turns import Servers

TENANT = "bench"
FOLLOWED = 1_000  # the most that one user can follow
POSTS = 50  # per author


class FeedRows:
    """The rows of the group `feed`."""

    def __init__(self, bench):
        self.bench, self.report = bench, bench.report
        self.followers = bench.pace.pick(50_000, 1_000_000)
        self.questions = bench.pace.pick(300, 2_500)

    def measure(self):
        folder = pathlib.Path("/dev/shm") / f"bench-{uuid.uuid4().hex[:8]}"
        folder.mkdir(parents=True)
        try:
            with Servers() as servers:
                def service(binary):
                    process = servers.get(binary, lambda: self.start(Bellhop(binary, folder=folder)))
                    client = HTTPClient(process.port)
                    return {**self.posting(client), **self.reading(client)}

                self.add_rows(self.bench.take_turns(service, turns=2))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def add_rows(self, found):
        self.report.add(Row.measured(f"A post of an author with {self.followers:,} followers / with 10, p50", found.ours("star"),
                                     "ms", at_most(1.1), found.ours("barber")))
        for what, goal, name in ((f"A page of the feed of a user who follows {FOLLOWED:,}", 20, "page"),
                                 ("A poll of that feed without new posts", 5, "poll")):
            middle = found.ours((name, "p50")).text("ms")
            self.report.add(Row.measured(f"{what}, p99 (p50 {middle})", found.ours((name, "p99")), "ms", at_most(goal, "ms")))

    def start(self, server):
        self.fill(server)
        server.fresh = False
        return server.start(self.bench.cores.server)

    def fill(self, server):
        with server.start(self.bench.cores.server) as process:
            server.call(process, "POST", "/v1/posts", {"authorId": "first", "text": "the service has made its tables"})
        with sqlite3.connect(server.database) as database:
            follows = "INSERT INTO follows (tenant, follower_id, author_id, followed_at) VALUES (?, ?, ?, 0)"
            authors = ("INSERT INTO authors (tenant, user_id, follower_count, following_count, post_count)"
                       " VALUES (?, ?, ?, ?, ?)")
            for author, count in (("star", self.followers), ("barber", 10)):
                database.executemany(follows, ((TENANT, f"fan-{number:07d}", author) for number in range(count)))
                database.execute(authors, (TENANT, author, count, 0, 0))
            database.executemany(follows, ((TENANT, "reader", f"author-{number:04d}") for number in range(FOLLOWED)))
            database.executemany(
                "INSERT INTO posts (tenant, id, author_id, sequence, visibility, body, media, created_at, published_at)"
                " VALUES (?, ?, ?, ?, 'public', ?, '[]', 0, 0)",
                ((TENANT, f"post-{number:07d}", f"author-{number % FOLLOWED:04d}", number + 2, "A post of some words. " * 5)
                 for number in range(FOLLOWED * POSTS)))
            database.execute("UPDATE post_counters SET newest = ?", (FOLLOWED * POSTS + 1,))
        database.close()

    def posting(self, client):
        """Alternates between the two authors, so that both are affected by the same conditions."""
        body = json.dumps({"text": "A post of some words. " * 5}).encode()
        heads = {author: (f"POST /v1/posts HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token(author)}\r\n"
                          "Content-Type: application/json").encode() for author in ("star", "barber")}
        times = {author: [] for author in heads}
        for _ in range(self.questions):
            for author, head in heads.items():
                begin = time.perf_counter()
                client.ask(head, body)
                times[author].append((time.perf_counter() - begin) * 1000)
        return {author: statistics.median(found) for author, found in times.items()}

    def reading(self, client):
        reader = token("reader")

        def ask(path):
            head = f"GET {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {reader}".encode()
            begin = time.perf_counter()
            answer = json.loads(client.ask(head))
            return (time.perf_counter() - begin) * 1000, answer

        newest = ask("/v1/feed")[1]["newest"]
        times = {"page": [ask("/v1/feed")[0] for _ in range(self.questions // 5)],
                 "poll": [ask(f"/v1/feed?since={newest}")[0] for _ in range(self.questions)]}
        return {(name, f"p{part}"): sorted(found)[len(found) * part // 100] for name, found in times.items() for part in (50, 99)}
