"""Messages: from the sending of one to the streams of all members, and how many are taken in a second.

The sender is a member, with a stream like all others. Each member is told in an event of their own, with their own counts, and
once more of their badge: a message among 256 is some 500 events."""

import statistics
import time

from .machine import Unavailable
from .processes import load
from .report import Row
from .servers import Bellhop, token, token_file

SIZES = (2, 256)  # a pair, and as many as a conversation can have
RATES = {2: 50, 256: 20}  # messages a second while latencies are taken
TEXT = "A message of some words, as people write them. "


class MessageRows:
    """The rows of the group `messages`."""

    def __init__(self, bench):
        self.bench = bench
        self.run = f"{time.time_ns()}"
        self.made = 0

    def measure(self):
        cores = self.bench.cores.two_servers or self.bench.cores.server
        server = Bellhop(self.bench.executable("bellhop"), shards=2 if self.bench.cores.two_servers else 1,
                         settings={"BELLHOP_PIN_SHARDS": "true"})
        with server.start(cores) as process:
            for members in SIZES:
                self.latency(server, process, members)
            for members in SIZES:
                self.throughput(server, process, members)

    def converse(self, server, process, members):
        self.made += 1
        name = f"c{self.run}-{self.made}"
        server.call(process, "POST", "/v1/conversations",
                    {"id": name, "memberIds": [f"u{number}" for number in range(members)]})
        return f"/v1/conversations/{name}/messages"

    @staticmethod
    def headers():
        return [f"Authorization: Bearer {token('u0')}", "Content-Type: application/json"]

    def latency(self, server, process, members):
        """All members are connected. Counted from the sending of the POST, so that the commit is in it."""
        results = {True: [], False: []}
        for polls in [True] * self.bench.turns + [False]:
            result = load(
                "sse_load", self.bench.cores.all_load(), port=process.port, streams=members, mode="paced",
                rate=RATES[members], threads=min(self.bench.client_threads, members), poll=polls,
                seconds=2 if self.bench.quick else 6, warmup=1, path="/v1/stream", tokens=token_file(members),
                ready_event="stream:ready", event="message:created", publish_path=self.converse(server, process, members),
                publish_header=self.headers(), publish_body='{"text": "message {n} ' + TEXT + '"}',
                marker='"text":"message ', server_pid=process.pid)
            if result["lost"] or result["statuses"].get("201", 0) < result["published"]:
                raise Unavailable(f"{result['lost']} deliveries were lost; answers: {result['statuses']}")
            results[polls].append(result)

        def median(name, polls=True):
            return statistics.median(result["latencyUs"][name] for result in results[polls]) / 1000

        self.bench.report.add(Row.at_most(
            f"A message to the streams of {members} members, {RATES[members]} a second, p95 (p50 {median('p50'):.2f} ms; "
            "from sending the request, so commit included)", 50, median("p95"), unit="ms",
            peers=f"to a client that sleeps: {median('p95', False):.2f} ms"))

    def throughput(self, server, process, members):
        """201 = on disk with synchronous=FULL; 64 connections, one conversation, whose messages wait for one another."""
        rates = []
        for _ in range(self.bench.turns):
            result = load(
                "http_load", self.bench.cores.all_load(), port=process.port, connections=64,
                threads=self.bench.client_threads, method="POST", path=self.converse(server, process, members),
                header=self.headers(), body='{"text": "message {n} ' + TEXT + '"}',
                seconds=max(1.5, self.bench.seconds), server_pid=process.pid)
            if result["statuses"].get("201", 0) < result["requests"] * 0.99:
                raise Unavailable(f"POST of messages: {result['statuses']}")
            rates.append(result["goodRps"])
        rate = statistics.median(rates)
        self.bench.report.add(Row(
            f"Durable messages into one conversation of {members}, 64 connections",
            ours=f"{rate:,.0f} messages/s, {rate * (2 * members - 1):,.0f} events/s"))
