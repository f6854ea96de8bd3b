"""Push messages: from their due time to the provider's socket, and how many one connection carries."""

import collections
import contextlib
import datetime
import json
import subprocess
import time

from harness.ports import free_port

from .machine import WORK, Unavailable
from .processes import Server, cpu_seconds, metric, until
from .report import Row, at_most
from .servers import Bellhop, token

USERS, DEVICES_OF_USER = 100, 20
PLATFORMS = {"apns": "APNs", "fcm": "FCM", "webpush": "Web Push"}
# The keys of a browser in its subscription, and the key of the service. No message is decrypted here.
BROWSER = {
    "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
    "auth": "BTBZMqHH6r4Tts7J_aSIgg"}
VAPID_KEY = "Ur5zzph2LoJ78TKZx261i2vXgrgApj7dVKfdCOpCjRI"
PER_SECOND = 50


class Provider:
    """The three push services, which accept everything, over TLS and HTTP/2: only nginx. Its log has the time and the
    connection of each request."""

    def __init__(self):
        self.folder = WORK / "provider"
        self.folder.mkdir(exist_ok=True)
        self.certificate, self.key = self.folder / "server.pem", self.folder / "server.key"
        self.log = self.folder / "access.log"
        self.apple, self.google = self.folder / "apple.p8", self.folder / "google.json"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                "-subj", "/CN=push.example", "-addext", "subjectAltName=IP:127.0.0.1",
                "-keyout", self.key, "-out", self.certificate)
        openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", self.apple)
        self.port = free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        key = self.folder / "google.pem"
        openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", key)
        self.google.write_text(json.dumps({
            "type": "service_account", "project_id": "bench", "private_key_id": "g1", "private_key": key.read_text(),
            "client_email": "sender@bench.example", "token_uri": f"{self.url}/token"}))

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
    location /v1/ {{ return 200 '{{"name": "projects/bench/messages/1"}}'; }}
    location /token {{ access_log off; return 200 '{{"access_token": "bench", "expires_in": 3600}}'; }}
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
            "BELLHOP_PUSH_CERTIFICATES": str(self.certificate), "BELLHOP_APNS_KEY": str(self.apple),
            "BELLHOP_APNS_KEY_ID": "KEY0000001", "BELLHOP_APNS_TEAM": "TEAM000001",
            "BELLHOP_APNS_TOPIC": "com.example.app", "BELLHOP_APNS_URL": self.url,
            "BELLHOP_FCM_ACCOUNT": str(self.google), "BELLHOP_FCM_URL": self.url, "BELLHOP_PUSH_HOSTS": "127.0.0.1",
            "BELLHOP_VAPID_KEY": VAPID_KEY, "BELLHOP_VAPID_CONTACT": "mailto:ops@bench.example"}

    def address(self, platform, number):
        """Returns the address of a device, as it is registered."""
        device = f"{number:064x}"
        if platform == "webpush":
            return {"platform": platform, "subscription": {"endpoint": f"{self.url}/{device}", "keys": BROWSER}}
        return {"platform": platform, "token": device}

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
        floods = [(f"Push messages by {name}, as many as possible", lambda platform=platform: self.rate(platform))
                  for platform, name in PLATFORMS.items()]
        self.bench.parts([("Push messages, paced", self.latency), *floods])

    def latency(self):
        found = self.bench.take_turns(self.paced)
        for part, goal in (("p50", None), ("p99", at_most(50, "ms"))):
            self.report.add(Row.measured(
                f"Push messages, {PER_SECOND}/s, from the due time to the provider's socket, {part}", found.ours(part), "ms", goal))

    def rate(self, platform):
        found = self.bench.take_turns(lambda binary: self.flood(binary, platform))
        self.report.add(Row.measured(
            f"Push messages by {PLATFORMS[platform]} to nginx on this machine, {USERS * DEVICES_OF_USER:,} devices, HTTP/2 connections with TLS: "
            f"{found.last('connections')}",
            found.ours("rate"), "pushes/s", beside=f"CPU of each {found.ours('cpu').text('µs')}"))

    @contextlib.contextmanager
    def service(self, binary, platform, users, devices=1):
        """Starts the push services and the service, and registers the devices of each user."""
        provider = Provider()
        with provider.start(self.cores.all_load()):
            server = Bellhop(binary, settings=provider.settings())
            with server.start(self.cores.server) as process:
                for number in range(users * devices):
                    body, user = provider.address(platform, number), number // devices
                    server.call(process, "PUT", f"/v1/devices/d{number}", body, token(f"u{user}"))
                yield provider, server, process

    @staticmethod
    def sent(process, platform):
        return metric(process, f'bellhop_push_sent_total{{platform="{platform}",type="notification"}}')

    def paced(self, binary):
        """Each message is for another user without a stream, so it is due when its notification is stored."""
        count = self.bench.pace.pick(50, 500)
        with self.service(binary, "apns", count) as (provider, server, process):
            due, begin = [], time.monotonic()
            for user in range(count):
                time.sleep(max(0, begin + user / PER_SECOND - time.monotonic()))
                draft = {"userId": f"u{user}", "category": "visit", "priority": "HIGH", "title": "T", "message": "M"}
                answer = server.call(process, "POST", "/v1/notifications", draft)["notification"]
                due.append(datetime.datetime.fromisoformat(answer["createdAt"].replace("Z", "+00:00")).timestamp())
            until(lambda: self.sent(process, "apns") >= count, f"{count:,} push messages are sent")
            times, _ = provider.arrivals()
        # The first one opens the connection.
        took = sorted((times[f"{user:064x}"][0] - at) * 1000 for user, at in enumerate(due) if user > 0)
        return {f"p{part}": max(0, took[min(len(took) - 1, len(took) * part // 100)]) for part in (50, 99)}

    def flood(self, binary, platform):
        """Each notification goes to all devices of its user, so it is stored in less time than its messages take. The
        rate is that of the messages that wait when the last notification is stored."""
        notifications = self.bench.pace.pick(100, 2_000)
        count = notifications * DEVICES_OF_USER
        with self.service(binary, platform, USERS, DEVICES_OF_USER) as (provider, server, process):
            server.notifications(process, cores=self.cores.all_load(), threads=self.bench.client_threads,
                                 users=USERS, count=notifications)
            before, begin, cpu = self.sent(process, platform), time.monotonic(), cpu_seconds(process.pid)
            until(lambda: self.sent(process, platform) >= count, f"{count:,} push messages are sent", seconds=120)
            sent, took = count - before, time.monotonic() - begin
            if sent < count / 4:
                raise Unavailable(f"{before:,.0f} of {count:,} messages were sent while the notifications were stored")
            return {"rate": sent / took, "cpu": (cpu_seconds(process.pid) - cpu) / sent * 1e6,
                    "connections": len(provider.arrivals()[1])}
