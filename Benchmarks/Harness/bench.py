"""One run: its settings and its rows."""

import contextlib
import dataclasses
import time
from collections.abc import Callable

from .allocations import AllocationRows
from .changes import ChangeRows
from .fanout import FanoutRows
from .feeds import FeedRows
from .leaderboards import LeaderboardRows
from .machine import WORK, Unavailable, say
from .messages import MessageRows
from .notifications import NotificationRows
from .pushes import PushRows
from .replicas import ReplicaRows
from .report import Row
from .requests import RequestRows
from .servers import token
from .sizes import SizeRows
from .source import SourceRows
from .streams import StreamRows
from .turns import take_turns

TURNS, TURNS_QUICK = 3, 1
TURNS_COMPARING, TURNS_QUICK_COMPARING = 5, 3


@dataclasses.dataclass(frozen=True)
class Pace:
    """The duration of loads and the number of their repetitions."""
    is_quick: bool
    turns: int

    @staticmethod
    def of(is_quick, is_comparing, turns=None):
        usual = (TURNS_QUICK_COMPARING if is_comparing else TURNS_QUICK) if is_quick else (
            TURNS_COMPARING if is_comparing else TURNS)
        return Pace(is_quick, turns or usual)

    def pick(self, short, long):
        return short if self.is_quick else long

    @property
    def seconds(self):
        return self.pick(0.4, 1.5)

    @property
    def warmup(self):
        return self.pick(0.2, 0.5)


@dataclasses.dataclass(frozen=True)
class Group:
    """Rows that are measured together. Further turns begin until `seconds` (or `quick_seconds` in a quick run) have
    passed; both are for one binary and the usual turns. `pinning` selects their cores."""
    name: str
    title: str
    measure: Callable
    quick_seconds: float
    seconds: float
    pinning: str = "one"
    needs: tuple = ()
    alias: str = ""


class Bench:
    def __init__(self, report, cores, executables, binaries, pace, deadline):
        self.report, self.cores, self.executables, self.binaries = report, cores, executables, binaries
        # After the deadline no further turn begins, and after the end no further row.
        self.pace, self.deadline, self.end = pace, deadline, deadline
        self.client_threads = len(cores.load)

    @property
    def is_comparing(self):
        return len(self.binaries) > 1

    @property
    def this(self):
        return self.binaries[0]

    def executable(self, name):
        value = self.executables[name]
        if isinstance(value, Unavailable):
            raise value
        return value

    def take_turns(self, service=None, peers=None, turns=None, once=False):
        """Measures `service` with each binary. `turns` reduces the turns of loads with a long preparation, but only
        without another binary. `once` is for counts and for values that hardly vary."""
        contestants = {binary.name: (lambda binary=binary: service(binary)) for binary in self.binaries} if service else {}
        if not turns or self.is_comparing or self.pace.is_quick:
            turns = self.pace.turns
        # A single turn would leave the row without a spread, and therefore without a verdict.
        return take_turns({**contestants, **(peers or {})}, 1 if once else turns, self.pace.pick(1, 2), self.deadline,
                          self.is_comparing)

    @contextlib.contextmanager
    def allowance(self, seconds):
        """Limits the time of the measurements inside, at most to the rest of the run."""
        outer, self.deadline = self.deadline, min(self.deadline, time.monotonic() + seconds)
        try:
            yield
        finally:
            self.deadline = outer

    def part(self, title, measure):
        """Measures one part. An error becomes a visible row, and the other parts still run."""
        say(f"bench: {title}")
        try:
            if time.monotonic() > self.end:
                raise Unavailable("not measured: the time of the run was used up")
            measure()
        except Unavailable as error:
            self.fail(title, str(error))
        except Exception as error:  # noqa: BLE001: a defect in one group must not cost the table
            self.fail(title, f"{type(error).__name__}: {error}")

    def parts(self, parts):
        """Measures the parts of a group, which share its time."""
        for number, (title, measure) in enumerate(parts):
            begin = time.monotonic()
            with self.allowance(max(1, (self.deadline - begin) / (len(parts) - number))):
                self.part(title, measure)
            say(f"bench:     {time.monotonic() - begin:.1f} s")

    def fail(self, title, reason):
        say(f"bench:   not available: {reason}")
        self.report.add(Row(title, ours=f"not available: {reason}"))

    def run(self, groups):
        (WORK / "one-token.txt").write_text(token("u1") + "\n")
        for group in groups:
            begin = time.monotonic()
            self.report.cores = self.cores.words(group.pinning)
            with self.allowance(self.seconds(group)):
                self.part(group.title, lambda: group.measure(self))
            say(f"bench:   {group.name}: {time.monotonic() - begin:.1f} s")

    def seconds(self, group):
        usual = self.pace.turns / (TURNS_QUICK if self.pace.is_quick else TURNS)
        return self.pace.pick(group.quick_seconds, group.seconds) * max(1, usual) * len(self.binaries)

PEERS = ("transport", "peers", "nchan")

GROUPS = [
    *(Group(f"fan-out-{streams}", f"Fan-out to {streams:,} streams, 1 shard, 1 core",
            lambda bench, streams=streams: FanoutRows(bench).fan_out(streams), quick, seconds, "one", PEERS, "fan-out")
      for streams, quick, seconds in ((10, 4, 35), (100, 4, 35), (1_000, 5, 40), (10_000, 8, 70))),
    *(Group(f"room-{streams}", f"Fan-out to {streams:,} streams, 16 events on their way",
            lambda bench, streams=streams: FanoutRows(bench).small_room(streams), 4, 20, "one", (), "fan-out")
      for streams in (10, 100)),
    Group("burst", "Burst of 8 events, 1,000 streams", lambda bench: FanoutRows(bench).burst(), 4, 25, "one", ("transport",)),
    Group("shards", "2 shards / 1 shard, 10,000 streams", lambda bench: FanoutRows(bench).two_shards(), 8, 50, "two",
          ("transport",)),
    Group("memory", "Memory per idle stream", lambda bench: StreamRows(bench).memory(), 8, 30, "one", PEERS),
    Group("opening", "Opening streams", lambda bench: StreamRows(bench).opening(), 4, 20, "one"),
    Group("targeted", "CPU per targeted event", lambda bench: StreamRows(bench).targeted(), 6, 45, "one", ("transport",)),
    Group("rest", "REST p99 during a fan-out / idle", lambda bench: StreamRows(bench).rest_during_fanout(), 5, 30, "two"),
    Group("disconnect", "Disconnection detected", lambda bench: StreamRows(bench).disconnection(), 1, 3, "one"),
    Group("latency", "Commit → client", lambda bench: StreamRows(bench).commit_to_client(), 5, 30, "two"),
    Group("304", "`GET /v1/badges` 304", lambda bench: RequestRows(bench).badges("304"), 3, 25, "one", ("peers",), "badges"),
    Group("200", "`GET /v1/badges` 200", lambda bench: RequestRows(bench).badges("200"), 3, 25, "one", ("peers",), "badges"),
    Group("events", "Durable notifications", lambda bench: NotificationRows(bench).durable(), 4, 20, "two", (), "durable"),
    Group("stops", "Writes without a pause", lambda bench: NotificationRows(bench).stops(), 5, 75, "two", (), "durable"),
    Group("publish", "Events of one's own", lambda bench: NotificationRows(bench).publish(), 4, 20, "two", (), "durable"),
    Group("webhooks", "Webhooks", lambda bench: NotificationRows(bench).webhooks(), 10, 40, "two", (), "durable"),
    Group("at-once", "A webhook at once", lambda bench: NotificationRows(bench).at_once(), 10, 40, "two", (), "durable"),
    Group("pushes", "Push messages", lambda bench: PushRows(bench).measure(), 20, 90, "one"),
    Group("allocations", "Heap allocations", lambda bench: AllocationRows(bench).measure(), 6, 15, "one"),
    Group("filtered", "One change of one filtered id", lambda bench: ChangeRows(bench).one_change(), 5, 60, "one", (), "changes"),
    Group("ingest", "Table changes", lambda bench: ChangeRows(bench).ingest(), 10, 90, "two", ("nchan",), "changes"),
    Group("morning", "Morning rush", lambda bench: ChangeRows(bench).morning(), 6, 10, "one", (), "changes"),
    Group("likes", "A day of likes", lambda bench: ChangeRows(bench).day_of_likes(), 5, 20, "two", (), "changes"),
    Group("table-memory", "Memory per stream with tables", lambda bench: ChangeRows(bench).memory(), 5, 30, "one", (), "changes"),
    Group("table-latency", "Change of a row → client", lambda bench: ChangeRows(bench).latency(), 6, 45, "two", (), "changes"),
    Group("source", "Rows of an app's log", lambda bench: SourceRows(bench).taken_in(), 12, 60, "postgresql", ("postgresql",)),
    Group("source-latency", "Commit in the app's database → client", lambda bench: SourceRows(bench).latency(), 10, 60,
          "postgresql", ("postgresql",), "source"),
    Group("postgres", "Two replicas on PostgreSQL", lambda bench: ReplicaRows(bench).measure(), 30, 200, "postgresql",
          ("postgresql",)),
    Group("order", "Commit order on PostgreSQL", lambda bench: ReplicaRows(bench).order(), 15, 35, "two", ("postgresql",)),
    Group("leaderboards", "Leaderboards", lambda bench: LeaderboardRows(bench).measure(), 8, 60, "one", ("redis",)),
    Group("feed", "Posts and feeds", lambda bench: FeedRows(bench).measure(), 5, 20, "one"),
    Group("messages", "Messages", lambda bench: MessageRows(bench).measure(), 8, 50, "two"),
    Group("start", "Start to first answer", lambda bench: SizeRows(bench).start(), 2, 5, "one"),
    Group("growth", "Growth with stored notifications", lambda bench: SizeRows(bench).growth(), 6, 60, "two"),
    Group("image", "Container image", lambda bench: SizeRows(bench).image(), 1, 1, "one"),
]


def chosen(names):
    """Returns the groups with these names or aliases; all groups without names. Raises KeyError for an unknown name."""
    known = {name for group in GROUPS for name in (group.name, group.alias) if name}
    if unknown := set(names) - known:
        raise KeyError(", ".join(sorted(unknown)))
    return [group for group in GROUPS if not names or group.name in names or group.alias in names]
