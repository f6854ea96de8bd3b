"""A history: the operations of clients, each with the time of its call and of its answer.

An operation without an answer may have taken effect at any time after its call, or never.
"""

import contextlib
import threading
import time
from typing import Any, NamedTuple

# The value of an operation whose answer was lost.
UNKNOWN = "unknown"
# The time of an answer that never came.
NEVER = float("inf")


class NeverSent(Exception):
    """A request that the service cannot have received, such as one whose connection was refused. It is no operation."""


class Operation(NamedTuple):
    client: str
    # The object to which it belongs. Objects are independent, so each is judged by itself.
    key: str
    name: str
    argument: Any
    value: Any
    called: float
    answered: float

    def __str__(self):
        end = "never" if self.answered == NEVER else f"{self.answered:.6f}"
        return f"{self.called:.6f} to {end}: {self.client} {self.name}({self.argument}) = {self.value}"


class History:
    """Records operations of several threads."""

    def __init__(self, clock=time.monotonic):
        self.operations = []
        self._clock = clock
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def operation(self, client, key, name, argument=None):
        """Records one operation. The block calls the given function with the value that was answered. A block that ends
        with an error before has no answer."""
        answers = []
        called, is_sent = self._clock(), True
        try:
            yield lambda value: answers.append((value, self._clock()))
        except NeverSent:
            is_sent = False
            raise
        finally:
            value, answered = answers[0] if answers else (UNKNOWN, NEVER)
            if is_sent:
                with self._lock:
                    self.operations.append(Operation(client, key, name, argument, value, called, answered))

    def by_key(self):
        """Returns the operations of each key."""
        found = {}
        for operation in self.operations:
            found.setdefault(operation.key, []).append(operation)
        return found
