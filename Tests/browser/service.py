"""Provides the real service, the files of bellhop.js and a window of a browser to the tests in this directory.

BELLHOP_BIN is the path of the service's binary; by default the binary of `swift build`. CHROMIUM is the path of the
browser; with BROWSER=firefox it is Debian's Firefox. With TEST_STORE=postgres the service uses a separate database on TEST_POSTGRES, the URL of a PostgreSQL
superuser.
"""

import asyncio
import collections
import contextlib
import http.client
import http.server
import json
import os
import pathlib
import secrets
import shutil
import subprocess
import tempfile
import threading
import time
import urllib.parse

from harness import services
from harness.metrics import metric
from harness.tokens import issued
from harness.waiting import PATIENCE_SECONDS, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECRET = "a secret of tests that is long enough for HS256, 48"


def binary():
    built = [ROOT / ".build/release/bellhop", ROOT / ".build/debug/bellhop"]
    for path in [os.environ.get("BELLHOP_BIN"), *built]:
        if path and os.path.exists(path):
            return str(path)
    raise SystemExit("no binary of the service: set BELLHOP_BIN, or swift build")


class Service(services.Service):
    """The service with a database of its own. Pages of any origin may call it."""

    def __init__(self, *flags):
        self.directory = tempfile.mkdtemp(prefix="bellhop-browser-")
        super().__init__(binary(), pathlib.Path(self.directory))
        self.flags = flags
        self.secret = SECRET
        self.environment |= {"BELLHOP_JWT_SECRET": SECRET, "BELLHOP_CORS_ORIGINS": "*", "BELLHOP_RATE_LIMIT_USER": "0",
                             "BELLHOP_TABLES": "school"}
        # Tests stop the service as an operator does.
        del self.environment["BELLHOP_DRAIN_SECONDS"]
        self.postgres = os.environ["TEST_POSTGRES"] if os.environ.get("TEST_STORE") == "postgres" else None
        if self.postgres:
            self.make_database()
        self.backend = self.token("backend", "--role", "service_role", "--lifetime", "1d")
        self.start()

    def make_database(self):
        """Creates a database for this service, and a login that row-level security applies to."""
        self.name = f"browser_{secrets.token_hex(4)}"
        self.administer(f'CREATE DATABASE "{self.name}"')
        url = urllib.parse.urlsplit(self.postgres)
        owner = url._replace(path=f"/{self.name}").geturl()
        self.run("migrate", "--database", owner)
        self.administer(f"CREATE ROLE \"{self.name}\" LOGIN PASSWORD '{self.name}' IN ROLE bellhop_service")
        place = f"{self.name}:{self.name}@{url.hostname}:{url.port}"
        self.environment["BELLHOP_DATABASE"] = url._replace(netloc=place, path=f"/{self.name}").geturl()

    def stop(self):
        self.kill()
        if self.postgres:
            self.administer(f'DROP DATABASE "{self.name}" WITH (FORCE)')
            self.administer(f'DROP ROLE "{self.name}"')
        shutil.rmtree(self.directory, ignore_errors=True)

    def administer(self, statement):
        subprocess.run(["psql", "-Xq", "-v", "ON_ERROR_STOP=1", "-d", self.postgres, "-c", statement], check=True)

    def run(self, *command, **environment):
        """Returns the output of a command of the binary."""
        # The service rejects unknown variables.
        environment = {**self.environment, **environment}
        return subprocess.run(
            [binary(), *command], env=environment, check=True, capture_output=True, text=True).stdout.strip()

    def token(self, subject, *more, secret=SECRET):
        return issued(self.binary, subject, *more, environment=self.environment | {"BELLHOP_JWT_SECRET": secret})

    def call(self, method, path, body=None, token=None):
        """Sends a request; returns status and text. The status is 0 while nothing answers."""
        try:
            status, content = self.request(method, path, token, body)
        except (OSError, http.client.HTTPException):
            return 0, ""
        return status, content.decode()

    def get(self, path, token=None):
        return self.call("GET", path, token=token)

    def post(self, path, body, token=None):
        """Sends a request as the app's backend and repeats it until it succeeds."""
        def done():
            status, text = self.call("POST", path, body, token or self.backend)
            return (status, json.loads(text)) if 0 < status < 500 else None
        return wait_until(done, f"POST {path}")

    def notify(self, user, event):
        status, _ = self.post("/v1/events", {"id": event, "type": "auth.signup", "userId": user, "data": {}})
        assert status in (200, 201), status

    def texts(self, conversation, token):
        """Returns the messages of a conversation, oldest first."""
        found, since = [], 0
        while True:
            status, text = self.get(f"/v1/conversations/{conversation}/messages?since={since}&limit=100", token)
            assert status == 200, text
            items = json.loads(text)["items"]
            if not items:
                return found
            found += [item["text"] for item in items]
            since = items[-1]["sequence"]

    def streams(self):
        return int(metric(self.port, "bellhop_streams_open"))


class CuttingProxy:
    """A proxy between the browser and the service. While `share` is not 0, it cuts connections after a random byte of
    the request or of the response. While `is_down`, it carries nothing."""

    def __init__(self, service, chance):
        self.service, self.chance = service, chance
        self.share = 0
        self.is_down = False
        self.cut_count = 0
        # The last exchanges, for the analysis of a lost write.
        self.seen = collections.deque(maxlen=20000)
        # The number of bytes that each connection may still carry, by what writes to the browser.
        self.left = {}
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self.port = asyncio.run_coroutine_threadsafe(self.listen(), self.loop).result()
        self.url = f"http://127.0.0.1:{self.port}"

    async def listen(self):
        self.server = await asyncio.start_server(self.carry, "127.0.0.1", 0)
        return self.server.sockets[0].getsockname()[1]

    def begin(self, share):
        """Starts cutting connections, including open ones."""
        def now():
            self.share = share
            for connection in self.left:
                self.left[connection] = self.budget()
        self.loop.call_soon_threadsafe(now)

    def set_network(self, is_up):
        """Ends all connections with the browser, as the loss of its network does, or carries them again."""
        def now():
            self.is_down = not is_up
            for writer in self.left if self.is_down else ():
                writer.transport.abort()
        self.loop.call_soon_threadsafe(now)

    def budget(self):
        # Half of the cuts fall within the size of one small call, the others within the size of a stream.
        most = 900 if self.chance.random() < 0.5 else 9000
        return self.chance.randrange(most) if self.chance.random() < self.share else None

    async def carry(self, reader, writer):
        if self.is_down:
            return writer.transport.abort()
        connection = writer
        self.left[connection] = self.budget()
        with contextlib.suppress(OSError):
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self.service.port)
            ways = [asyncio.ensure_future(self.pump(connection, one, other))
                    for one, other in [(reader, up_writer), (up_reader, writer)]]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            up_writer.close()
        writer.close()
        del self.left[connection]

    async def pump(self, connection, reader, writer):
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                left = self.left[connection]
                self.seen.append((time.time(), id(connection), left, data))
                writer.write(data[:left])
                await writer.drain()
                if left is None:
                    continue
                self.left[connection] = left - len(data)
                if left <= len(data):
                    self.cut_count += 1
                    return

    def stop(self):
        self.loop.call_soon_threadsafe(self.loop.stop)


class Files:
    """Serves the modules of bellhop.js (`.ci/bundle --package` compiles them), its bundles and the pages of this directory from
    a separate origin."""

    def __init__(self):
        places = {"/bellhop.js/": ROOT / ".build-js",
                  "/bundles/": ROOT / "Sources/Service/Features/ClientLibrary/Files", "/": ROOT / "Tests/browser"}

        class Handler(http.server.SimpleHTTPRequestHandler):
            extensions_map = {".js": "text/javascript", ".html": "text/html", "": "application/octet-stream"}

            def translate_path(self, path):
                path = path.split("?")[0]
                for prefix, place in places.items():
                    if path.startswith(prefix):
                        return str(place / path[len(prefix):])
                return ""

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


def context(browser, **options):
    made = browser.new_context(**options)
    made.set_default_timeout(PATIENCE_SECONDS * 1000)
    return made
