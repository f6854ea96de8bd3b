"""Turns: contestants are measured alternately, so that a slow minute of the machine affects all."""

import contextlib
import dataclasses
import time

from .figures import Figures
from .machine import Unavailable, say

THIS, AGAINST = "this", "against"


@dataclasses.dataclass(frozen=True)
class Binary:
    """A build of the service. Its name separates the databases and logs of two builds that run side by side."""
    name: str
    path: object

    @property
    def executable(self):
        if isinstance(self.path, Unavailable):
            raise self.path
        return self.path


class Servers(contextlib.ExitStack):
    """Servers of one row, each started at its first use and stopped with the row."""

    def __init__(self):
        super().__init__()
        self._running = {}

    def get(self, key, start):
        if key not in self._running:
            self._running[key] = self.enter_context(start())
        return self._running[key]


class Found:
    """The results of each contestant's turns, by the names of the figures, or the reason for their absence."""

    def __init__(self, is_comparing):
        self.is_comparing, self.turns, self.reasons = is_comparing, {}, {}

    def peer(self, key, name):
        return Figures([turn[name] for turn in self.turns.get(key, [])], self.reasons.get(key, "not measured"))

    def ours(self, name):
        figures = self.peer(THIS, name)
        figures.against = self.peer(AGAINST, name) if self.is_comparing else None
        return figures

    def last(self, name):
        """Returns data of this binary's last turn that are not figures, such as the lines of a table."""
        if not self.turns.get(THIS):
            raise Unavailable(self.reasons.get(THIS, "not measured"))
        return self.turns[THIS][-1][name]


def take_turns(contestants, turns, turns_min, deadline, is_comparing):
    """Measures each contestant once per turn, in reversed order in the next turn. A turn is skipped if the remaining
    time is too short, except the first ones. A contestant that fails is not measured again; its earlier turns count."""
    found, order = Found(is_comparing), list(contestants)
    for turn in range(turns):
        begin = time.monotonic()
        for key in order:
            if key in found.reasons:
                continue
            try:
                found.turns.setdefault(key, []).append(contestants[key]())
            except (Unavailable, OSError, ValueError) as error:
                found.reasons[key] = str(error)
                say(f"bench:   {key}: {error}")
        order.reverse()
        now = time.monotonic()
        if turn + 1 >= turns_min and now + (now - begin) > deadline:
            break
    return found
