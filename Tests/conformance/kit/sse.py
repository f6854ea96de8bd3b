"""A parser of Server-Sent Events that keeps every byte. It accepts LF, CR and CRLF, as the WHATWG standard does."""

from typing import NamedTuple


class Block(NamedTuple):
    """The lines up to an empty line. An absent field is None."""

    name: str | None
    data: str | None
    id: str | None
    retry: str | None
    comments: tuple
    lines: tuple

    @property
    def is_event(self):
        """Whether a client dispatches an event. The WHATWG standard requires data for it."""
        return self.data is not None

    @property
    def is_comment(self):
        return bool(self.comments) and len(self.comments) == len(self.lines)

    @property
    def is_heartbeat(self):
        """Whether the block shows life and has no effect. nchan adds a name without data to its comments."""
        return bool(self.comments) and (self.data, self.id, self.retry) == (None, None, None)

    def encoded(self):
        return b"".join(line + b"\n" for line in self.lines) + b"\n"


class Parser:
    """Splits the bytes of a stream into blocks. A block that was cut off is not returned."""

    def __init__(self):
        self.rest = b""
        self.lines = []

    def feed(self, piece):
        self.rest += piece
        blocks = []
        while (line := self._line()) is not None:
            if line:
                self.lines.append(line)
            elif self.lines:
                blocks.append(block_of(self.lines))
                self.lines = []
        return blocks

    def _line(self):
        """Takes the next line; None if its end is not there yet."""
        ends = [place for place in (self.rest.find(b"\n"), self.rest.find(b"\r")) if place >= 0]
        if not ends:
            return None
        end = min(ends)
        after = end + 1
        if self.rest[end:after] == b"\r":
            if after == len(self.rest):
                return None  # The next byte decides whether this is a CRLF.
            if self.rest[after:after + 1] == b"\n":
                after += 1
        line, self.rest = self.rest[:end], self.rest[after:]
        return line


def block_of(lines):
    fields, data, comments = {}, [], []
    for line in lines:
        field, colon, value = line.decode().partition(":")
        value = value.removeprefix(" ")
        if colon and not field:
            comments.append(value)
        elif field == "data":
            data.append(value)
        elif field in ("event", "id", "retry"):
            fields[field] = value
    return Block(
        fields.get("event"), "\n".join(data) if data else None, fields.get("id"), fields.get("retry"), tuple(comments),
        tuple(lines))
