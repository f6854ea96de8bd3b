"""Cases about pages of other origins."""

import pytest
from kit.citing import cites
from kit.service import PATH

NAMES = {"event-position", "retry-after", "x-request-id"}


def names(text):
    return {name.strip().lower() for name in (text or "").split(",")}


@cites("S-CORS-1")
def test_configured_origin_may_read_a_stream(user, origin):
    stream = user.open(headers=[("Origin", origin)])
    assert stream.header("access-control-allow-origin") == origin
    assert stream.header("access-control-allow-credentials") == "true"


@cites("S-CORS-1")
def test_configured_origin_may_read_a_refusal(bellhop, origin):
    assert bellhop.request("GET", PATH, [("Origin", origin)]).header("access-control-allow-origin") == origin


@cites("S-CORS-2")
@pytest.mark.parametrize("other", ["https://evil.example", "null", "https://app.example.evil.example"])
def test_other_origin_may_not_read_a_stream(user, other):
    assert user.open(headers=[("Origin", other)]).header("access-control-allow-origin") is None


@cites("S-CORS-3")
def test_page_may_read_the_headers(user, origin):
    answer = user.request("GET", "/v1/badges", headers=[("Origin", origin)])
    assert NAMES <= names(answer.header("access-control-expose-headers"))


@cites("S-CORS-4")
def test_preflight_allows_the_headers_of_streams(bellhop, origin):
    asked = [("Origin", origin), ("Access-Control-Request-Method", "GET"),
             ("Access-Control-Request-Headers", "authorization,last-event-id")]
    answer = bellhop.request("OPTIONS", PATH, asked)
    assert answer.status == 204
    assert {"authorization", "last-event-id"} <= names(answer.header("access-control-allow-headers"))
