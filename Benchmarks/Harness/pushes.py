"""Push messages: from their due time to the provider's socket, and how many one connection carries."""

import collections
import datetime
import subprocess
import time

from harness.ports import free_port

from .machine import WORK, Unavailable
from .processes import Server, cpu_seconds, metric, until
from .report import Row, at_most
from .servers import Bellhop, token

SENT = 'bellhop_push_sent_total{platform="apns",type="notification"}'
USERS = 1_000
PER_SECOND = 50


class Provider:
    """A provider that accepts everything, over TLS and HTTP/2: only nginx. Its log has the time and the connection of
    each request."""

    def __init__(self):
        self.folder = WORK / "provider"
        self.folder.mkdir(exist_ok=True)
        self.certificate, self.key = self.folder / "server.pem", self.folder / "server.key"
        self.log, self.account = self.folder / "access.log", self.folder / "apple.p8"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                "-subj", "/CN=push.example", "-addext", "subjectAltName=IP:127.0.0.1",
                "-keyout", self.key, "-out", self.certificate)
        openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", self.account)
        self.port = free_port()

    def start(self, cores):
        self.log.unlink(missing_ok=True)
        configuration = self.folder / "nginx.conf"
        configuration.write_text(f"""
daemon off;
worker_processes 1;
pid {self.folder}/pid;
error_log {self.folder}/error.log error;
events {{ }}
http {{
  log_format arrivals '$msec $connection $request_uri';
  access_log {self.log} arrivals;
  keepalive_requests 10000000;
  http2_max_requests 10000000;
  http2_max_concurrent_streams 1000;
  client_body_temp_path {self.folder}/body;
  ssl_certificate {self.certificate};
  ssl_certificate_key {self.key};
  server {{
    listen 127.0.0.1:{self.port} ssl http2;
    location / {{ return 200; }}
  }}
  server {{
    listen 127.0.0.1:{self.port + 1};
    access_log off;
    location / {{ return 204; }}
  }}
}}
""")
        return Server("provider", ["/usr/sbin/nginx", "-p", self.folder, "-c", configuration], cores, self.port + 1)

    def settings(self):
        return {
            "BELLHOP_PUSH_KEYS": "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=", "BELLHOP_PUSH_PRIVATE": "true",
            "BELLHOP_PUSH_CERTIFICATES": str(self.certificate), "BELLHOP_APNS_KEY": str(self.account),
            "BELLHOP_APNS_KEY_ID": "KEY0000001", "BELLHOP_APNS_TEAM": "TEAM000001",
            "BELLHOP_APNS_TOPIC": "com.example.app", "BELLHOP_APNS_URL": f"https://127.0.0.1:{self.port}"}

    def arrivals(self):
        """Returns the times at which requests arrived, by device, and the connections."""
        times, connections = collections.defaultdict(list), set()
        for line in self.log.read_text().splitlines():
            at, connection, path = line.split(" ")
            times[path.rsplit("/", 1)[1]].append(float(at))
            connections.add(connection)
        return times, connections


def openssl(*arguments):
    done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        raise Unavailable(f"openssl {arguments[0]} failed: {done.stderr[-200:]}")


class PushRows:
    def __init__(self, bench):
        self.bench, self.report, self.cores = bench, bench.report, bench.cores

    def measure(self):
        self.bench.parts([("Push messages, paced", self.latency), ("Push messages, as many as possible", self.rate)])

    def latency(self):
        found = self.bench.take_turns(self.paced)
        for part, goal in (("p50", None), ("p99", at_most(50, "ms"))):
            self.report.add(Row.measured(
                f"Push messages, {PER_SECOND}/s, from the due time to the provider's socket, {part}", found.ours(part), "ms", goal))

    def rate(self):
        found = self.bench.take_turns(self.flood)
        self.report.add(Row.measured(
            f"Push messages over {found.last('connections')} HTTP/2 connection(s) with TLS to nginx on this machine, {USERS:,} devices",
            found.ours("rate"), "pushes/s", beside=f"CPU of each {found.ours('cpu').text('µs')}"))

    def started(self, binary, provider):
        server = Bellhop(binary, settings=provider.settings())
        return server, server.start(self.cores.server)

    @staticmethod
    def device(user):
        return f"{user:064x}"

    def register(self, server, process, users):
        for user in range(users):
            body = {"platform": "apns", "token": self.device(user)}
            server.call(process, "PUT", f"/v1/devices/d{user}", body, token(f"u{user}"))

    def paced(self, binary):
        """Each message is for another user without a stream, so it is due when its notification is stored."""
        provider, count = Provider(), self.bench.pace.pick(50, 500)
        with provider.start(self.cores.all_load()):
            server, started = self.started(binary, provider)
            with started as process:
                self.register(server, process, count)
                due, begin = [], time.monotonic()
                for user in range(count):
                    time.sleep(max(0, begin + user / PER_SECOND - time.monotonic()))
                    draft = {"userId": f"u{user}", "category": "visit", "priority": "HIGH", "title": "T", "message": "M"}
                    answer = server.call(process, "POST", "/v1/notifications", draft)["notification"]
                    due.append(datetime.datetime.fromisoformat(answer["createdAt"].replace("Z", "+00:00")).timestamp())
                until(lambda: metric(process, SENT) >= count, f"{count:,} push messages are sent")
                times, _ = provider.arrivals()
        # The first one opens the connection.
        took = sorted((times[self.device(user)][0] - at) * 1000 for user, at in enumerate(due) if user > 0)
        return {f"p{part}": max(0, took[min(len(took) - 1, len(took) * part // 100)]) for part in (50, 99)}

    def flood(self, binary):
        """Notifications are stored first, so that the rate is that of the messages which wait."""
        provider, count = Provider(), self.bench.pace.pick(2_000, 20_000)
        with provider.start(self.cores.all_load()):
            server, started = self.started(binary, provider)
            with started as process:
                self.register(server, process, USERS)
                server.notifications(process, cores=self.cores.all_load(), threads=self.bench.client_threads,
                                     users=USERS, count=count)
                before, begin, cpu = metric(process, SENT), time.monotonic(), cpu_seconds(process.pid)
                until(lambda: metric(process, SENT) >= count, f"{count:,} push messages are sent", seconds=120)
                sent, took = count - before, time.monotonic() - begin
                return {"rate": sent / took, "cpu": (cpu_seconds(process.pid) - cpu) / sent * 1e6,
                        "connections": len(provider.arrivals()[1])}
