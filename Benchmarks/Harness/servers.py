"""The servers in the comparison, each with the options that a load client needs."""

import json
import os
import shutil
import sqlite3
import time

from harness import tokens
from harness.ports import free_port

from . import machine
from .machine import WORK, Unavailable
from .processes import Server, load, request

SECRET = "a secret of the benchmark, thirty-two bytes or more"
SHOPS = 8  # one for each event that may be in flight, so that two never race for the same row
EVENT_BYTES = 200

WEBHOOK_SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="


def event_text(number=1, length=EVENT_BYTES):
    """Returns an SSE event of exactly `length` bytes, including its blank line."""
    head, tail = f'id: bench-{number:08d}\nevent: tick\ndata: {{"text":"', '"}\n\n'
    return head + "x" * (length - len(head) - len(tail)) + tail


def token(subject, role=None, tenant="bench", lifetime=6 * 3600, **rights):
    return tokens.token(SECRET, subject, role, lifetime, {"tenant": tenant, **rights})


def token_file(count):
    """Writes one token for each of `count` users u0, u1, …"""
    path = WORK / f"tokens-{count}.txt"
    if not path.exists() or path.stat().st_mtime < time.time() - 3600:
        path.write_text("".join(token(f"u{number}") + "\n" for number in range(count)))
    return path


class SendLoop:
    """Yardstick: a bare loop over send(2)."""
    name = "send loop"
    fanout = {"path": "/stream", "publish_path": "/publish?count=1"}

    def start(self, cores):
        port = free_port()
        return Server("send_loop", [WORK / "send_loop", port], cores, port)

    def burst(self, events):
        return {"path": "/stream", "publish_path": f"/publish?count={events}", "burst": events}


class Transport(SendLoop):
    """Our transport without the service: only module MicroHTTP."""
    name = "our transport alone"

    def __init__(self, executable, shards=1):
        self.executable, self.shards = executable, shards

    def start(self, cores):
        port = free_port()
        return Server(f"transport-{self.shards}", [self.executable, port, self.shards], cores, port)


class Hummingbird(SendLoop):
    name = "Hummingbird"

    def __init__(self, executable, database=None, query=None):
        self.executable, self.database, self.query = executable, database, query

    def start(self, cores):
        port = free_port()
        command = [self.executable, port, 1]
        environment = {}
        if self.database:
            command += [self.database, SECRET]
            environment["PEER_BADGES_SQL"] = self.query
        # It waits a long time for the clients of its streams, which have already left.
        return Server("hummingbird", command, cores, port, environment, stop_seconds=1)


class Nchan:
    """nginx with nchan: memory store, EventSource subscribers, one worker."""
    name = "nginx + nchan"
    fanout = {"path": "/sub", "publish_path": "/pub"}

    def start(self, cores):
        module = "/usr/lib/nginx/modules/ngx_nchan_module.so"
        if not shutil.which("nginx", path="/usr/sbin:/usr/bin:/sbin:/bin") or not os.path.exists(module):
            raise Unavailable("nginx with nchan is not installed")
        port, folder = free_port(), WORK / "nginx"
        folder.mkdir(exist_ok=True)
        configuration = folder / "nginx.conf"
        configuration.write_text(f"""
{"user root;" if os.geteuid() == 0 else ""}
load_module {module};
daemon off;
worker_processes 1;
worker_rlimit_nofile {machine.raise_descriptor_limit()};
pid {folder}/pid;
error_log {folder}/error.log error;
events {{ worker_connections 24000; use epoll; }}
http {{
  access_log off;
  tcp_nodelay on;
  keepalive_requests 1000000;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  nchan_shared_memory_size 128M;
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location = /healthz {{ return 204; }}
    location = /sub {{ nchan_subscriber eventsource; nchan_channel_id bench; nchan_subscriber_first_message newest;
                       nchan_eventsource_ping_interval 0; }}
    location = /pub {{ nchan_publisher; nchan_channel_id bench; nchan_message_buffer_length 16; nchan_message_timeout 60s; }}
    location ~ ^/sub/(\\w+)$ {{ nchan_subscriber eventsource; nchan_channel_id $1; nchan_subscriber_first_message newest;
                             nchan_eventsource_ping_interval 0; }}
    location ~ ^/pub/(\\w+)$ {{ nchan_publisher; nchan_channel_id $1; nchan_message_buffer_length 16;
                             nchan_message_timeout 60s; }}
  }}
}}
""")
        return Server("nginx", ["/usr/sbin/nginx", "-p", folder, "-c", configuration], cores, port)


def webhooks_to(port):
    """Returns the settings of a service that sends webhooks to a port of this machine."""
    return {"BELLHOP_WEBHOOK_URL": f"http://127.0.0.1:{port}/", "BELLHOP_WEBHOOK_PRIVATE": "true",
            "BELLHOP_WEBHOOK_SECRETS": WEBHOOK_SECRET}


class Receiver:
    """A receiver of webhooks that accepts everything: only nginx."""

    def start(self, cores):
        if not shutil.which("nginx", path="/usr/sbin:/usr/bin:/sbin:/bin"):
            raise Unavailable("nginx is not installed")
        port, folder = free_port(), WORK / "receiver"
        folder.mkdir(exist_ok=True)
        configuration = folder / "nginx.conf"
        configuration.write_text(f"""
daemon off;
worker_processes 1;
pid {folder}/pid;
error_log {folder}/error.log error;
events {{ }}
http {{
  access_log off;
  keepalive_requests 1000000;
  client_body_temp_path {folder}/body;
  server {{
    listen 127.0.0.1:{port};
    location / {{ return 204; }}
  }}
}}
""")
        return Server("receiver", ["/usr/sbin/nginx", "-p", folder, "-c", configuration], cores, port)


class StaticServer:
    name = "C libmicrohttpd, static"

    def start(self, cores):
        port = free_port()
        return Server("static_server", [WORK / "static_server", port], cores, port)


class NotificationServer:
    """Yardstick: the rows of the service's notification, with the same group commit, in C."""
    name = "C, same rows and group commit"

    def __init__(self, tables):
        """`tables` is a database that the service has made."""
        self.tables, self.database = tables, WORK / "notifications.sqlite"

    def start(self, cores):
        port = free_port()
        copy_database(self.tables, self.database)
        return Server("notification_server", [WORK / "notification_server", port, self.database], cores, port)


def remove_database(path):
    for suffix in ("", "-wal", "-shm", ".lock", "-lock"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def copy_database(source, target):
    remove_database(target)
    with sqlite3.connect(f"file:{source}?mode=ro", uri=True) as original, sqlite3.connect(target) as copy:
        original.backup(copy)
    original.close()
    copy.close()
    return target


class Bellhop:
    """The service with all functions: tokens, audiences, event log, SQLite on disk with synchronous=FULL."""
    name = "Bellhop"

    def __init__(self, binary, shards=1, reactors=1, folder=WORK, fresh=True, settings=None, tenant="bench"):
        self.binary, self.shards, self.reactors, self.fresh = binary, shards, reactors, fresh
        self.database = folder / f"bellhop-{binary.name}-{shards}.sqlite"
        self.settings = settings or {}
        self.service = token("backend", role="service_role", tenant=tenant)
        self.publisher = [f"Authorization: Bearer {self.service}", "Content-Type: application/json"]

    def start(self, cores):
        if self.fresh:
            remove_database(self.database)
        port = free_port()
        return Server(f"bellhop-{self.binary.name}-{self.shards}", [self.binary.executable, "serve"], cores, port,
                      self.environment(port))

    def environment(self, port):
        return {
            "BELLHOP_HOST": "127.0.0.1", "BELLHOP_PORT": str(port), "BELLHOP_DATABASE": f"sqlite:{self.database}",
            "BELLHOP_JWT_SECRET": SECRET, "BELLHOP_REACTORS": str(self.reactors), "BELLHOP_SHARDS": str(self.shards),
            # Figures are read right after the counted work.
            "BELLHOP_METRICS_SECONDS": "0",
            "BELLHOP_RATE_LIMIT_USER": "0", **self.settings}

    def call(self, server, method, path, body=None, bearer=None):
        headers = {"Authorization": f"Bearer {bearer or self.service}", "Content-Type": "application/json"}
        status, answer = request(server.port, method, path, json.dumps(body) if body is not None else None, headers)
        if status >= 300:
            raise Unavailable(f"{method} {path}: {status} {answer[:200].decode(errors='replace')}")
        return json.loads(answer) if answer else None

    def open_shops(self, server):
        """Creates shops whose barbers are off duty; the first flip puts them on duty. A flip without effect would
        publish no event, and a run that waits for it would never end."""
        for shop in range(SHOPS):
            self.call(server, "PUT", f"/v1/shops/s{shop}", {"name": f"Shop {shop}", "timeZone": "Europe/Berlin"})
            self.call(server, "PUT", f"/v1/shops/s{shop}/barbers/b1", {"onDuty": False})

    def fanout(self, streams):
        """Every stream, each with a separate user and token, watches the shops; a barber comes and goes."""
        topics = ",".join(f"queue:s{shop}" for shop in range(SHOPS))
        return {
            "path": f"/v1/stream?topics={topics}", "tokens": token_file(streams), "ready_event": "stream:ready",
            "event": "queue:update", "users": SHOPS, "publish_method": "PUT",
            "publish_path": "/v1/shops/s{u}/barbers/b1", "publish_header": self.publisher,
            "publish_body": '{"onDuty": {flip}}', "open_timeout": 90}

    def targeted(self, streams):
        """Each stream belongs to a different user; each event is for one of them."""
        return {
            "path": "/v1/stream", "tokens": token_file(streams), "ready_event": "stream:ready",
            "event": "notification:created", "users": streams, "publish_path": "/v1/events",
            "publish_header": self.publisher, "publish_body": self.event_body(f"t{streams}-{time.time_ns()}"),
            "expect": 1, "open_timeout": 90}

    @staticmethod
    def event_body(run):
        return ('{"id": "' + run + '-{n}", "type": "visit.created", "userId": "u{u}", "data": {"visitId": "v{n}", '
                '"visitType": "Check-up", "hospital": "St. Mary", "status": "confirmed"}}')

    def notifications(self, server, count=None, users=1_000, seconds=3.0, cores=None, threads=1, warmup=0.3):
        """Sends POST /v1/events with unique ids, for a number of seconds or a number of requests."""
        options = {"seconds": seconds, "warmup": warmup}
        if count:
            options = {"count": count, "seconds": 240}
        return self.posts(server, "/v1/events", self.event_body(f"n{time.time_ns()}"), cores, users=users, threads=threads,
                          **options)

    def posts(self, server, path, body, cores, **options):
        """Sends a backend's POSTs over 64 connections; {n} and {u} of the body differ between requests."""
        return load("http_load", cores, port=server.port, connections=64, method="POST", path=path, header=self.publisher,
                    body=body, server_pid=server.pid, timeout=280, **options)

    def badges_query(self):
        """Finds the table of the service's counts by its columns; returns it and a point read of it."""
        with sqlite3.connect(f"file:{self.database}?mode=ro", uri=True) as database:
            tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            for table in tables:
                columns = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
                user = next((name for name in ("user_id", "user", "subject") if name in columns), None)
                if {"messages", "requests", "bell", "version", "tenant"} <= set(columns) and user:
                    stamp = next((name for name in ("as_of", "updated_at", "changed_at") if name in columns), "0")
                    return (f'SELECT messages, requests, bell, version, {stamp} FROM "{table}" '
                            f"WHERE tenant = ? AND {user} = ?")
        raise Unavailable("no table with the columns messages, requests, bell and version was found")
