"""A run: what it measures with, and the rows it goes through."""

import contextlib
import dataclasses
import time
from collections.abc import Callable

from .changes import ChangeRows
from .fanout import FanoutRows
from .feeds import FeedRows
from .leaderboards import LeaderboardRows
from .machine import WORK, Unavailable, say
from .messages import MessageRows
from .replicas import ReplicaRows
from .report import Row
from .requests import RequestRows
from .servers import token
from .sizes import SizeRows
from .streams import StreamRows
from .turns import take_turns

TURNS, TURNS_QUICK = 3, 2
TURNS_COMPARING, TURNS_QUICK_COMPARING = 5, 4


@dataclasses.dataclass(frozen=True)
class Pace:
    """How long loads last, and how often they are repeated."""
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
        return self.pick(0.4, 2.0)

    @property
    def warmup(self):
        return self.pick(0.2, 0.5)


@dataclasses.dataclass(frozen=True)
class Group:
    """Rows that are measured together. `quick_seconds` is what --quick gives them; without, they take longer than it has."""
    name: str
    title: str
    measure: Callable
    quick_seconds: float | None
    needs: tuple = ()
    alias: str = ""


class Bench:
    def __init__(self, report, cores, executables, binaries, pace, deadline):
        self.report, self.cores, self.executables, self.binaries = report, cores, executables, binaries
        self.pace, self.deadline = pace, deadline
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

    def take_turns(self, service=None, peers=None, turns=None):
        """`service` is measured with each binary. Fewer turns than usual, for what hardly varies, are so without another
        binary only."""
        contestants = {binary.name: (lambda binary=binary: service(binary)) for binary in self.binaries} if service else {}
        if self.is_comparing or not turns:
            turns = max(turns or 1, self.pace.turns)
        return take_turns({**contestants, **(peers or {})}, turns, self.deadline, self.is_comparing)

    @contextlib.contextmanager
    def allowance(self, seconds):
        """What is measured within has so long, and not longer than the whole."""
        outer, self.deadline = self.deadline, min(self.deadline, time.monotonic() + seconds)
        try:
            yield
        finally:
            self.deadline = outer

    def part(self, title, measure):
        """Whatever goes wrong becomes a visible row, and the other parts still run."""
        say(f"bench: {title}")
        try:
            if time.monotonic() > self.deadline:
                raise Unavailable("not measured: the time of the run was used up")
            measure()
        except Unavailable as error:
            self.fail(title, str(error))
        except Exception as error:  # noqa: BLE001: a defect in one group must not cost the table
            self.fail(title, f"{type(error).__name__}: {error}")

    def parts(self, parts):
        """Parts of a group share what --quick gives it."""
        for number, (title, measure) in enumerate(parts):
            left = self.deadline - time.monotonic()
            with self.allowance(max(1, left / (len(parts) - number)) if self.pace.is_quick else left):
                self.part(title, measure)

    def fail(self, title, reason):
        say(f"bench:   not available: {reason}")
        self.report.add(Row(title, ours=f"not available: {reason}"))

    def run(self, groups, is_chosen):
        (WORK / "one-token.txt").write_text(token("u1") + "\n")
        for group in groups:
            begin = time.monotonic()
            if not self.pace.is_quick:
                self.part(group.title, lambda: group.measure(self))
            elif group.quick_seconds is None and not is_chosen:
                self.fail(group.title, f"too long for a quick look; `Benchmarks/run --rows {group.name}` measures it")
            else:
                with self.allowance(self.quick_seconds(group)):
                    self.part(group.title, lambda: group.measure(self))
            say(f"bench:   {group.name}: {time.monotonic() - begin:.1f} s")

    def quick_seconds(self, group):
        return (group.quick_seconds or 60) * self.pace.turns / TURNS_QUICK * len(self.binaries)


PEERS = ("transport", "peers", "nchan")

GROUPS = [
    *(Group(f"fan-out-{streams}", f"Fan-out to {streams:,} streams, 1 shard, 1 core",
            lambda bench, streams=streams: FanoutRows(bench).fan_out(streams), quick, PEERS, "fan-out")
      for streams, quick in ((10, 7), (100, 7), (1_000, 8), (10_000, None))),
    Group("burst", "Burst of 8 events, 1,000 streams", lambda bench: FanoutRows(bench).burst(), 7, ("transport",)),
    Group("shards", "2 shards / 1 shard, 10,000 streams", lambda bench: FanoutRows(bench).two_shards(), 12, ("transport",)),
    Group("memory", "Memory per idle stream", lambda bench: StreamRows(bench).memory(), 8, PEERS),
    Group("targeted", "CPU per targeted event", lambda bench: StreamRows(bench).targeted(), 7, ("transport",)),
    Group("rest", "REST p99 during a fan-out / idle", lambda bench: StreamRows(bench).rest_during_fanout(), 8),
    Group("disconnect", "Disconnection noticed", lambda bench: StreamRows(bench).disconnection(), 1),
    Group("latency", "Commit → client", lambda bench: StreamRows(bench).commit_to_client(), 5),
    Group("304", "`GET /v1/badges` 304", lambda bench: RequestRows(bench).badges("304"), 5, ("peers",), "badges"),
    Group("200", "`GET /v1/badges` 200", lambda bench: RequestRows(bench).badges("200"), 5, ("peers",), "badges"),
    Group("events", "Durable notifications", lambda bench: RequestRows(bench).durable_notifications(), 5, (), "durable"),
    Group("filtered", "One change of one filtered id", lambda bench: ChangeRows(bench).one_change(), 7, (), "changes"),
    Group("ingest", "Table changes", lambda bench: ChangeRows(bench).ingest(), 10, ("nchan",), "changes"),
    Group("morning", "Morning rush", lambda bench: ChangeRows(bench).morning(), 6, (), "changes"),
    Group("likes", "A day of likes", lambda bench: ChangeRows(bench).day_of_likes(), 6, (), "changes"),
    Group("table-memory", "Memory per stream with tables", lambda bench: ChangeRows(bench).memory(), 6, (), "changes"),
    Group("table-latency", "Change of a row → client", lambda bench: ChangeRows(bench).latency(), 8, (), "changes"),
    Group("postgres", "Two replicas on PostgreSQL", lambda bench: ReplicaRows(bench).measure(), 28, ("postgresql",)),
    Group("order", "Commit order on PostgreSQL", lambda bench: ReplicaRows(bench).order(), None, ("postgresql",)),
    Group("leaderboards", "Leaderboards", lambda bench: LeaderboardRows(bench).measure(), 8, ("redis",)),
    Group("feed", "Posts and feeds", lambda bench: FeedRows(bench).measure(), 4),
    Group("messages", "Messages", lambda bench: MessageRows(bench).measure(), 12),
    Group("start", "Start to first answer", lambda bench: SizeRows(bench).start(), 2),
    Group("growth", "Growth with stored notifications", lambda bench: SizeRows(bench).growth(), 6),
    Group("image", "Container image", lambda bench: SizeRows(bench).image(), 0.1),
]


def chosen(names):
    """Groups by their own names or the one they share; all for none. Raises KeyError for a name that is not there."""
    known = {name for group in GROUPS for name in (group.name, group.alias) if name}
    if unknown := set(names) - known:
        raise KeyError(", ".join(sorted(unknown)))
    return [group for group in GROUPS if not names or group.name in names or group.alias in names]
