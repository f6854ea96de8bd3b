"""The building blocks of mutants: conditions of requests, and edits of requests, answers and blocks."""

import json
import re

from .mutation import Response
from .service import PATH
from .sse import block_of


def is_opening(request):
    return request.path == PATH


def at(path, method=None):
    """Returns the condition that a request has a path, given as a pattern, and a method."""
    return lambda request: re.fullmatch(path, request.path) is not None and method in (None, request.method)


# MARK: Answers


def stream_header(name, value):
    """Sets a header of streams; None removes it."""
    def edit(request, answer, _):
        if answer.is_stream:
            answer.set(name, value)
    return edit


def header(name, value, when, status=None):
    """Sets a header of answers; None removes it."""
    def edit(request, answer, _):
        if when(request) and status in (None, answer.status):
            answer.set(name, value)
    return edit


def status(old, new, when=is_opening, code=None):
    """Changes a status. A refusal that becomes 200 is a stream without events."""
    def edit(request, answer, _):
        if answer.status != old or not when(request) or (code and (answer.json or {}).get("code") != code):
            return
        if new == 200 and is_opening(request):
            fake = Response.of_stream()
            answer.headers, answer.body = fake.headers, fake.body
        answer.status = new
    return edit


def problem(change):
    """Changes problem documents. The function receives the members and the request."""
    def edit(request, answer, _):
        if answer.status >= 400 and isinstance(answer.json, dict):
            members = answer.json
            change(members, request)
            answer.json = members
    return edit


def body(when, change):
    """Changes a JSON answer. The function receives the value, and returns the new one or None."""
    def edit(request, answer, proxy):
        if when(request) and answer.json is not None:
            value = answer.json
            changed = change(value)
            answer.json = value if changed is None else changed
    return edit


# MARK: Requests


def without_header(name, when=is_opening):
    def edit(request, _):
        if when(request):
            request.set(name, None)
    return edit


def parameters(change, when=is_opening):
    """Changes the parameters of a query: a function from pairs to pairs."""
    def edit(request, _):
        if when(request) and request.query:
            request.parameters = change(request.parameters)
    return edit


def without_parameter(*names):
    return parameters(lambda pairs: [pair for pair in pairs if pair[0] not in names])


def without_position(request, _):
    """Removes the position from which a stream resumes."""
    if is_opening(request):
        request.set("Last-Event-ID", None)
        without_parameter("lastEventId")(request, _)


def sent(when, change):
    """Changes the JSON body of a request."""
    def edit(request, _):
        if when(request) and request.json is not None:
            value = request.json
            changed = change(value)
            request.json = value if changed is None else changed
    return edit


def each_event(change):
    """Changes each event of a request to publish."""
    def change_all(value):
        for event in value if isinstance(value, list) else [value]:
            change(event)
    return sent(at("/v1/publish", "POST"), change_all)


def resigned(when, repair):
    """Accepts a token that the service refuses: signs its claims again after a repair.

    - when: whether the claims are affected. They are None for a text that is no token.
    """
    def edit(request, proxy):
        if not is_opening(request) or request.header("Authorization") is None:
            return
        claims = request.claims
        if when(claims):
            request.set("Authorization", f"Bearer {proxy.sign(**repair(claims))}")
    return edit


def refuse(when, code, status=400):
    """Refuses requests in place of the service."""
    def edit(request, proxy):
        if when(request):
            request.answer = Response.of_json(status, {"code": code, "status": status}, "application/problem+json")
    return edit


# MARK: Blocks


def every(change):
    """Returns a handler factory without a state: a function from a block to blocks."""
    return lambda request, proxy: change


def events(names, change):
    """Changes events whose name matches a pattern; other blocks pass."""
    def handle(block):
        return change(block) if block.is_event and re.fullmatch(names, block.name or "") else [block]
    return every(handle)


def dropped(names):
    return events(names, lambda block: [])


def with_fields(block, **fields):
    """Returns a block with other values of fields; None removes a field."""
    lines = []
    for line in block.lines:
        name = line.partition(b":")[0].decode()
        if name not in fields:
            lines.append(line)
    added = [f"{name}: {value}".encode() for name, value in fields.items() if value is not None]
    return block_of([*added, *lines])


def with_data(change):
    """Changes the data of an event, parsed. The function changes the value or returns a new one."""
    def edit(block):
        value = json.loads(block.data)
        changed = change(value)
        return [with_fields(block, data=json.dumps(value if changed is None else changed))]
    return edit


def data_of(names, change):
    return events(names, with_data(change))


def field_of(names, **fields):
    return events(names, lambda block: [with_fields(block, **fields)])


def resumed(make):
    """Applies a handler only to streams that resume."""
    return lambda request, proxy: make(request, proxy) if request.position else lambda block: [block]


def added_event(name, value, identifier=None):
    lines = [f"event: {name}".encode(), f"data: {json.dumps(value)}".encode()]
    return block_of(([f"id: {identifier}".encode()] if identifier else []) + lines)
