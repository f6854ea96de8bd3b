"""Reads Server-Sent Events."""

from typing import NamedTuple


class Event(NamedTuple):
    """An event as sent. A block without data has only an id, which moves the position of the stream."""

    name: str | None
    data: str
    id: str | None


class EventReader:
    """Splits the bytes of a stream into events. An event that was cut off is not returned."""

    def __init__(self):
        self.rest = b""

    def feed(self, piece):
        *blocks, self.rest = (self.rest + piece).split(b"\n\n")
        return [event(block.decode()) for block in blocks]


def event(block):
    name, data, identifier = None, [], None
    for line in block.split("\n"):
        if line.startswith("event: "):
            name = line[7:]
        elif line.startswith("data: "):
            data.append(line[6:])
        elif line.startswith("id: "):
            identifier = line[4:]
    return Event(name, "\n".join(data), identifier)


def events_of(response):
    """Yields the events of an open response of http.client until it ends."""
    reader = EventReader()
    while piece := response.read1(1 << 16):
        yield from reader.feed(piece)
