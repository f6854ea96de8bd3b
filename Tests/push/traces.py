"""Streams of users, and the search for tokens in files."""

import base64
import contextlib
import http.client
import mmap
import secrets

from harness.waiting import PATIENCE_SECONDS

# All tokens and secrets of devices contain it, so that few searches find any of them.
MARK = "5ec7e7ca11ab1e5ec7e7"
MARK_BYTES = bytes.fromhex(MARK)[:9]
# The mark in texts and in bytes, and both in base64 and in hexadecimal digits.
PATTERNS = {
    MARK.encode(), MARK_BYTES[:8], MARK.encode().hex().encode(), base64.urlsafe_b64encode(MARK.encode()[:18]),
    base64.urlsafe_b64encode(MARK_BYTES[:6]),
}


def new_token():
    """Returns a token of a device: 32 bytes in hexadecimal digits."""
    return MARK + secrets.token_hex(22)


@contextlib.contextmanager
def stream(replica, bearer):
    """Holds an open stream of a user."""
    connection = http.client.HTTPConnection("127.0.0.1", replica.port, timeout=PATIENCE_SECONDS)
    try:
        connection.request("GET", "/v1/stream", headers={"Authorization": f"Bearer {bearer}"})
        answer = connection.getresponse()
        assert answer.status == 200
        answer.read1(1)
        yield
    finally:
        connection.close()


def found_in(path, patterns):
    """Returns the patterns that a file contains. PostgreSQL may have deleted the file meanwhile."""
    with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
        if path.stat().st_size:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                return [pattern for pattern in patterns if content.find(pattern) >= 0]
    return []
