"""Waits for conditions."""

import os
import time

# Only a failing test waits this long. On a busy machine, a step of milliseconds can take a minute.
PATIENCE_SECONDS = int(os.environ.get("PATIENCE_SECONDS", "180"))


class Failed(Exception):
    """A test found a difference."""


def wait_until(condition, what, problems=(), seconds=PATIENCE_SECONDS, error=Failed):
    """Polls a condition until it holds; returns its value.

    - what: names the condition in the error. A function is called at the end of the time.
    - problems: texts of other threads; the first one ends the wait.
    """
    end = time.monotonic() + seconds
    while not (found := condition()):
        if problems:
            raise error("; ".join(problems[:3]))
        if time.monotonic() > end:
            raise error(f"waited {seconds} s for {what() if callable(what) else what}")
        time.sleep(0.01)
    return found


def seconds_until(*wait):
    """Waits like `wait_until`; returns the seconds that this took."""
    start = time.monotonic()
    wait_until(*wait)
    return time.monotonic() - start
