"""Reads the metrics of the service."""

from .services import request


def metric(port, name):
    """Returns a figure of /metrics, named with its labels; None if it does not exist yet."""
    _, _, page = request(port, "GET", "/metrics")
    lines = page.decode().splitlines()
    return next((float(line.split()[-1]) for line in lines if line.startswith(f"{name} ")), None)
