"""Rows for messages: the latency from sending to the streams of all members, and the number of messages per second.

The sender is a member and has a stream like all others. Each member receives the message in an event with the member's
own counts, and a second event for the badge: a message among 256 members is some 500 events."""

import time

from .machine import Unavailable
from .processes import load
from .report import Row, at_most
from .servers import Bellhop, token, token_file
from .turns import Servers

SIZES = (2, 256)  # a pair, and the maximum size of a conversation
RATES = {2: 50, 256: 20}  # messages per second while latencies are measured
TEXT = "A message of some words, as people write them. "


class MessageRows:
    """The rows of the group `messages`."""

    def __init__(self, bench):
        self.bench, self.report, self.pace = bench, bench.report, bench.pace
        self.run = f"{time.time_ns()}"
        self.made = 0

    def measure(self):
        with Servers() as servers:
            def started(binary):
                cores = self.bench.cores.two_servers
                server = Bellhop(binary, shards=2 if cores else 1, settings={"BELLHOP_PIN_SHARDS": "true"})
                return server, servers.get(binary, lambda: server.start(cores or self.bench.cores.server))

            for members in SIZES:
                self.latency(started, members)
            for members in SIZES:
                self.throughput(started, members)

    def converse(self, server, process, members):
        self.made += 1
        name = f"c{self.run}-{self.made}"
        server.call(process, "POST", "/v1/conversations",
                    {"id": name, "memberIds": [f"u{number}" for number in range(members)]})
        return f"/v1/conversations/{name}/messages"

    @staticmethod
    def headers():
        return [f"Authorization: Bearer {token('u0')}", "Content-Type: application/json"]

    def latency(self, started, members):
        """All members are connected. The latency counts from the sending of the POST, so it includes the commit."""
        found = self.bench.take_turns(lambda binary: self.one_latency(*started(binary), members, polls=True))
        asleep = self.one_latency(*started(self.bench.this), members, polls=False)
        self.report.add(Row.measured(
            f"A message to the streams of {members} members, {RATES[members]} a second, p95 (p50 {found.ours('p50').text('ms')}; "
            "from sending the request, so commit included)", found.ours("p95"), "ms", at_most(50, "ms"),
            beside=f"to a sleeping client: {asleep['p95']:.2f} ms"))

    def one_latency(self, server, process, members, polls):
        result = load(
            "sse_load", self.bench.cores.all_load(), port=process.port, streams=members, mode="paced",
            rate=RATES[members], threads=min(self.bench.client_threads, members), poll=polls,
            seconds=self.pace.pick(0.8, 4), warmup=self.pace.pick(0.2, 0.5), path="/v1/stream", tokens=token_file(members),
            ready_event="stream:ready", event="message:created", publish_path=self.converse(server, process, members),
            publish_header=self.headers(), publish_body='{"text": "message {n} ' + TEXT + '"}',
            marker='"text":"message ', server_pid=process.pid)
        if result["lost"] or result["statuses"].get("201", 0) < result["published"]:
            raise Unavailable(f"{result['lost']} deliveries were lost; answers: {result['statuses']}")
        return {name: result["latencyUs"][name] / 1000 for name in ("p50", "p95")}

    def throughput(self, started, members):
        """201 = on disk with synchronous=FULL; 64 connections, one conversation, whose messages wait for each other."""
        def service(binary):
            server, process = started(binary)
            result = load(
                "http_load", self.bench.cores.all_load(), port=process.port, connections=64,
                threads=self.bench.client_threads, method="POST", path=self.converse(server, process, members),
                header=self.headers(), body='{"text": "message {n} ' + TEXT + '"}',
                seconds=self.pace.pick(0.6, 2.0), server_pid=process.pid)
            if result["statuses"].get("201", 0) < result["requests"] * 0.99:
                raise Unavailable(f"POST of messages: {result['statuses']}")
            return {"messages": result["goodRps"], "events": result["goodRps"] * (2 * members - 1)}

        found = self.bench.take_turns(service)
        self.report.add(Row.measured(f"Durable messages into one conversation of {members}, 64 connections",
                                     found.ours("messages"), "messages/s", beside=f"{found.ours('events').text()} events/s"))
