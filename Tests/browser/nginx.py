"""Tests streams through nginx with TLS and HTTP/2, with the configuration of Deploy/nginx.conf: events arrive
unbuffered, and many tabs with one stream each share one connection (R-CUT-N-6, decision 0018).

    python nginx.py [--tabs 12] [--events 50]

The service sends no heartbeat during the test. A buffered event therefore stays in nginx, because nothing pushes it
out, and the test fails after its timeout.
"""

import argparse
import pathlib
import re
import ssl
import statistics
import subprocess
import time
import urllib.parse
import urllib.request

from playwright.sync_api import sync_playwright

from harness.browsers import launch
from harness.ports import free_port
from harness.waiting import PATIENCE_SECONDS, wait_until
from service import ROOT, Files, Service, context

parser = argparse.ArgumentParser()
parser.add_argument("--tabs", type=int, default=12)
parser.add_argument("--events", type=int, default=50)
parser.add_argument("--seed", help="accepted for uniformity; this trial has no random choices")
options = parser.parse_args()
# A browser allows six connections per host with HTTP/1.1.
assert options.tabs > 6, "six tabs or fewer prove nothing"
# Longer than the test's timeout, so that no heartbeat pushes a buffered event out, and no client opens a new stream
# that would replay it.
HEARTBEAT_SECONDS = 3600


class Nginx:
    """The configuration of Deploy with the changes that a test needs: ports, certificates, one replica."""

    def __init__(self, service):
        folder = pathlib.Path(service.directory)
        self.port = free_port()
        subprocess.run([
            "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1",
            "-keyout", folder / "tls.key", "-out", folder / "tls.crt",
        ], check=True, capture_output=True)
        text = (ROOT / "Deploy/nginx.conf").read_text()
        version = subprocess.run(["nginx", "-v"], capture_output=True, text=True).stderr
        number = tuple(int(part) for part in re.search(r"(\d+)\.(\d+)\.(\d+)", version).groups())
        changes = [
            ("server bellhop-1:8080", f"server 127.0.0.1:{service.port}"), (r"\n *server bellhop-2:8080[^\n]*", ""),
            (r"listen 8080;", f"listen 127.0.0.1:{free_port()};"), ("listen 8443", f"listen 127.0.0.1:{self.port}"),
            (r"\n *listen \[::\][^\n]*", ""), (r"(pid|_temp_path) /\w+/", rf"\1 {folder}/"), ("/etc/nginx/certificates", str(folder)),
            ("access_log /dev/stdout main", f"access_log {folder}/access main"),
            # The example closes a stream without data for six heartbeats. This test sends no heartbeats.
            (r"proxy_read_timeout 90s", f"proxy_read_timeout {HEARTBEAT_SECONDS}s"),
        ]
        if number < (1, 25, 1):
            changes += [(r"\n *http2 on;", ""), (r"(listen [^\n]* ssl);", r"\1 http2;")]
        for old, new in changes:
            text, count = re.subn(old, new, text)
            assert count > 0, f"Deploy/nginx.conf has no {old}"
        (folder / "nginx.conf").write_text(text)
        self.access = folder / "access"
        self.url = f"https://127.0.0.1:{self.port}"
        self.process = subprocess.Popen(["nginx", "-c", folder / "nginx.conf", "-g", "daemon off;"])
        self.trust = ssl.create_default_context(cafile=str(folder / "tls.crt"))
        self.trust.check_hostname = False
        wait_until(self.answers, "nginx answers")

    def answers(self):
        try:
            with urllib.request.urlopen(f"{self.url}/healthz", timeout=PATIENCE_SECONDS, context=self.trust) as answer:
                return answer.status == 200
        except OSError:
            return False

    def connections(self):
        """Returns the number of open client connections."""
        lines = pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
        established = [line.split()[1] for line in lines if line.split()[3] == "01"]
        return sum(int(address.split(":")[1], 16) == self.port for address in established)

    def stop(self):
        self.process.terminate()
        self.process.wait()


def run(browser, files, service, proxy):
    window = context(browser, ignore_https_errors=True)
    query = {"url": proxy.url, "token": service.token("ada"), "tabs": "off", "silence-ms": HEARTBEAT_SECONDS * 1000}
    pages = [window.new_page() for _ in range(options.tabs)]
    for page in pages:
        page.goto(f"{files.url}/page.html?{urllib.parse.urlencode(query)}")
    for page in pages:
        page.wait_for_function("window.isUp && bell.connection.get().status === 'live'")
    assert service.streams() == options.tabs, f"{service.streams()} streams of {options.tabs} tabs"

    # A call is answered while all those streams are open. With HTTP/1.1 it would wait for one of them to end.
    begin = time.monotonic()
    assert pages[-1].evaluate("bell.get('/v1/me').then(({ status }) => status)") == 200
    took = (time.monotonic() - begin) * 1000
    # A browser may open a second connection before it knows that the first one uses HTTP/2.
    assert proxy.connections() <= 2, f"{proxy.connections()} connections"
    print(f"{options.tabs} tabs have {options.tabs} streams on {proxy.connections()} connection, "
          f"and a call beside them took {took:.0f} ms")

    for page in pages:
        page.evaluate("""() => {
            window.arrived = {};
            bell.on('notification:created', ({ data }) => { arrived[data.eventId] = Date.now(); });
        }""")
    sent = {}
    for number in range(options.events):
        sent[f"event-{number}"] = time.time() * 1000
        service.notify("ada", f"event-{number}")
        # One at a time, because several events would push each other through a buffer.
        for page in pages:
            page.wait_for_function("id => arrived[id]", arg=f"event-{number}", polling=5)
    for page in pages:
        assert page.evaluate("streams.length") == 1, "a tab opened its stream again, which replays what nginx may have kept"
    took = sorted(page.evaluate("arrived")[event] - at for page in pages for event, at in sent.items())
    for page in pages:
        assert page.evaluate("heard") == list(sent), "an event is missing, or there twice"
    print(f"{len(took)} deliveries, from the request to the page: median {statistics.median(took):.0f} ms, "
          f"the slowest {took[-1]:.0f} ms")

    service.kill()
    for page in pages:
        page.wait_for_function("bell.connection.get().status === 'waiting'")
    service.start()
    service.notify("ada", "after")
    for page in pages:
        page.wait_for_function("arrived['after']")
        assert page.evaluate("resyncs") == 0, "a tab was told of a gap"
    print("killed and started again: every tab went on where it was")
    window.close()
    streams = lambda: [line for line in proxy.access.read_text().splitlines() if "GET /v1/stream " in line]
    wait_until(lambda: len(streams()) >= 2 * options.tabs, "the streams are in nginx's log")
    assert all("HTTP/2.0" in line for line in streams()), streams()


service, files = Service(f"--heartbeat-seconds={HEARTBEAT_SECONDS}"), Files()
nginx = None
try:
    nginx = Nginx(service)
    with sync_playwright() as playwright:
        browser = launch(playwright)
        run(browser, files, service, nginx)
        browser.close()
finally:
    if nginx:
        nginx.stop()
    files.stop()
    service.stop()
# Each event, plus four: one connection, a call during the streams, the restart, HTTP/2.
print(f"cases: {options.events + 4}")
