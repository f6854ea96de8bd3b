"""Cases about the opening of a stream."""

import pytest
from kit.citing import cites
from kit.service import PATH


@cites("S-OPEN-1")
def test_stream_is_answered_with_200_and_its_content_type(user):
    stream = user.connect()
    assert stream.status == 200
    assert stream.header("content-type").split(";")[0] == "text/event-stream"


@cites("S-OPEN-2")
def test_answer_is_not_stored_by_caches(user):
    directives = user.open().header("cache-control").replace(" ", "").split(",")
    assert {"no-store", "no-transform"} <= set(directives)


@cites("S-OPEN-3")
def test_answer_turns_off_buffering_of_proxies(user):
    assert user.open().header("x-accel-buffering") == "no"


@cites("S-OPEN-4")
def test_answer_has_no_length(user):
    assert user.open().header("content-length") is None


@cites("S-OPEN-4")
def test_answer_is_not_compressed_even_if_the_client_accepts_it(user):
    stream = user.open(headers=[("Accept-Encoding", "gzip, br, deflate")])
    assert stream.header("content-encoding") is None


@cites("S-OPEN-5")
def test_vary_names_the_credentials(user):
    names = {name.strip().lower() for name in (user.open().header("vary") or "").split(",")}
    assert {"authorization", "cookie"} <= names


@cites("S-OPEN-6")
def test_stream_has_a_request_id(user):
    assert user.open().header("x-request-id")


@cites("S-OPEN-6")
def test_refusal_has_a_request_id(bellhop):
    assert bellhop.request("GET", PATH).header("x-request-id")


@cites("S-OPEN-6")
def test_request_ids_differ(user):
    assert user.open().header("x-request-id") != user.open().header("x-request-id")


@cites("S-OPEN-7")
@pytest.mark.parametrize("name", ["a", "kit-1_2.3:4", "x" * 64])
def test_request_id_of_the_client_is_repeated(user, name):
    assert user.open(headers=[("X-Request-Id", name)]).header("x-request-id") == name


@cites("S-OPEN-8")
@pytest.mark.parametrize("accept", ["text/event-stream", "application/json", "*/*", "image/png;q=1"])
def test_accept_is_ignored(user, accept):
    stream = user.open(headers=[("Accept", accept)])
    assert stream.header("content-type") == "text/event-stream"


@cites("S-OPEN-9")
def test_head_has_the_headers_of_a_stream_and_no_body(user):
    answer = user.request("HEAD", PATH)
    assert (answer.status, answer.header("content-type"), answer.body) == (200, "text/event-stream", b"")


@cites("S-TOKEN-2")
def test_head_without_credentials_is_refused(bellhop):
    answer = bellhop.request("HEAD", PATH)
    assert (answer.status, answer.body) == (401, b"")


@cites("S-OPEN-10")
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_other_methods_are_refused(user, method):
    answer = user.request(method, PATH, {} if method != "DELETE" else None)
    assert answer.status == 405
    assert "GET" in answer.header("allow").split(", ")


@cites("S-OPEN-11")
def test_options_lists_the_methods(bellhop):
    answer = bellhop.request("OPTIONS", PATH)
    assert answer.status == 204
    assert "GET" in answer.header("allow").split(", ")


@cites("S-OPEN-12")
def test_further_streams_of_a_user_are_refused(bellhop, user):
    maximum = bellhop.configuration()["stream"]["perUserMax"]
    for _ in range(maximum):
        user.open()
    refused = user.request("GET", PATH)
    assert (refused.status, refused.json["code"]) == (429, "stream.too_many")
    assert int(refused.header("retry-after")) > 0


@cites("S-OPEN-13")
def test_ended_stream_makes_room(bellhop, user, eventually):
    maximum = bellhop.configuration()["stream"]["perUserMax"]
    streams = [user.open() for _ in range(maximum)]
    streams[0].close()
    eventually(lambda: user.connect().status == 200, "the place of the ended stream")


@cites("S-OPEN-14")
def test_idle_stream_begins_at_once(user):
    assert user.open().ready.name == "stream:ready"


@cites("S-OPEN-15")
def test_streams_of_a_user_are_independent(user):
    first, second = user.open(), user.open()
    first.close()
    user.send(1)
    assert user.steps(second) == [1]


@cites("S-OPEN-16")
def test_body_is_refused(bellhop, user):
    assert bellhop.request("GET", PATH, [user.bearer], b"hello").status == 413


@cites("S-OPEN-17")
def test_backend_may_open_more_streams_than_a_user(bellhop):
    maximum = bellhop.configuration()["stream"]["perUserMax"]
    assert {bellhop.backend.connect().status for _ in range(maximum + 1)} == {200}


@cites("S-OPEN-18")
@pytest.mark.parametrize(("query", "status"), [("", 200), ("?topics=nothing:1", 422)])
def test_answer_shows_the_limit_of_requests(bellhop, user, query, status):
    limit = bellhop.configuration()["rateLimit"]["requests"]
    stream = bellhop.connect(PATH + query, [user.bearer])
    assert stream.status == status
    assert (stream.header("ratelimit") is not None) == (limit > 0)
    assert stream.header("ratelimit-policy") == (f'"default";q={limit};w=60' if limit else None)


@cites("S-OPEN-19")
def test_client_of_http_1_0_is_served(bellhop, user):
    stream = bellhop.connect(PATH, [user.bearer], version="1.0")
    assert stream.header("transfer-encoding") is None
    assert stream.next().name == "stream:ready"
