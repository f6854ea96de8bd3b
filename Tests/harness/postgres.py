"""A temporary PostgreSQL with its failures: restarts, a standby that takes over, sessions that hold locks, exhausted
connections, and PgBouncer in front.

Needs only Python's standard library, the programs of PostgreSQL (psql, initdb, pg_ctl, pg_basebackup) and PgBouncer.
PostgreSQL refuses to run as root. If started by root, all of it runs as the system's user postgres.
"""

import contextlib
import functools
import glob
import json
import os
import pathlib
import pwd
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

from .ports import free_port
from .processes import children
from .waiting import PATIENCE_SECONDS, wait_until

SYSTEM_USER = "postgres"


class Trouble(Exception):
    """PostgreSQL itself did not do what the test needs."""


@functools.cache
def program(name):
    """Returns the newest of PostgreSQL's programs; Debian keeps those of the server out of PATH."""
    places = glob.glob(f"/usr/lib/postgresql/*/bin/{name}")
    found = max(places, key=lambda place: int(place.split("/")[4])) if places else shutil.which(name)
    if not found:
        raise Trouble(f"{name} is not installed (apt-get install postgresql pgbouncer)")
    return found


def as_system_user():
    """Returns the process options that run PostgreSQL as a user other than root."""
    if os.geteuid() != 0:
        return {}
    return {"user": SYSTEM_USER, "group": SYSTEM_USER, "extra_groups": []}


def run(name, *arguments, folder):
    done = subprocess.run(
        [program(name), *map(str, arguments)],
        cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_SECONDS,
        **as_system_user(),
    )
    if done.returncode != 0:
        raise Trouble(f"{name} ended with {done.returncode}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def make_folder(prefix="replicas-", parent="/tmp"):
    """Creates a folder with a short path, because the names of its sockets are limited. It belongs to PostgreSQL's
    user, because PostgreSQL refuses any other owner."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    if os.geteuid() == 0:
        account = pwd.getpwnam(SYSTEM_USER)
        os.chown(folder, account.pw_uid, account.pw_gid)
    return folder


class Cluster:
    """One server. Superusers connect by the socket without a password, all other users by TCP with a password.

    The operating system has a commit before it is answered (synchronous_commit), so a killed server loses nothing. The
    disk is not flushed (fsync is off), because the machine itself does not fail here.
    """

    SETTINGS = {
        "listen_addresses": "127.0.0.1",
        "fsync": "off",
        "synchronous_commit": "on",
        "max_connections": 60,
        "superuser_reserved_connections": 5,
        "max_wal_senders": 4,
        "wal_level": "replica",
        "hot_standby": "on",
        "password_encryption": "scram-sha-256",
        "log_min_messages": "warning",
    }

    def __init__(self, folder, name="data", port=None):
        self.folder = folder
        self.data = folder / name
        self.port = port or free_port()
        self.log_path = folder / f"{name}.log"

    @property
    def connections(self):
        """Returns the number of connections available to users other than superusers."""
        return self.SETTINGS["max_connections"] - self.SETTINGS["superuser_reserved_connections"]

    def create(self):
        run(
            "initdb", "-D", self.data, "-U", "postgres", "--auth-local=trust", "--auth-host=scram-sha-256", "--no-sync",
            "--no-instructions", "-E", "UTF8", "--locale=C.UTF-8", folder=self.folder,
        )
        self.configure()

    def configure(self):
        settings = dict(self.SETTINGS, port=self.port, unix_socket_directories=self.folder)
        with open(self.data / "postgresql.conf", "a", encoding="utf-8") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())

    def start(self):
        run("pg_ctl", "-D", self.data, "-s", "-w", "-t", PATIENCE_SECONDS, "-l", self.log_path, "start", folder=self.folder)

    def stop(self, mode="immediate"):
        if (self.data / "postmaster.pid").exists():
            run("pg_ctl", "-D", self.data, "-s", "-w", "-m", mode, "stop", folder=self.folder)

    @contextlib.contextmanager
    def frozen(self):
        """Suspends all processes of the server: connections stay open, but nothing is answered."""
        postmaster = int((self.data / "postmaster.pid").read_text().splitlines()[0])
        held = []
        try:
            # The first process could otherwise start new ones.
            for process in [postmaster, *children(postmaster)]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGSTOP)
                    held.append(process)
            yield
        finally:
            for process in reversed(held):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGCONT)

    def make_standby(self):
        """A copy on another port that follows this one; commits wait for it, so that it may take over at any moment."""
        standby = type(self)(self.folder, name="standby")
        run(
            "pg_basebackup", "-D", standby.data, "-h", self.folder, "-p", self.port, "-U", "postgres", "-R", "-X", "stream",
            "-c", "fast", "--no-sync", folder=self.folder,
        )
        standby.configure()
        standby.start()
        # Set after the copy was made, so that the promoted standby does not wait for a standby itself.
        self.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.sql("SELECT pg_reload_conf()")
        wait_until(
            lambda: self.sql("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == "1",
            "the standby to follow synchronously", error=Trouble,
        )
        return standby

    def promote(self):
        run("pg_ctl", "-D", self.data, "-s", "-w", "promote", folder=self.folder)

    def sql(self, statements, database="postgres", user="postgres"):
        """Returns the output of psql for a superuser, to whom row-level security does not apply."""
        done = subprocess.run(
            self.psql_command(database, user), input=statements, capture_output=True, text=True, timeout=PATIENCE_SECONDS
        )
        if done.returncode != 0:
            raise Trouble(f"psql: {done.stderr.strip()}")
        return done.stdout.strip()

    def rows(self, statement, database):
        """Returns the rows of a query with a single JSON column."""
        return [json.loads(line) for line in self.sql(statement, database).split("\n") if line]

    def psql_command(self, database, user):
        return [
            program("psql"), "-XqAt", "-v", "ON_ERROR_STOP=1", "-h", str(self.folder), "-p", str(self.port), "-U", user,
            "-d", database,
        ]


def url(user, password, database, *ports, options=""):
    """Returns a libpq URI. With several servers, libpq selects the writable one."""
    hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
    if len(ports) > 1:
        options = "&".join(filter(None, [options, "target_session_attrs=read-write"]))
    return f"postgres://{user}:{password}@{hosts}/{database}" + (f"?{options}" if options else "")


def with_parameter(address, parameter):
    return address + ("&" if "?" in address else "?") + parameter


class Session:
    """An open psql session, which holds its transaction and locks until the next command."""

    def __init__(self, cluster, database, user="postgres"):
        self.count = 0
        self.process = subprocess.Popen(
            cluster.psql_command(database, user), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def run(self, statements):
        """Waits until the statements are done; returns their output."""
        self.send(statements)
        return self.receive()

    def send(self, statements):
        self.count += 1
        self.process.stdin.write(f"{statements};\n\\echo done-{self.count}\n".encode())
        self.process.stdin.flush()

    def receive(self):
        """Returns the output of the statements that were sent last."""
        mark, printed = f"done-{self.count}", b""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not printed.endswith(f"{mark}\n".encode()):
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))
            piece = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            if not piece:
                raise Trouble(f"psql ended or hangs: {printed.decode(errors='replace').strip()}")
            printed += piece
        return printed.decode()[: -len(mark) - 1].strip()

    def close(self):
        """Ends the session and releases its locks; PostgreSQL rolls back uncommitted changes."""
        self.process.stdin.close()
        try:
            self.process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


class Eater:
    """Takes every available connection and keeps it until it is closed."""

    def __init__(self, cluster, user, database):
        self.place = str(cluster.folder / f".s.PGSQL.{cluster.port}")
        self.startup = b"".join(
            part.encode() + b"\0" for part in ("user", user, "database", database)
        )
        self.held = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for connection in self.held:
            connection.close()
        self.held = []

    def eat(self):
        """Takes the free connections; returns their number."""
        before = len(self.held)
        while (connection := self._connect()) is not None:
            self.held.append(connection)
        return len(self.held) - before

    def _connect(self):
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.settimeout(PATIENCE_SECONDS)
            connection.connect(self.place)
            body = struct.pack("!I", 196608) + self.startup + b"\0"
            connection.sendall(struct.pack("!I", len(body) + 4) + body)
            with connection.makefile("rb") as answers:
                while True:
                    head = answers.read(5)
                    if len(head) < 5:
                        break
                    kind, length = head[:1], struct.unpack("!I", head[1:])[0]
                    answers.read(length - 4)
                    if kind == b"Z":  # Ready for a query.
                        return connection
                    if kind == b"E":  # No more connections.
                        break
        except OSError:
            pass
        connection.close()
        return None


class Pooler:
    """PgBouncer in transaction mode: each transaction gets any of a few connections.

    By default it waits 15 seconds before it retries a failed PostgreSQL (server_login_retry), so no client could
    recover sooner.
    """

    def __init__(self, cluster, database, user, password, connections):
        self.port = free_port()
        self.log_path = cluster.folder / "pgbouncer.log"
        self.folder = cluster.folder
        self.configuration = cluster.folder / "pgbouncer.ini"
        users = cluster.folder / "pgbouncer.users"
        users.write_text(f'"{user}" "{password}"\n', encoding="utf-8")
        self.configuration.write_text(
            f"""[databases]
{database} = host=127.0.0.1 port={cluster.port} dbname={database}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {self.port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {users}
pool_mode = transaction
default_pool_size = {connections}
max_client_conn = 200
server_login_retry = 1
""",
            encoding="utf-8",
        )
        self.process = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [shutil.which("pgbouncer") or program("pgbouncer"), str(self.configuration)], cwd=self.folder,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, **as_system_user(),
            )
        wait_until(self._answers, "PgBouncer to listen", error=Trouble)

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(PATIENCE_SECONDS)

    def _answers(self):
        if self.process.poll() is not None:
            raise Trouble(f"pgbouncer ended: {self.log_path.read_text(errors='replace')[-1000:]}")
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            return True
        except OSError:
            return False
