"""Cases about the cookie that opens streams."""

import pytest
from kit.citing import cites
from kit.service import PATH


def with_cookie(user, *headers):
    return user.bellhop.connect(PATH, [("Cookie", f"other=1; bellhop_token={user.token}"), *headers])


@cites("S-COOKIE-1")
def test_cookie_opens_a_stream(user):
    assert f'"userId":"{user.id}"' in with_cookie(user).next("stream:ready").data


@cites("S-COOKIE-2")
@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1.evil.example"])
def test_cookie_from_a_foreign_origin_is_refused(user, origin):
    refused = user.bellhop.request("GET", PATH, [("Cookie", f"bellhop_token={user.token}"), ("Origin", origin)])
    assert (refused.status, refused.json["code"]) == (403, "origin.not_allowed")


@cites("S-COOKIE-3")
@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_cookie_from_another_site_is_refused_without_an_origin(user, site):
    refused = user.bellhop.request("GET", PATH, [("Cookie", f"bellhop_token={user.token}"), ("Sec-Fetch-Site", site)])
    assert (refused.status, refused.json["code"]) == (403, "origin.not_allowed")


@cites("S-COOKIE-4")
def test_cookie_from_the_own_origin_opens_a_stream(user):
    assert with_cookie(user, ("Origin", f"http://{user.bellhop.address.authority}")).status == 200


@cites("S-COOKIE-4")
def test_cookie_from_the_same_origin_opens_a_stream(user):
    assert with_cookie(user, ("Sec-Fetch-Site", "same-origin")).status == 200


@cites("S-COOKIE-5")
@pytest.mark.parametrize(("method", "path"), [("GET", "/v1/badges"), ("GET", "/v1/me"), ("POST", "/v1/stream-tickets")])
def test_cookie_is_no_credential_of_other_requests(user, method, path):
    answer = user.bellhop.request(method, path, [("Cookie", f"bellhop_token={user.token}")])
    assert answer.status == 401
