"""Turns: contestants are measured one after the other, again and again, so that a slow minute of the machine hits all."""

import contextlib
import dataclasses
import time

from .figures import Figures
from .machine import Unavailable, say

THIS, AGAINST = "this", "against"


@dataclasses.dataclass(frozen=True)
class Binary:
    """A build of the service. Its name parts databases and logs of two that run side by side."""
    name: str
    path: object

    @property
    def executable(self):
        if isinstance(self.path, Unavailable):
            raise self.path
        return self.path


class Servers(contextlib.ExitStack):
    """Servers of one row, each started when it is first asked for, and stopped with the row."""

    def __init__(self):
        super().__init__()
        self._running = {}

    def get(self, key, start):
        if key not in self._running:
            self._running[key] = self.enter_context(start())
        return self._running[key]


class Found:
    """What the turns of each contestant gave, by the names of the figures; or why there is nothing."""

    def __init__(self, is_comparing):
        self.is_comparing, self.turns, self.reasons = is_comparing, {}, {}

    def peer(self, key, name):
        return Figures([turn[name] for turn in self.turns.get(key, [])], self.reasons.get(key, "not measured"))

    def ours(self, name):
        figures = self.peer(THIS, name)
        figures.against = self.peer(AGAINST, name) if self.is_comparing else None
        return figures

    def last(self, name):
        """Of this binary's last turn: what is no figure, such as the lines of a table."""
        if not self.turns.get(THIS):
            raise Unavailable(self.reasons.get(THIS, "not measured"))
        return self.turns[THIS][-1][name]


def take_turns(contestants, turns, turns_min, deadline, is_comparing):
    """Measures each contestant once in each turn, and the other way round in the next one. A turn for which the time will not
    do is left out, but for the first ones. Who fails is asked no more; its earlier turns count."""
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
