"""Posts and feeds: an author with a million followers beside one with ten, and the feed of one who follows a thousand.

One client asks over one socket, one question after the other, without waiting for a disk: what a follower costs would drown in
its flushes. The rows are written beside the service, which finds them as a restart would."""

import json
import pathlib
import shutil
import sqlite3
import statistics
import time
import uuid

from .leaderboards import HTTPClient
from .report import Row
from .servers import Bellhop, token

TENANT = "bench"
FOLLOWED = 1_000  # as many as one user can follow
POSTS = 50  # of each of them


class FeedRows:
    """The rows of the group `feed`."""

    def __init__(self, bench):
        self.bench = bench
        self.followers = 50_000 if bench.quick else 1_000_000
        self.turns = 500 if bench.quick else 5_000

    def measure(self):
        folder = pathlib.Path("/dev/shm") / f"bench-{uuid.uuid4().hex[:8]}"
        folder.mkdir(parents=True)
        try:
            server = Bellhop(self.bench.executable("bellhop"), database=folder / "feeds.sqlite")
            self.fill(server)
            server.fresh = False
            with server.start(self.bench.cores.server) as process:
                client = HTTPClient(process.port)
                self.posting(client)
                self.reading(client)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

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
                "INSERT INTO posts (tenant, id, author_id, sequence, visibility, body, media, created_at, told_at)"
                " VALUES (?, ?, ?, ?, 'public', ?, '[]', 0, 0)",
                ((TENANT, f"post-{number:07d}", f"author-{number % FOLLOWED:04d}", number + 2, "A post of some words. " * 5)
                 for number in range(FOLLOWED * POSTS)))
            database.execute("UPDATE post_counters SET newest = ?", (FOLLOWED * POSTS + 1,))
        database.close()

    def posting(self, client):
        """In turns, so that both bear the same moments."""
        body = json.dumps({"text": "A post of some words. " * 5}).encode()
        heads = {author: (f"POST /v1/posts HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token(author)}\r\n"
                          "Content-Type: application/json").encode() for author in ("star", "barber")}
        times = {author: [] for author in heads}
        for _ in range(self.turns):
            for author, head in heads.items():
                begin = time.perf_counter()
                client.ask(head, body)
                times[author].append((time.perf_counter() - begin) * 1000)
        middle = {author: statistics.median(found) for author, found in times.items()}
        self.bench.report.add(Row.against(
            f"A post of an author with {self.followers:,} followers / with 10, p50", 1.1, middle["star"], middle["barber"],
            unit="ms", at_most=True))

    def reading(self, client):
        reader = token("reader")

        def ask(path):
            head = f"GET {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {reader}".encode()
            begin = time.perf_counter()
            answer = json.loads(client.ask(head))
            return (time.perf_counter() - begin) * 1000, answer

        newest = ask("/v1/feed")[1]["newest"]
        pages = [ask("/v1/feed")[0] for _ in range(self.turns // 5)]
        polls = [ask(f"/v1/feed?since={newest}")[0] for _ in range(self.turns)]
        for what, goal, found in ((f"A page of the feed of one who follows {FOLLOWED:,}", 20, pages),
                                  ("A poll of that feed when nothing is new", 5, polls)):
            found.sort()
            self.bench.report.add(Row.at_most(
                f"{what}, p99 (p50 {statistics.median(found):.2f} ms)", goal, found[int(len(found) * 0.99)], unit="ms"))
