#!/usr/bin/env python3
"""Runs the commands and code of README.md and Docs/ as printed, against the real service.

    snippets.py --binary BINARY [PAGE …]    runs all pages, or the named ones

Each page runs in its own folder. Its fences run in order. Comments, which readers do not see, say what the text says:

    <!-- run: terminal=NAME -->             the next fence runs in this terminal, a shell of its own (default: main)
    <!-- run: terminal=NAME until=TEXT -->  … and keeps running; the page continues once it prints TEXT, or once the
                                            address TEXT answers
    <!-- run: prints=TEXT|TEXT -->          its output must contain these texts
    <!-- file: NAME -->                     the next fence is the content of this file
    <!-- shows: terminal=NAME text=TEXT --> waits until a terminal, or the browser, shows the text
    <!-- browser: ADDRESS -->               opens the address in Chromium
    <!-- clicks: SELECTOR -->               clicks an element there
    <!-- act: COMMAND -->                   a command of the test, in the terminal main
    <!-- stop: NAME -->                     ends the program of a terminal, like Ctrl-C
    <!-- not run: REASON -->                the next fence is not run. NOT_RUN_MAX bounds the number of these fences

Fences without a language, and those in `json`, show output or data and are not run. Indented YAML is a part of a file.
PLACEHOLDERS and PORTS replace what a reader chooses. A request of curl that fails ends the page. Prints the
number of fences that ran as `cases: N`.
"""

import argparse
import asyncio
import concurrent.futures
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

from harness.browsers import launch_options
from harness.ports import free_port
from harness.processes import children
from harness.waiting import PATIENCE_SECONDS, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [
    "README.md", "Docs/getting-started.md", "Docs/moving-in.md", "Docs/operations.md", "Docs/source.md", "Docs/tables.md",
    "Docs/webhooks.md", "Deploy/examples/todo/README.md",
    *(str(path.relative_to(ROOT)) for folder in ("tutorials", "how-to")
      for path in sorted((ROOT / "Docs" / folder).glob("*.md"))),
]
# Raise this only for a fence that no test can run here, with its reason in the page.
NOT_RUN_MAX = 7
SECRET = "a secret of tests that is long enough for HS256, 48"
# What a reader replaces, by its text in a fence.
PLACEHOLDERS = {
    "TOKEN=…": f'TOKEN=$(BELLHOP_JWT_SECRET="{SECRET}" bellhop token --subject ada)',
    "BACKEND=…": f'BACKEND=$(BELLHOP_JWT_SECRET="{SECRET}" bellhop token --subject backend --role service_role)',
    "export BELLHOP_JWT_SECRET=…": f'export BELLHOP_JWT_SECRET="{SECRET}"',
    ".build/release/bellhop": "bellhop",
    "https://bells.example": "http://127.0.0.1:8080",
    "BELLHOP_CHANGES_SECRET=…": "BELLHOP_CHANGES_SECRET=a-secret-of-the-changes-of-this-run",
    "postgres://admin@app/db": "postgres://postgres@127.0.0.1:5432/postgres",
    "postgres://bellhop_reader@app/db": "postgres://bellhop_reader@127.0.0.1:5432/postgres",
    "postgres://bellhop_reader:…@app/db": "postgres://bellhop_reader@127.0.0.1:5432/postgres",
    "-h db.example": "-h 127.0.0.1 -p 5432",
    "@db.example/bellhop": "@127.0.0.1:5432/bellhop",
    "sslmode=verify-full&sslrootcert=/etc/bellhop/db-ca.pem": "sslmode=prefer",
    "postgres://owner@db/": "postgres://postgres@127.0.0.1:5432/",
    "postgres://admin@db/": "postgres://postgres@127.0.0.1:5432/",
    "postgres://bellhop:…@db/bellhop?sslmode=verify-full&sslrootcert=ca.pem": "postgres://bellhop@127.0.0.1:5432/bellhop",
}
# Ports of the pages, which become free ones. 5432 is a PostgreSQL of the page.
PORTS = ["8080", "8081", "8090", "8443", "3000"]
# Pages that begin beside a service that runs already, as their texts say.
RUNNING = {
    "README.md": 'mkdir .bellhop && printf %s "$BELLHOP_JWT_SECRET" >.bellhop/secret',
    "Docs/getting-started.md": "createdb -h 127.0.0.1 -p 5432 -U postgres bellhop",
}
# Fences that another test runs: the page, the language, and the section.
ELSEWHERE = [("README.md", ("js", "jsx"), "Clients")]  # Sources/bellhop.js/test/readme.test.js
PRELUDE = """
shopt -s expand_aliases
curl() { command curl --fail-with-body -sS "$@"; }
swift() { "$SNIPPETS_SWIFT" "$@"; }
"""
SWIFT_PRELUDE = "import BellhopClient\nfunc fetchToken() async throws -> String { \"\" }\n"
BROWSER_PRELUDE = """
const token = "%s";
const draw = (data) => { document.title = `total ${data.total}`; };
const fetchEverythingAgain = () => {};
const Source = EventSource;
globalThis.EventSource = class extends Source {
  constructor(url) { super(url); this.addEventListener("stream:ready", () => { document.title = "stream ready"; }); }
};
"""


class Wrong(Exception):
    """A fence that does not do what its page says."""


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


class Step:
    """A fence or a command of a comment, with its line in the page."""

    def __init__(self, line, section, kind, options, language="", text=""):
        self.line, self.section, self.kind, self.options = line, section, kind, options
        self.language, self.text = language, text


def options_of(text):
    return dict(part.split("=", 1) for part in shlex.split(text))


def steps_of(page):
    """Returns the steps of a page. A comment applies to the fence that follows it."""
    steps, section, pending = [], "", None
    lines = iter(enumerate(page.splitlines(), 1))
    for number, line in lines:
        if line.startswith("## "):
            section = line.removeprefix("## ")
        elif matched := re.fullmatch(r"<!-- ([^:]*): (.*) -->", line.strip()):
            kind, text = matched.groups()
            step = Step(number, section, kind, options_of(text) if kind in ("run", "shows") else {"text": text})
            if kind in ("shows", "browser", "clicks", "act", "stop"):
                steps.append(step)
            elif kind in ("run", "file", "not run") and not pending:
                pending = step
            else:
                raise Wrong(f"line {number}: the comment “{kind}” is unknown, or has no fence")
        elif line.startswith("```"):
            language, body = line.removeprefix("```").strip(), []
            for _, inner in lines:
                if inner.startswith("```"):
                    break
                body.append(inner)
            kind = pending.kind if pending else "run"
            steps.append(Step(number, section, kind, pending.options if pending else {}, language, "\n".join(body) + "\n"))
            pending = None
    if pending:
        raise Wrong(f"line {pending.line}: the comment has no fence")
    return [step for step in steps if step.kind != "run" or not (
        step.language in ("", "json", "text") or step.language == "yaml" and step.text.startswith(" "))]


class Terminal:
    """A shell that runs fences one after the other. Its output is collected."""

    def __init__(self, folder, environment):
        self.folder, self.output, self.count = folder, "", 0
        self.process = subprocess.Popen(
            ["bash", "--norc"], cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, start_new_session=True)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        self.send(PRELUDE)

    def read(self):
        while text := os.read(self.process.stdout.fileno(), 65_536):
            self.output += text.decode(errors="replace")

    def send(self, text):
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def begin(self, text, strict=False):
        """Starts a fence; returns the marker of its end. A strict shell exits with the first command that fails."""
        self.count += 1
        file = pathlib.Path(self.folder, f".fence-{id(self)}-{self.count}")
        file.write_text(text, encoding="utf-8")
        self.send(f"set {'-e' if strict else '+e'}; source {file}; set +e; printf '\\n[end of fence %s]' {self.count}\n")
        return f"\n[end of fence {self.count}]"

    def run(self, text):
        """Runs a fence to its end; returns its output."""
        start = len(self.output)
        marker = self.begin(text, strict=True)
        wait_until(lambda: marker in self.output[start:] or self.process.poll() is not None,
              lambda: f"the end of a fence. Its output:\n{self.output[start:]}")
        if self.process.poll() is not None:
            self.reader.join(timeout=5)
        if marker not in self.output[start:]:
            raise Wrong(f"a command failed. The output:\n{self.output[start:]}")
        return self.output[start:].split(marker)[0]

    @property
    def is_over(self):
        return self.process.poll() is not None or self.output.rstrip().endswith(f"[end of fence {self.count}]")

    def interrupt(self):
        """Ends the program in the foreground, not the shell."""
        programs = children(self.process.pid)
        for program in programs:
            os.kill(program, signal.SIGTERM)
        wait_until(lambda: not any(os.path.exists(f"/proc/{program}") for program in programs), lambda: "the end of a program")

    def close(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


class Browser:
    """One page in Debian's Chromium, in its own event loop."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self.playwright = self.browser = self.page = None

    def call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(PATIENCE_SECONDS)

    def open(self, url):
        self.call(self._open(url))

    async def _open(self, url):
        from playwright.async_api import async_playwright
        if not self.browser:
            self.playwright = await async_playwright().start()
            self.browser = await self.playwright.chromium.launch(**launch_options())
        self.page = await self.browser.new_page()
        await self.page.goto(url)

    def run(self, code):
        self.call(self.page.evaluate(f"(async () => {{ {code} }})()"))

    def click(self, selector):
        self.call(self.page.click(selector))

    @property
    def output(self):
        """The title and the text of the page."""
        return self.call(self.page.evaluate("`${document.title}\\n${document.body?.innerText}`")) if self.page else ""

    def close(self):
        if self.browser:
            self.call(self.browser.close())
            self.call(self.playwright.stop())


class Run:
    """The run of one page."""

    def __init__(self, name, tools):
        self.name, self.tools, self.ran, self.not_run = name, tools, 0, []
        self.folder = tempfile.mkdtemp(prefix="bellhop-docs-")
        self.text = (ROOT / name).read_text(encoding="utf-8")
        self.ports = {port: str(free_port()) for port in PORTS} | {"5432": "5432"}
        self.terminals, self.browser, self.postgres = {}, Browser(), None
        self.environment = {
            "PATH": f"{tools}:{os.environ['PATH']}", "HOME": self.folder, "LC_ALL": "C.UTF-8", "PGGSSENCMODE": "disable",
            "BELLHOP_PORT": self.ports["8080"], "BELLHOP_DRAIN_SECONDS": "0", "SNIPPETS_SWIFT": f"{tools}/swift-run",
        } | {name: value for name, value in os.environ.items() if name == "TEST_EXITS"}

    def filled(self, text):
        """Replaces what a reader replaces, and ports."""
        for given, value in PLACEHOLDERS.items():
            text = text.replace(given, value)
        if "STREAM=…" in text:
            streams = re.findall(r'"streamId":"([^"]+)"', "".join(one.output for one in self.terminals.values()))
            text = text.replace("STREAM=…", f"STREAM={streams[-1]}")
        return re.sub(r"(?<![\d.])(" + "|".join(self.ports) + r")(?!\d)", lambda found: self.ports[found[0]], text)

    def terminal(self, name):
        if name not in self.terminals:
            self.terminals[name] = Terminal(self.folder, self.environment)
        return self.terminals[name]

    def start_postgres(self):
        """Starts a PostgreSQL for a page that uses one. `DATABASE` is its superuser's address, for fences of SQL."""
        self.postgres = tempfile.mkdtemp(prefix="pg-")
        address = subprocess.run(
            [ROOT / ".ci/postgres", "start", self.postgres], capture_output=True, text=True, check=True).stdout.strip()
        self.ports["5432"] = re.search(r":(\d+)/", address)[1]
        self.environment["DATABASE"] = address

    def begin(self):
        """Links the files that pages name by their path in the repository, and starts what the page needs."""
        if "psql" in self.text or "```sql" in self.text:
            self.start_postgres()
        for part in ("Deploy", "openapi.yaml"):
            os.symlink(ROOT / part, pathlib.Path(self.folder, part))
        if self.name not in RUNNING:
            return
        self.environment["BELLHOP_JWT_SECRET"] = SECRET
        self.terminal("first").run(self.filled(RUNNING[self.name]))
        self.terminal("first").begin("bellhop serve")
        self.wait("first", self.filled("http://127.0.0.1:8080/readyz"))
        token = self.tool("token", "--subject", "backend", "--role", "service_role")
        request = urllib.request.Request(
            self.filled("http://127.0.0.1:8080/v1/shops/s1"), b'{"name": "The Cut Club", "timeZone": "UTC"}', method="PUT",
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
        urllib.request.urlopen(request).close()
        del self.environment["BELLHOP_JWT_SECRET"]

    def tool(self, *arguments):
        done = subprocess.run(["bellhop", *arguments], env=self.environment, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def wait(self, name, text):
        source = self.browser if name == "browser" else self.terminals[name]

        def is_there():
            # The output is read first: a program may print the text and end.
            is_over = name != "browser" and source.is_over
            if answers(text) if text.startswith("http") else text in source.output:
                return True
            if is_over:
                raise Wrong(f"the program of {name} has ended without “{text}”. Its output:\n{source.output}")
            return False

        wait_until(is_there, lambda: f"“{text}” in {name}. Its output:\n{source.output}")

    def step(self, step):
        options = {name: self.filled(text) for name, text in step.options.items()}
        if step.kind == "not run":
            self.not_run.append(f"{self.name}:{step.line}: {options['text']}")
        elif step.kind == "file":
            path = pathlib.Path(self.folder, options["text"])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.filled(step.text), encoding="utf-8")
            self.ran += 1
        elif step.kind == "shows":
            self.wait(options["terminal"], options["text"])
        elif step.kind == "clicks":
            self.browser.click(options["text"])
        elif step.kind == "act":
            self.terminal("main").run(options["text"] + "\n")
        elif step.kind == "stop":
            self.terminals[options["text"]].interrupt()
        elif step.kind == "browser":
            url = subprocess.run(["bash", "-c", f'echo "{options["text"]}"'], env=self.environment | {
                "BELLHOP_JWT_SECRET": SECRET}, cwd=self.folder, capture_output=True, text=True).stdout.strip()
            self.browser.open(url)
        elif any(self.name == page and step.language in languages and step.section == section
                 for page, languages, section in ELSEWHERE):
            pass
        else:
            self.run(step, options)
            self.ran += 1

    def run(self, step, options):
        text = self.filled(step.text)
        name = options.get("terminal", "main")
        if step.language == "js" and name == "browser":
            self.environment["BELLHOP_JWT_SECRET"] = SECRET
            self.browser.run(BROWSER_PRELUDE % self.tool("token", "--subject", "ada") + text)
            return
        programs = {"sh": "", "js": "node", "py": "python3", "rb": "ruby", "swift": "swift typecheck",
                    "sql": 'psql -qAt -v ON_ERROR_STOP=1 "$DATABASE" -f'}
        if step.language not in programs:
            raise Wrong(f"there is no way to run a fence of “{step.language}”: name its file, or say why it is not run")
        file = f"fence-{step.line}.{ {'js': 'mjs'}.get(step.language, step.language)}"
        if step.language != "sh":
            source = SWIFT_PRELUDE + text if step.language == "swift" else text
            pathlib.Path(self.folder, file).write_text(source, encoding="utf-8")
        command = f"{programs[step.language]} {file}" if step.language != "sh" else text
        if "until" in options:
            self.terminal(name).begin(command)
            self.wait(name, options["until"])
            return
        output = self.terminal(name).run(command)
        for wanted in filter(None, options.get("prints", "").split("|")):
            if wanted not in output:
                raise Wrong(f"“{wanted}” is not in the output:\n{output}")

    def all(self):
        start = time.monotonic()
        line = 0
        try:
            self.begin()
            for step in steps_of(self.text):
                line = step.line
                self.step(step)
        except Exception as error:  # every failure of a page is reported with its place
            others = "".join(f"\n--- terminal {name}:\n{one.output[-1500:]}" for name, one in self.terminals.items())
            return f"{self.name}:{line}: {error or type(error).__name__}{others}"
        finally:
            self.browser.close()
            for terminal in self.terminals.values():
                terminal.close()
            if self.postgres:
                subprocess.run([ROOT / ".ci/postgres", "stop", self.postgres], check=False)
            shutil.rmtree(self.folder, ignore_errors=True)
            self.seconds = time.monotonic() - start
        return None


def make_tools(folder, binary):
    """Writes the programs that the pages call: bellhop, python3 with the libraries of the tests, and `swift run`."""
    os.symlink(os.path.abspath(binary), f"{folder}/bellhop")
    build = pathlib.Path(binary).resolve().parent
    # Objects of sources that were renamed or removed stay in the build folder.
    objects = " ".join(f'"{build}/{module}.build/{source.name}.o"' for module in ("BellhopCalls", "BellhopClient")
                       for source in sorted(pathlib.Path(ROOT, "Sources", module).rglob("*.swift")))
    compiler = f'swiftc -swift-version 6 -I "{build}/Modules" -I "{ROOT}/Sources/CCurl"'
    scripts = {
        # `swift run` of the pages' package, without building the whole package: BellhopClient is built already.
        "swift-run": f"""case "$1" in
typecheck) exec {compiler} -typecheck "$2" ;;
run) {compiler} Sources/*/main.swift -o app {objects} -lcurl && exec stdbuf -oL ./app ;;
esac
exit 64""",
        "python3": f'exec "{ROOT}/.build-tools/bin/python" "$@"',
    }
    for name, text in scripts.items():
        path = pathlib.Path(folder, name)
        path.write_text(f"#!/bin/bash\n{text}\n", encoding="utf-8")
        path.chmod(0o755)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("pages", nargs="*", default=PAGES)
    given = parser.parse_args()
    tools = tempfile.mkdtemp(prefix="bellhop-tools-")
    make_tools(tools, given.binary)
    runs = [Run(page, tools) for page in given.pages]
    try:
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            failures = [failure for failure in pool.map(Run.all, runs) if failure]
    finally:
        shutil.rmtree(tools, ignore_errors=True)
    for run in runs:
        print(f"   {run.name}: {run.ran} fences in {run.seconds:.1f} s")
    not_run = [line for run in runs for line in run.not_run]
    print(f"   not run ({len(not_run)} of at most {NOT_RUN_MAX}):", *not_run, sep="\n   - ")
    for failure in failures:
        print(f"\n✘ {failure}", file=sys.stderr)
    if len(not_run) > NOT_RUN_MAX:
        sys.exit(f"{len(not_run)} fences are not run; at most {NOT_RUN_MAX} may be")
    if failures:
        sys.exit(1)
    print(f"cases: {sum(run.ran for run in runs)}")


if __name__ == "__main__":
    main()
