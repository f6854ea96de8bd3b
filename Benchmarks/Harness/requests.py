"""Rows for requests: `GET /v1/badges` on SQLite."""

import http.client

from .machine import WORK, Unavailable, say
from .processes import load
from .report import Row, at_least
from .servers import Bellhop, Hummingbird, StaticServer, copy_database, token
from .turns import Servers

STATIC_GOALS, HUMMINGBIRD_GOALS = {"304": 0.75, "200": 0.6}, {"304": 2.8, "200": 2.5}


class RequestRows:
    def __init__(self, bench):
        self.bench, self.report, self.cores, self.pace = bench, bench.report, bench.cores, bench.pace

    # -- badges ------------------------------------------------------------------------------------------------

    def badges(self, status):
        """64 connections, compared with the bare C server and with Hummingbird on the same row."""
        with Servers() as servers:
            def service(binary):
                return self.badges_rate(servers.get(binary, lambda: self.start_with_badge(Bellhop(binary))), status)

            def static():
                return self.badges_rate(servers.get("static", lambda: StaticServer().start(self.cores.server)), status)

            def hummingbird():
                ours = Bellhop(self.bench.this)
                servers.get(self.bench.this, lambda: self.start_with_badge(ours))
                return self.badges_rate(servers.get("hummingbird", lambda: self.start_hummingbird(ours)), status)

            found = self.bench.take_turns(service, {"static": static, "hummingbird": hummingbird})
        label, ours = f"`GET /v1/badges` {status}", found.ours("rate")
        self.report.add(Row.measured(f"{label}, 64 connections: the service / C libmicrohttpd static", ours, "requests/s",
                                     at_least(STATIC_GOALS[status]), found.peer("static", "rate")))
        self.report.add(Row.measured(f"{label}: the service / Hummingbird, same work, same SQLite", ours.alone(), "requests/s",
                                     at_least(HUMMINGBIRD_GOALS[status]), found.peer("hummingbird", "rate")))

    def start_with_badge(self, server):
        process = server.start(self.cores.server)
        server.call(process, "POST", "/v1/events", {
            "id": "badge-1", "type": "visit.created", "userId": "u1", "data": {"visitId": "v1", "status": "confirmed"}})
        return process

    def start_hummingbird(self, ours):
        executable = self.bench.executable("peers")
        copy = copy_database(ours.database, WORK / "peer.sqlite")
        return Hummingbird(executable, copy, ours.badges_query()).start(self.cores.server)

    def badges_rate(self, process, status):
        headers = [f"If-None-Match: {entity_tag(process, token('u1'))}"] if status == "304" else []
        result = load("http_load", self.cores.all_load(), port=process.port, connections=64, threads=self.bench.client_threads,
                      path="/v1/badges", header=headers, tokens=str(WORK / "one-token.txt"), seconds=self.pace.seconds,
                      warmup=self.pace.warmup, server_pid=process.pid)
        if result["statuses"].get(status, 0) < result["requests"] * 0.99 or not result["requests"]:
            raise Unavailable(f"GET /v1/badges on {process.name}: wanted {status}, got {result['statuses']}")
        if result["clientCpu"] > 0.97 and result["serverCpu"] < 0.9:
            say(f"bench:   {process.name}: the load client was the bottleneck")
        return {"rate": result["rps"]}


def entity_tag(process, bearer):
    connection = http.client.HTTPConnection("127.0.0.1", process.port, timeout=10)
    connection.request("GET", "/v1/badges", headers={"Authorization": f"Bearer {bearer}"})
    response = connection.getresponse()
    response.read()
    connection.close()
    tag = response.getheader("ETag")
    if response.status != 200 or not tag:
        raise Unavailable(f"GET /v1/badges on {process.name}: {response.status}, ETag {tag}")
    return tag
