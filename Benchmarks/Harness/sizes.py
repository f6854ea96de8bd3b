"""Rows of size: start, resident memory, growth with what is stored, the image."""

import time

from .machine import WORK, Unavailable
from .processes import load
from .report import Row, at_most
from .servers import Bellhop


class SizeRows:
    def __init__(self, bench):
        self.bench, self.report, self.cores, self.pace = bench, bench.report, bench.cores, bench.pace

    def start(self):
        """An existing database with 1,000 notifications; from the start of the process to the first answer."""
        filled = {}

        def service(binary):
            server = filled.get(binary) or filled.setdefault(binary, self.filled(Bellhop(binary)))
            with server.start(self.cores.server) as process:
                time.sleep(0.3)
                return {"ms": process.start_seconds * 1000, "MB": process.resident_bytes() / 2**20}

        found = self.bench.take_turns(service, turns=self.pace.pick(3, 7))
        self.report.add(Row.measured("Start to first answer, existing database", found.ours("ms"), "ms", at_most(150, "ms")))
        self.report.add(Row.measured("Resident memory at start", found.ours("MB"), "MB", at_most(40, "MB")))

    def filled(self, server):
        with server.start(self.cores.server) as process:
            server.notifications(process, count=1_000, users=100, cores=self.cores.all_load())
        server.fresh = False
        return server

    def growth(self):
        """The same four measurements with more and more stored notifications (50 a user, the service's own bound)."""
        server, table = Bellhop(self.bench.this), []
        cores, stored, filling = self.cores.two_servers or self.cores.server, 0, 1.0
        for size in self.pace.pick([1_000, 5_000], [1_000, 100_000, 1_000_000]):
            if stored and time.monotonic() + (size - stored) / filling + 4 * self.pace.seconds > self.bench.deadline:
                table.append([f"{size:,}", f"not measured: filling up at {filling:,.0f}/s would take too long", "", "", "", ""])
                continue
            server.fresh = stored == 0
            with server.start(cores) as process:
                result = server.notifications(process, count=size - stored, users=max(1, size // 50),
                                              cores=self.cores.all_load(), threads=self.bench.client_threads)
                if result["good"] < size - stored:
                    raise Unavailable(f"only {result['good']} of {size - stored} were stored: {result['statuses']}")
                filling, stored = result["goodRps"], size
            server.fresh = False
            with server.start(cores) as process:
                table.append([f"{size:,}"] + self.read_cells(process) + [f"{filling:,.0f}"])
        self.report.add_curve("Growth with stored notifications", [
            "stored", "start, ms", "resident, MB", "`GET /v1/badges`/s", "`GET /v1/notifications?limit=20`/s",
            "stored per second while filling up to here"], table)

    def read_cells(self, process):
        badges, listing = (
            load("http_load", self.cores.all_load(), path=path, port=process.port, connections=64,
                 threads=self.bench.client_threads, tokens=str(WORK / "one-token.txt"), seconds=self.pace.seconds)
            for path in ("/v1/badges", "/v1/notifications?limit=20"))
        return [f"{process.start_seconds * 1000:.0f}", f"{process.resident_bytes() / 2**20:.0f}", f"{badges['goodRps']:,.0f}",
                f"{listing['goodRps']:,.0f}"]

    def image(self):
        self.report.add(Row("Container image", goal="≤ 120 MB", ours="not measured here: `make image-test` prints it"))
