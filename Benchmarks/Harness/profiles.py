"""Instructions of one request by component: callgrind counts a number of requests and three times as many, and the
difference is divided.

Counts hardly depend on the machine or on its load. They exclude the kernel's part, which is taken from `/proc/PID/stat`
in a run without callgrind."""

import collections
import os
import re
import shutil
import subprocess

from harness.ports import free_port

from .changes import CHANGES, TABLES, item, item_id, names, subscription, subscription_file
from .machine import WORK, Unavailable
from .processes import Load, Server, load
from .requests import entity_tag
from .servers import Bellhop, remove_database, token, token_file
from .streams import newest_event
from .turns import Binary

ALLOCATORS = {"malloc", "calloc", "realloc", "posix_memalign", "swift_allocObject", "swift_slowAlloc", "swift_slowAllocTyped"}
# Valgrind counts `rep stosb` as one instruction per byte. Clearing 16 KiB looks like a third of a request but takes a
# processor a quarter of a microsecond, so these instructions are listed separately.
CLEARING = "memset (a byte each)"


class Profiled(Bellhop):
    """The service under callgrind, with one reactor and one shard. Symbols are enough; with debugging information
    callgrind does not finish."""

    def __init__(self, binary, **options):
        super().__init__(binary, **options)
        self.out = WORK / f"callgrind-{binary.name}"

    def start(self, cores):
        port = free_port()
        remove_database(self.database)
        return Server("callgrind", [
            "valgrind", "--tool=callgrind", f"--callgrind-out-file={self.out}", "--fair-sched=yes", self.binary.executable, "serve"],
            cores, port, self.environment(port), stop_seconds=180, ready_seconds=300)


# -- callgrind's output -------------------------------------------------------------------------------------------------


class Costs:
    """Instructions of each function, and the number of calls between functions; functions with their objects."""

    def __init__(self):
        self.own, self.calls = collections.Counter(), collections.Counter()

    @staticmethod
    def read(path):
        costs, known = Costs(), {"ob": {}, "fn": {}}
        place = {"ob": "", "fn": ""}
        called, skips = ["", ""], False

        def name(kind, text):
            number, given = re.match(r"\((\d+)\)(?: (.*))?", text).groups()
            if given:
                known[kind][number] = re.sub(r"'\d+$", "", given)
            return known[kind][number]

        with open(path, errors="replace") as file:
            for line in file:
                key, _, value = line.rstrip("\n").partition("=")
                if key in place:
                    place[key] = name(key, value)
                    called[0] = place["ob"]
                elif key == "cob":
                    called[0] = name("ob", value)
                elif key == "cfn":
                    called[1] = name("fn", value)
                elif key == "calls":
                    skips = True
                    costs.calls[(place["ob"], place["fn"]), tuple(called)] += int(value.split()[0])
                    called[0] = place["ob"]
                elif line[:1].isdigit() or line[:1] in "+-*":
                    if not skips:
                        costs.own[place["ob"], place["fn"]] += int(line.split()[1])
                    skips = False
        return costs

    def of_one(self, fewer, units):
        """Returns the cost of one unit, if this run has `units` more of them than the other one."""
        one = Costs()
        for mine, theirs, into in ((self.own, fewer.own, one.own), (self.calls, fewer.calls, one.calls)):
            for key in mine.keys() | theirs.keys():
                into[key] = (mine[key] - theirs[key]) / units
        return one

    def components(self):
        found = collections.Counter()
        for (path, function), count in self.own.items():
            found[component(path, function)] += count
        return found

    def largest(self, wanted, count):
        own = collections.Counter()
        for (path, function), value in self.own.items():
            if component(path, function) in wanted:
                own[function] += value
        return own.most_common(count)

    def allocating(self, count):
        """Returns our functions that allocate memory, and how often. The allocations of Swift's library and runtime are
        divided among their callers by the number of calls."""
        callers, total = collections.defaultdict(list), collections.Counter()
        for (caller, callee), times in self.calls.items():
            callers[callee].append((caller, times))
            total[callee] += times
        asked = collections.Counter()
        for (caller, callee), times in self.calls.items():
            if callee[1] in ALLOCATORS and is_ours(caller[0]) and caller[1] not in ALLOCATORS:
                asked[caller] += times
        for _ in range(12):
            passed = [function for function in asked if component(*function) != "ours" and total[function]]
            for function in passed:
                value = asked.pop(function)
                for caller, times in callers[function]:
                    asked[caller] += value * times / total[function]
        found = collections.Counter()
        for (_, function), value in asked.items():
            found[function] += value
        return [(function, value) for function, value in found.most_common(count) if value >= 0.05]


def is_ours(path):
    return not re.search(r"\.so(\.|$)|vgpreload|^\?\?\?$|/ld-linux", path)


def is_runtime(function):
    return function in ALLOCATORS or re.match(r"_?swift_|_?_?ZN5swift|_ZL?N?5swift|_ZNSt|_ZSt", function) is not None


def component(path, function):
    if "libmicrohttpd" in path:
        return "libmicrohttpd"
    if "libsqlite3" in path:
        return "SQLite"
    if not is_ours(path):
        return CLEARING if "memset" in function else "libc and others"
    if is_runtime(function):
        return "Swift's runtime"
    return "Swift's library" if re.match(r"\$sS|\$ss|\$s10Foundation|\$s20FoundationEssentials", function) else "ours"


def demangled(functions):
    if not functions or not shutil.which("swift"):
        return functions
    done = subprocess.run(["swift", "demangle", "--simplified"], input="\n".join(functions), capture_output=True, text=True,
                          timeout=60)
    return done.stdout.splitlines() if done.returncode == 0 else functions


# -- kinds of load --------------------------------------------------------------------------------------------------------


class Kind:
    """A kind of load: `prepare` opens the required streams, `ask` executes the given number of units."""
    units = 2_000
    settings = {}

    def prepare(self, server, process, cores):
        self.server, self.process, self.cores, self.held = server, process, cores, []

    def hold(self, streams, event, ready_event="stream:ready", **options):
        held = Load("sse_load", self.cores.all_load(), port=self.process.port, mode="hold", streams=streams, path="/v1/stream",
                    tokens=token_file(streams), ready_event=ready_event, event=event, open_timeout=300, **options)
        held.ready()
        self.held.append(held)

    def post(self, count, **options):
        result = load("http_load", self.cores.all_load(), timeout=1_200, port=self.process.port, count=count, seconds=1_200,
                      **options)
        if result["good"] < count:
            raise Unavailable(f"{count} were asked, {result['statuses']} answered")

    def use_clock(self):
        """Prepares for a run without callgrind, which allows a higher load."""

    def end(self):
        for held in self.held:
            held.result()


class Badges(Kind):
    """One connection with sequential requests, so that two runs count the same; for the clock 64 connections, as in the
    rows."""
    connections = 1

    def __init__(self, status):
        self.status = status

    def prepare(self, server, process, cores):
        super().prepare(server, process, cores)
        server.call(process, "POST", "/v1/events", {
            "id": "badge-1", "type": "visit.created", "userId": "u1", "data": {"visitId": "v1", "status": "confirmed"}})
        self.header = [f"If-None-Match: {entity_tag(process, token('u1'))}"] if self.status == "304" else []

    def ask(self, count):
        self.post(count, connections=self.connections, path="/v1/badges",
                  header=self.header + [f"Authorization: Bearer {token('u1')}"])

    def use_clock(self):
        self.connections = 64


class Events(Kind):
    """32 connections, a thousand users, and open streams that receive nothing."""
    units = 1_280

    def prepare(self, server, process, cores):
        super().prepare(server, process, cores)
        self.hold(8, "none")
        self.asked = 0

    def ask(self, count):
        self.asked += 1
        self.post(count, connections=32, method="POST", path="/v1/events", header=self.server.publisher, users=1_000,
                  body=self.server.event_body(f"p{self.asked}").replace("u{u}", "user-{u}"))


class Changes(Kind):
    """Batches of 100 rows, watched by ten streams, ten each."""
    units = 2_000
    settings = {"BELLHOP_TABLES": TABLES}

    def prepare(self, server, process, cores):
        super().prepare(server, process, cores)
        rows = [name.replace("{u}", "0") for name in names("a", 100)]
        wishes = [[subscription("items", [item_id(name) for name in rows[stream * 10:stream * 10 + 10]])] for stream in range(10)]
        self.hold(10, "table:change", subscriptions=subscription_file("profile", wishes))
        (WORK / "profile-batch.json").write_text("[" + ",".join(item(name) for name in names("a", 100)) + "]")

    def ask(self, count):
        self.post(count // 100, connections=1, method=CHANGES["publish_method"], path=CHANGES["publish_path"], users=1,
                  header=self.server.publisher, body_file=WORK / "profile-batch.json")


class Fanout(Kind):
    """A barber comes or goes a number of times per second, and a hundred streams receive the queue."""
    units, streams, rate = 60, 100, 10

    def use_clock(self):
        self.rate = 100

    def ask(self, count):
        self.server.open_shops(self.process)
        result = load("sse_load", self.cores.all_load(), timeout=1_200, port=self.process.port, streams=self.streams, mode="paced",
                      rate=self.rate, seconds=count / self.rate, warmup=0, **self.server.fanout(self.streams))
        if result["lost"]:
            raise Unavailable(f"{result['lost']} deliveries did not arrive")


class Opening(Kind):
    """Streams with a token each, which resume after an event of their user, as after a restart."""
    units = 400

    def prepare(self, server, process, cores):
        super().prepare(server, process, cores)
        self.last = newest_event(process)
        server.notifications(process, count=3 * self.units, users=3 * self.units, cores=cores.all_load())

    def ask(self, count):
        self.hold(count, "notification:created", ready_event="notification:created", header=f"Last-Event-ID: {self.last}")


KINDS = {
    "304": (lambda: Badges("304"), "`GET /v1/badges` 304"),
    "200": (lambda: Badges("200"), "`GET /v1/badges` 200"),
    "events": (Events, "`POST /v1/events`, 32 at once"),
    "changes": (Changes, "a change of a row, in batches of 100"),
    "opening": (Opening, "opening a stream, with a JWT and an event to replay"),
    "fan-out": (Fanout, "an event to 100 streams, its request included"),
}


def stripped(path):
    target = WORK / f"profiled-{os.path.basename(path)}"
    subprocess.run(["strip", "-g", "-o", str(target), str(path)], check=True)
    return Binary("profile", target)


def profile(binary, kind, cores):
    """Returns the costs of one unit."""
    def counted(units):
        server = Profiled(binary, settings=kind.settings)
        with server.start(cores.server) as process:
            kind.prepare(server, process, cores)
            kind.ask(units)
            kind.end()
        return Costs.read(server.out)

    fewer = counted(kind.units)
    return counted(3 * kind.units).of_one(fewer, 2 * kind.units)


def processor(binary, kind, cores):
    """Returns the microseconds of one unit outside and inside the kernel, without callgrind. The kernel counts in
    hundredths of a second, so the load continues until it has counted fifty of them."""
    server, units = Bellhop(binary, settings=kind.settings), kind.units
    kind.use_clock()

    def spent(count):
        before = ticks(process.pid)
        kind.ask(count)
        return [now - then for now, then in zip(ticks(process.pid), before)]

    with server.start(cores.server) as process:
        kind.prepare(server, process, cores)
        while True:
            fewer, more = spent(units), spent(3 * units)
            if sum(more) - sum(fewer) >= 0.5:
                break
            units *= 4
        kind.end()
    return [(three - one) / (2 * units) * 1e6 for one, three in zip(fewer, more)]


def ticks(pid):
    """Returns the seconds outside and inside the kernel."""
    fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
    return [int(field) / os.sysconf("SC_CLK_TCK") for field in fields[11:13]]
