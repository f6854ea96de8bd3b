"""Starts the service and sends requests to it."""

import base64
import http.client
import json
import os
import signal
import subprocess

from .ports import free_port
from .waiting import PATIENCE_SECONDS, Failed, wait_until


def environment_for(**settings):
    """Returns the environment of this process with these settings instead of its own settings of the service."""
    return {name: value for name, value in os.environ.items() if not name.startswith("BELLHOP_")} | settings


def request(port, method, path, body=None, headers=None, timeout=PATIENCE_SECONDS):
    """Sends one request on a connection of its own. Returns status, headers with lower-case names, and body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


class Service:
    """A process of the service, on the same port after every restart."""

    flags = ()

    def __init__(self, binary, folder):
        self.binary = binary
        self.secret = base64.b64encode(os.urandom(32)).decode()
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log_path = folder / "service.log"
        self.environment = environment_for(
            BELLHOP_HOST="127.0.0.1",
            BELLHOP_DRAIN_SECONDS="0",
            BELLHOP_PORT=str(self.port),
            BELLHOP_DATABASE=f"sqlite:{folder / 'crash.sqlite'}",
            BELLHOP_JWT_SECRET=self.secret,
            # Tests read a figure right after the act that it counts.
            BELLHOP_METRICS_SECONDS="0",
        )
        self.process = None

    def launch(self):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [self.binary, "serve", *self.flags], env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def start(self):
        self.launch()
        wait_until(self.is_ready, lambda: f"the service to get ready:\n{self.log()}")

    def is_ready(self):
        if self.process.poll() is not None:
            raise Failed(f"the service ended with {self.process.returncode} at its start:\n{self.log()}")
        try:
            return self.request("GET", "/readyz", None)[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def kill(self, how=signal.SIGKILL):
        self.process.send_signal(how)
        self.process.wait()

    def stop(self):
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failed("SIGTERM did not end the service") from None
        if code != 0:
            raise Failed(f"SIGTERM ended the service with {code}:\n{self.log()}")

    def log(self):
        return self.log_path.read_text(errors="replace")[-4000:]

    def request(self, method, path, bearer, body=None, key=None):
        """Sends a request with a JSON body; returns status and body."""
        headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if key:
            headers["Idempotency-Key"] = key
        status, _, content = request(self.port, method, path, None if body is None else json.dumps(body), headers)
        return status, content
