"""Ports for servers of tests."""

import contextlib
import random
import socket

_choices = random.SystemRandom()


def free_port():
    """Returns an unused port below the range from which the system assigns ports (32768 and up). While a server is down,
    a connection of another test could otherwise get its port."""
    while True:
        port = _choices.randrange(10_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


if __name__ == "__main__":
    print(free_port())
