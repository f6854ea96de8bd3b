"""Cases about refusals."""

import time

import pytest
from kit.citing import cites
from kit.service import PATH

MEMBERS = {"type", "title", "status", "detail", "code", "instance", "requestId"}


def refusals(user):
    """Returns an answer for each way to refuse a stream."""
    bellhop = user.bellhop
    return {
        401: bellhop.request("GET", PATH),
        403: user.request("GET", f"{PATH}?topics=desk:{bellhop.name('desk')}"),
        405: user.request("POST", PATH),
        422: user.request("GET", f"{PATH}?unknown=1"),
        429: too_many(bellhop.user()),
        404: user.request("GET", "/v1/streams/unknown"),
    }


def too_many(user):
    for _ in range(user.bellhop.configuration()["stream"]["perUserMax"]):
        user.open()
    return user.request("GET", PATH)


@cites("S-ERR-1")
def test_refusal_is_a_problem_document(user):
    for status, answer in refusals(user).items():
        assert answer.header("content-type") == "application/problem+json", status
        assert MEMBERS <= set(answer.json), status


@cites("S-ERR-2")
def test_problem_has_the_status_of_the_answer(user):
    for status, answer in refusals(user).items():
        assert (answer.status, answer.json["status"]) == (status, status)


@cites("S-ERR-3")
def test_problem_has_the_request_id_of_the_answer(user):
    for status, answer in refusals(user).items():
        assert answer.json["requestId"] == answer.header("x-request-id"), status


@cites("S-ERR-4")
def test_invalid_request_names_its_places(user):
    answer = user.request("GET", f"{PATH}?topics=nothing:1,nothing:2")
    assert answer.status == 422
    assert len(answer.json["errors"]) == 2
    assert all(set(error) >= {"pointer", "detail"} for error in answer.json["errors"])


@cites("S-ERR-5")
def test_refusal_for_too_many_streams_says_when_to_retry(user):
    answer = too_many(user)
    assert answer.status == 429
    assert int(answer.header("retry-after")) > 0


@cites("S-ERR-6")
def test_problem_names_the_path_without_the_query(user):
    answer = user.request("GET", f"{PATH}?secret=1")
    assert answer.json["instance"] == PATH


@cites("S-ERR-7")
@pytest.mark.parametrize("place", ["header", "ticket", "parameter"])
def test_refusal_does_not_repeat_credentials(bellhop, user, place):
    token = user.another_token(exp=int(time.time()) - 1)
    answer = {
        "header": lambda: bellhop.request("GET", PATH, [("Authorization", f"Bearer {token}")]),
        "ticket": lambda: bellhop.request("GET", f"{PATH}?ticket={token}"),
        "parameter": lambda: bellhop.request("GET", f"{PATH}?token={token}"),
    }[place]()
    assert answer.status >= 400
    assert token.encode() not in answer.body
