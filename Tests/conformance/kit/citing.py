"""The mark of a case."""

import pytest


def cites(*numbers):
    """Names the sentences of Docs/protocol.md that a case tests."""
    return pytest.mark.cites(*numbers)
