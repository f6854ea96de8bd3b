"""A temporary PostgreSQL cluster with fsync on, and its tools psql and pgbench."""

import glob
import pathlib
import shutil
import statistics
import subprocess
import tempfile

from harness import postgres
from harness.ports import free_port
from harness.postgres import Trouble, as_system_user, make_folder, program

from .machine import BENCHMARKS, WORK, Unavailable

YARDSTICKS = BENCHMARKS / "Yardsticks"
OWNER = "postgres"


def tool(name):
    """Returns PostgreSQL's own program. Debian's wrappers select a cluster first, and this one is not registered."""
    try:
        return program(name)
    except Trouble as trouble:
        raise Unavailable("PostgreSQL is not installed (Debian: postgresql)") from trouble


class Cluster:
    """One PostgreSQL server in a separate folder, durable as in production: fsync, synchronous_commit and
    full_page_writes are on. Its log stays in the work folder after the data folder is deleted."""

    SETTINGS = {
        "fsync": "on", "synchronous_commit": "on", "full_page_writes": "on",
        "shared_buffers": "256MB", "max_wal_size": "2GB", "max_connections": "100", "jit": "off",
        # The server itself counts the statements of all clients.
        "shared_preload_libraries": "pg_stat_statements", "pg_stat_statements.track": "top",
        "autovacuum_naptime": "10s", "log_lock_waits": "on",
    }

    def __init__(self, cores=None, name="", **settings):
        self.cores, self.settings = cores, dict(self.SETTINGS, **settings)
        self.port = free_port()
        self.folder = None
        self.log_path = WORK / f"postgres{name and '-' + name}.log"

    def start(self):
        self.folder = self._make_folder()
        data = self.folder / "data"
        try:
            self._as_owner(tool("initdb"), "-D", data, "-U", OWNER, "-A", "trust", "--no-sync", "--no-instructions",
                           "-E", "UTF8", "--locale=C.UTF-8")
            lines = ["listen_addresses = '127.0.0.1'", f"port = {self.port}", f"unix_socket_directories = '{self.folder}'"]
            lines += [f"{name} = '{value}'" for name, value in self.settings.items()]
            with open(data / "postgresql.conf", "a") as file:
                file.write("\n".join(lines) + "\n")
            self._as_owner(tool("pg_ctl"), "-D", data, "-s", "-w", "-t", "60", "-l", self.folder / "log", "start",
                           pinned=True)
        except BaseException:
            self.stop()
            raise
        return self

    def _make_folder(self):
        """Creates the folder on the disk of the other benchmarks, if the owner of the data has access to it. The path
        is short, because the name of a socket has at most 107 characters."""
        for parent in (WORK, pathlib.Path("/var/tmp")):
            folder = make_folder("pg-", parent)
            if len(str(folder)) < 80 and self._reaches(folder):
                return folder
            folder.rmdir()
        raise Unavailable("no folder that the user postgres can reach")

    def _reaches(self, folder):
        return subprocess.run(["test", "-w", str(folder)], cwd="/", **as_system_user()).returncode == 0

    def _as_owner(self, *command, pinned=False, check=True):
        pin = ["taskset", "-c", self.cores] if pinned and self.cores else []
        done = subprocess.run(pin + [str(part) for part in command], cwd="/", text=True, timeout=120, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **as_system_user())
        if check and done.returncode != 0:
            raise Unavailable(f"{pathlib.Path(str(command[0])).name} failed: {done.stdout[-300:]}")

    def stop(self):
        if not self.folder:
            return
        self._as_owner(tool("pg_ctl"), "-D", self.folder / "data", "-s", "-m", "immediate", "stop", check=False)
        if (self.folder / "log").exists():
            shutil.copyfile(self.folder / "log", self.log_path)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder = None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    # -- speaking to it ----------------------------------------------------------------------------------------

    def url(self, user=OWNER, database="postgres", password=None):
        return f"postgres://{user}{':' + password if password else ''}@127.0.0.1:{self.port}/{database}"

    def psql_command(self, database, user):
        return [tool("psql"), "-XqAt", "-v", "ON_ERROR_STOP=1", "-d", self.url(user, database)]

    def psql(self, text, database="postgres", user=OWNER):
        """Runs SQL and returns the lines of the result, with fields separated by |."""
        done = subprocess.run(
            self.psql_command(database, user), input=text, capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            raise Unavailable(f"psql failed: {done.stderr.strip()[:300]}")
        return done.stdout.splitlines()

    def pgbench(self, script, cores, database="postgres", user=OWNER, clients=1, threads=1, seconds=2.0, mode="prepared",
                **variables):
        """Runs a script of the Yardsticks folder and returns its rate and the latencies of its transactions.

        pgbench supports only whole seconds; the rate comes from its own report, which excludes the time to connect."""
        path = script if isinstance(script, pathlib.Path) else YARDSTICKS / script
        with tempfile.TemporaryDirectory(prefix="pgbench-", dir=WORK) as folder:
            command = ["taskset", "-c", cores, tool("pgbench"), "-n", "-M", mode, "-c", clients, "-j", min(threads, clients),
                       "-T", max(1, round(seconds)), "-f", path, "-l", "--log-prefix", f"{folder}/latency"]
            for name, value in variables.items():
                command += ["-D", f"{name}={value}"]
            command += [self.url(user, database)]
            done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300)
            rate = next((float(line.split("=")[1].split()[0]) for line in done.stdout.splitlines()
                         if line.startswith("tps =")), 0)
            if done.returncode != 0 or not rate:
                raise Unavailable(f"pgbench {path.name} failed: {done.stderr.strip()[-300:]}")
            micros = sorted(int(line.split()[2]) for name in glob.glob(f"{folder}/latency*") for line in open(name))
        return {"rate": rate, "count": len(micros), "meanMs": statistics.fmean(micros) / 1000,
                **{f"p{part}Ms": percentile(micros, part) / 1000 for part in (50, 95, 99)}}


def percentile(ordered, part):
    return ordered[min(len(ordered) - 1, int(len(ordered) * part / 100))]


class Session(postgres.Session):
    """An interactive psql: a transaction that stays open while others work. Results are lists of lines."""

    def __init__(self, cluster, database="postgres", user=OWNER):
        super().__init__(cluster, database, user)

    def receive(self):
        try:
            return super().receive().splitlines()
        except Trouble as trouble:
            raise Unavailable(trouble) from trouble
