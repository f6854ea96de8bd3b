"""Streams of users, and the search for tokens in files."""

import base64
import contextlib
import http.client
import mmap

from harness.waiting import PATIENCE_SECONDS


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


def patterns_of(tokens, browsers):
    """Returns the bytes by which tokens and secrets of browsers could be recognized."""
    patterns = set()
    for token in tokens:
        patterns |= {token.encode(), token.encode().hex().encode()}
        with contextlib.suppress(ValueError):
            patterns.add(bytes.fromhex(token))
    for browser in browsers.values():
        patterns |= {browser.path.encode(), browser.path.encode().hex().encode(), browser.secret,
                     browser.secret.hex().encode(), base64.urlsafe_b64encode(browser.secret).rstrip(b"=")}
    return patterns


def found_in(path, patterns):
    """Returns the patterns that a file contains. PostgreSQL may have deleted the file meanwhile."""
    with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
        if path.stat().st_size:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                return [pattern for pattern in patterns if content.find(pattern) >= 0]
    return []
