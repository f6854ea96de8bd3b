"""The push services, and the service under test with accounts at them, on SQLite or as two replicas on PostgreSQL."""

import base64
import contextlib
import json
import os
import pathlib
import shutil
import subprocess

from accounts import CONTACT, TEAM, TOPIC, Accounts
from apns import APNs
from fcm import FCM
from harness import postgres
from harness.services import Service, environment_for
from harness.tokens import token
from harness.waiting import Failed, wait_until
from webpush import WebPush

DATABASE = "bellhop"
# Not secret: the database exists only during this process and listens only on this machine.
PASSWORD = "of-a-day"


def new_key():
    """Returns a key that encrypts addresses of devices."""
    return base64.b64encode(os.urandom(32)).decode()


class Providers:
    """The three push services of one operator."""

    def __init__(self, folder):
        self.accounts = Accounts(folder)
        self.apns, self.fcm, self.webpush = self.all = [kind(self.accounts) for kind in (APNs, FCM, WebPush)]

    async def start(self):
        for server in self.servers:
            await server.start()

    async def stop(self):
        for server in self.servers:
            await server.stop()

    @property
    def servers(self):
        return [provider.server for provider in self.all] + [self.fcm.authorization]

    @property
    def pushes(self):
        """All messages that arrived, in their order."""
        return sorted((push for provider in self.all for push in provider.pushes), key=lambda push: push.at)

    @property
    def problems(self):
        return [problem for provider in self.all for problem in provider.problems]

    def settings(self):
        """Returns the variables by which a service uses these providers."""
        return {
            "BELLHOP_APNS_KEY": str(self.accounts.apple_path), "BELLHOP_APNS_KEY_ID": self.accounts.apple_key_id,
            "BELLHOP_APNS_TEAM": TEAM, "BELLHOP_APNS_TOPIC": TOPIC, "BELLHOP_APNS_URL": self.apns.server.url,
            "BELLHOP_FCM_ACCOUNT": str(self.accounts.google_account(f"{self.fcm.authorization.url}/token")),
            "BELLHOP_FCM_URL": self.fcm.server.url,
            "BELLHOP_VAPID_KEY": self.accounts.vapid_scalar, "BELLHOP_VAPID_CONTACT": CONTACT,
            "BELLHOP_PUSH_HOSTS": "127.0.0.1", "BELLHOP_PUSH_PRIVATE": "true",
            "BELLHOP_PUSH_CERTIFICATES": str(self.accounts.authority_path),
        }


class SQLite:
    """The database of one process."""

    name = "sqlite"
    replicas = 1
    NOW = "unixepoch('subsec') * 1000000"

    def __init__(self, binary, folder):
        self.folder = folder / "database"
        self.folder.mkdir()
        self.path = self.folder / "push.sqlite"
        self.binary = binary

    def url(self, _):
        return f"sqlite:{self.path}"

    def rows(self, statement):
        """Returns the rows of a query with a single JSON column."""
        done = subprocess.run(
            ["sqlite3", "-readonly", "-cmd", ".timeout 10000", str(self.path), statement], capture_output=True, text=True, check=True)
        return [json.loads(line) for line in done.stdout.split("\n") if line]

    def backup(self):
        """Backs up the database; returns the file."""
        path = self.folder / "backup"
        command = [self.binary, "backup", str(path), "--database", self.url(0)]
        subprocess.run(command, env=environment_for(), check=True, capture_output=True)
        return path

    def stop(self):
        pass


class PostgreSQL:
    """The database of two replicas."""

    name = "postgres"
    replicas = 2
    NOW = "extract(epoch FROM clock_timestamp()) * 1000000"

    def __init__(self, binary, _):
        self.folder = postgres.make_folder("push-")
        self.cluster = postgres.Cluster(self.folder)
        self.cluster.create()
        self.cluster.start()
        self.cluster.sql(f"CREATE ROLE keeper LOGIN CREATEROLE PASSWORD '{PASSWORD}'; CREATE DATABASE {DATABASE} OWNER keeper")
        self.cluster.sql("GRANT ALL ON SCHEMA public TO keeper", DATABASE)
        owner = postgres.url("keeper", PASSWORD, DATABASE, self.cluster.port)
        done = subprocess.run([binary, "migrate", "--database", owner], env=environment_for(
            BELLHOP_JWT_SECRET="x" * 32), capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(f"bellhop migrate ended with {done.returncode}: {done.stdout} {done.stderr}")
        self.cluster.sql(f"CREATE ROLE bellhop LOGIN PASSWORD '{PASSWORD}' IN ROLE bellhop_service")

    def url(self, name):
        address = postgres.url("bellhop", PASSWORD, DATABASE, self.cluster.port)
        return postgres.with_parameter(address, f"application_name=bellhop-{name}")

    def rows(self, statement):
        return self.cluster.rows(statement, DATABASE)

    def session(self):
        """Opens a session that can hold locks."""
        return postgres.Session(self.cluster, DATABASE)

    def is_waiting_for_a_lock(self):
        """Whether a statement waits for the lock of another transaction."""
        return self.rows("SELECT to_json(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()")

    def backup(self):
        path = self.folder / "dump.sql"
        command = [postgres.program("pg_dump"), "-h", str(self.folder), "-p", str(self.cluster.port), "-U", "postgres", DATABASE]
        path.write_bytes(subprocess.run(command, check=True, capture_output=True).stdout)
        return path

    def stop(self):
        with contextlib.suppress(postgres.Trouble, subprocess.SubprocessError):
            self.cluster.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


STORES = {store.name: store for store in (SQLite, PostgreSQL)}


class Replica(Service):
    """One process of the service."""

    def __init__(self, name, binary, folder, secret, settings):
        super().__init__(binary, folder)
        self.log_path = folder / f"service-{name}.log"
        self.secret = secret
        self.environment.update(BELLHOP_JWT_SECRET=secret, BELLHOP_RATE_LIMIT_USER="0", **settings)


class Stage:
    """A running service with its push services.

    - settings: variables in addition to the accounts.
    """

    def __init__(self, binary, folder, store, loop, **settings):
        self.loop = loop
        self.folder = pathlib.Path(folder)
        self.providers = Providers(self.folder)
        self.key = new_key()
        self.secret = base64.b64encode(os.urandom(32)).decode()
        loop.run(self.providers.start())
        self.store = STORES[store](binary, self.folder)
        settings = {**self.providers.settings(), "BELLHOP_PUSH_KEYS": self.key, "BELLHOP_PUSH_AFTER_SECONDS": "0",
                    "BELLHOP_PUSH_TIMEOUT_SECONDS": "2", "BELLHOP_PUSH_CONTENT": "full", **settings}
        self.replicas = [
            Replica(name, binary, self.folder, self.secret, {**settings, "BELLHOP_DATABASE": self.store.url(name)})
            for name in range(self.store.replicas)
        ]
        self.backend = token(self.secret, "backend", "service_role")

    def __enter__(self):
        for replica in self.replicas:
            replica.start()
        return self

    def __exit__(self, *_):
        for replica in self.replicas:
            if replica.process is not None and replica.process.poll() is None:
                replica.kill()
        self.loop.run(self.providers.stop())
        self.store.stop()

    def stop(self):
        """Stops the replicas, which must end cleanly."""
        for replica in self.replicas:
            replica.stop()

    def restart(self, **settings):
        """Stops the replicas and starts them with changed variables."""
        self.stop()
        for replica in self.replicas:
            replica.environment.update(settings)
            replica.start()

    def command(self, *arguments):
        """Runs a command of the binary with the settings of the service; returns what it printed."""
        replica = self.replicas[0]
        environment = {name: value for name, value in replica.environment.items() if name != "BELLHOP_PORT"}
        done = subprocess.run([replica.binary, *arguments], env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(f"bellhop {' '.join(arguments)} ended with {done.returncode}: {done.stdout} {done.stderr}")
        return done.stdout

    def user(self, name):
        return token(self.secret, name)

    def ask(self, method, path, bearer, body=None, replica=0, expect=range(200, 300)):
        """Sends a request; returns the JSON of the answer."""
        status, content = self.replicas[replica].request(method, path, bearer, body)
        if status not in expect:
            raise Failed(f"{method} {path} answered {status}: {content[:500]!r}")
        return json.loads(content) if content else None

    def outbox(self, condition="TRUE"):
        """Returns the rows of the outbox."""
        columns = "type, subject, user_id, device_id, state, attempts, leased_until"
        function = "json_array" if self.store.name == "sqlite" else "json_build_array"
        rows = """(SELECT o.*, l.next_at, CASE WHEN o.lease <> 0 THEN l.next_at ELSE 0 END AS leased_until
            FROM outbox AS o LEFT JOIN outbox_lanes AS l ON l.tenant = o.tenant AND l.lane = o.lane) AS o"""
        return self.store.rows(f"SELECT {function}({columns}) FROM {rows} WHERE {condition} ORDER BY number")

    def settle(self):
        """Waits until all results are stored and nothing is due."""
        rest = "state = 0 AND (leased_until > 0 OR next_at <= CAST({} AS BIGINT))".format(self.store.NOW)
        wait_until(lambda: not self.outbox(rest), lambda: f"the outbox to settle: {self.outbox(rest)}")

    def logs(self):
        return [replica.log_path for replica in self.replicas]

