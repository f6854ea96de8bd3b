"""Starts, stops and observes the servers and the load clients."""

import functools
import http.client
import json
import os
import signal
import subprocess
import time

from harness import metrics, services
from harness.processes import children
from harness.services import environment_for
from harness.waiting import wait_until

from .machine import WORK, Unavailable

_running = []
_clients = []


class Server:
    """One server process, pinned to its cores. It is stopped by its own handle, at the latest when the run ends."""

    def __init__(self, name, command, cores, port, environment=None, ready_path="/healthz", ready_status=(200, 204),
                 stop_seconds=10, ready_seconds=60):
        self.name, self.port, self.stop_seconds, self.ready_seconds = name, port, stop_seconds, ready_seconds
        self.log_path = WORK / f"{name}.log"
        self._log = open(self.log_path, "wb")
        begin = time.perf_counter()
        self.process = subprocess.Popen(
            ["taskset", "-c", cores] + [str(part) for part in command],
            stdin=subprocess.DEVNULL, stdout=self._log, stderr=subprocess.STDOUT,
            env=environment_for(**(environment or {})), start_new_session=True)
        _running.append(self)
        self.pid = self.process.pid
        try:
            self._wait_ready(begin, ready_path, ready_status)
        except BaseException:
            self.stop()
            raise

    def _wait_ready(self, begin, path, statuses):
        while time.perf_counter() - begin < self.ready_seconds:
            if self.process.poll() is not None:
                raise Unavailable(f"{self.name} ended at its start: {self.last_words()}")
            try:
                status, _ = request(self.port, "GET", path, timeout=5)
                if status in statuses:
                    self.start_seconds = time.perf_counter() - begin
                    return
            except OSError:
                pass
            time.sleep(0.0005)
        raise Unavailable(f"{self.name} did not answer within {self.ready_seconds} s: {self.last_words()}")

    def last_words(self):
        self._log.flush()
        return self.log_path.read_bytes()[-500:].decode(errors="replace").strip().replace("\n", " / ")

    def resident_bytes(self):
        """Returns the RSS of the process and its children (nginx: master and worker), without sockets in the kernel."""
        total = 0
        for pid in [self.pid, *children(self.pid)]:
            with open(f"/proc/{pid}/status") as file:
                for line in file:
                    if line.startswith("VmRSS:"):
                        total += int(line.split()[1]) * 1024
        return total

    def stop(self):
        if self in _running:
            _running.remove(self)
        if self.process.poll() is None:
            # SIGTERM would make the service continue to serve for a while.
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(self.stop_seconds)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait(10)
        self._log.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def stop_all():
    for client in _clients:
        if client.poll() is None:
            client.kill()
    for server in list(_running):
        server.stop()


def request(port, method, path, body=None, headers=None, timeout=10):
    try:
        status, _, content = services.request(port, method, path, body, headers, timeout)
    except http.client.HTTPException as error:
        raise OSError(str(error)) from error
    return status, content


until = functools.partial(wait_until, seconds=60, error=Unavailable)


def metric(process, name):
    """Returns a figure of the service's /metrics, with its labels; 0 if it does not exist yet."""
    return metrics.metric(process.port, name) or 0


def required_metric(process, name):
    value = metrics.metric(process.port, name)
    if value is None:
        raise Unavailable(f"/metrics has no {name}")
    return value


def cpu_seconds(pid):
    """Returns the CPU seconds of a process, as counted by the kernel in hundredths."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def _arguments(options):
    arguments = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        for one in value if isinstance(value, list) else [value]:
            arguments += [flag] if one is True else [flag, str(one)]
    return arguments


class Load:
    """A running load client; `result` waits for its JSON."""

    def __init__(self, tool, cores, timeout=180, **options):
        self.tool, self.timeout = tool, timeout
        self.process = subprocess.Popen(
            ["taskset", "-c", cores, str(WORK / tool)] + _arguments(options),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        _clients.append(self.process)

    def ready(self):
        """Waits for the first line of `--until-input-ends`, which is printed when all streams are open."""
        line = self.process.stdout.readline()
        value = json.loads(line) if line else {}
        if "ready" not in value:
            self.process.kill()
            raise Unavailable(f"{self.tool}: streams did not open: {line.strip()[:300]} {self.process.stderr.read()[:300]}")
        return value

    def result(self):
        try:
            out, error = self.process.communicate(timeout=self.timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise Unavailable(f"{self.tool} did not end within {self.timeout} s") from None
        lines = out.strip().splitlines()
        if not lines:
            raise Unavailable(f"{self.tool} failed: {error.strip()[:300]}")
        value = json.loads(lines[-1])
        if self.process.returncode != 0:
            raise Unavailable(f"{self.tool}: opened {value.get('opened')} of {value.get('streams')} streams, "
                              f"{value.get('refused')} refused")
        return value


def load(tool, cores, **options):
    return Load(tool, cores, **options).result()


def run_json(*command, cores):
    """Runs a program that measures by itself and prints one JSON object."""
    done = subprocess.run(["taskset", "-c", cores] + [str(part) for part in command], capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise Unavailable(f"{command[0].name} failed: {done.stderr.strip()[:200]}")
    return json.loads(done.stdout)
