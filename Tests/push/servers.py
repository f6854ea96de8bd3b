"""Checks that the servers refuse what Apple, Google and browsers' push services refuse: otherwise the trials prove little."""

import json
import pathlib
import tempfile
import time
import urllib.parse

import apns
import fcm
import http_ece
import jwt
import webpush
from accounts import EMAIL, PROJECT, TEAM, TOPIC, Accounts
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from harness.waiting import Failed
from http2 import Request

NOW = 1_800_000_000


def request(path, headers, body, method="POST", connection=1):
    return Request(method, path, {name: value for name, value in headers.items() if value is not None}, body, connection, 0.0)


class Clock:
    def __init__(self):
        self.now = NOW

    def __call__(self):
        return self.now


# MARK: APNs


def apple_token(accounts, key=None, **claims):
    kid = claims.pop("kid", accounts.apple_key_id)
    claims = {"iss": TEAM, "iat": NOW, **claims}
    return "bearer " + jwt.encode(claims, key or accounts.apple, "ES256", {"kid": kid})


def apple_cases(accounts):
    """Yields the expected reason, what changes a correct request, and its parts."""
    other, device = ec.generate_private_key(ec.SECP256R1()), "/3/device/" + "ab" * 32
    background = b'{"aps":{"content-available":1}}'
    yield None, device, {}, None
    yield None, device, {"apns-push-type": "background", "apns-priority": "5"}, background
    yield "BadPath", "/3/devices/ab", {}, None
    yield "BadDeviceToken", "/3/device/xyz", {}, None
    yield "MissingProviderToken", device, {"authorization": None}, None
    yield "InvalidProviderToken", device, {"authorization": "bearer a.b.c"}, None
    yield "InvalidProviderToken", device, {"authorization": apple_token(accounts, other)}, None
    yield "InvalidProviderToken", device, {"authorization": apple_token(accounts, kid="KEY0000002")}, None
    yield "InvalidProviderToken", device, {"authorization": apple_token(accounts, iss="TEAM000002")}, None
    yield "InvalidProviderToken", device, {"authorization": apple_token(accounts, iat=NOW + 300)}, None
    yield "ExpiredProviderToken", device, {"authorization": apple_token(accounts, iat=NOW - 3601)}, None
    yield "TooManyProviderTokenUpdates", device, {"authorization": apple_token(accounts, iat=NOW - 1)}, None
    yield "MissingTopic", device, {"apns-topic": None}, None
    yield "TopicDisallowed", device, {"apns-topic": "com.example.foreign"}, None
    yield "DeviceTokenNotForTopic", device, {"apns-topic": "com.example.other"}, None
    yield "InvalidPushType", device, {"apns-push-type": None}, None
    yield "BadPriority", device, {"apns-priority": "7"}, None
    yield "BadPriority", device, {"apns-push-type": "background"}, background
    yield "BadExpirationDate", device, {"apns-expiration": "soon"}, None
    yield "BadCollapseId", device, {"apns-collapse-id": "é" * 33}, None
    yield "BadMessageId", device, {"apns-id": "1"}, None
    yield "PayloadEmpty", device, {}, b"{}"
    yield "PayloadTooLarge", device, {}, json.dumps({"aps": {"alert": {"title": "x" * 4096}}}).encode()
    yield "a background message that no device receives", device, {"apns-push-type": "background", "apns-priority": "5"}, None


def check_apple(accounts):
    count = 0
    for reason, path, changes, body in apple_cases(accounts):
        apple = apns.APNs(accounts, Clock())
        headers = {"authorization": apple_token(accounts), "apns-topic": TOPIC, "apns-push-type": "alert",
                   "apns-priority": "10", "apns-expiration": str(NOW), "apns-collapse-id": "a"}
        good = b'{"aps":{"alert":{"title":"T"}}}'
        expect_problem(apple, request("/3/device/" + "ab" * 32, headers, good), None)
        reply = expect_problem(apple, request(path, headers | changes, body or good), reason)
        if reason in apns.STATUS and (reply.status, json.loads(reply.body)) != (apns.STATUS[reason], {"reason": reason}):
            raise Failed(f"{reason}: {reply}")
        count += 1
    # A new token is accepted 20 minutes later, or on another connection.
    apple.clock.now += 1200
    late = headers | {"authorization": apple_token(accounts, iat=NOW + 1200)}
    expect_problem(apple, request(path, late, good), None)
    expect_problem(apple, request(path, headers, good, connection=2), None)
    expect_problem(apple, request(path, headers, b"", method="GET"), "MethodNotAllowed")
    # When its clock advances, it refuses the former token and takes a new one at once.
    apple.expire()
    expired = expect_problem(apple, request(path, late, good), None)
    renewed = expect_problem(apple, request(path, headers | {"authorization": apple_token(accounts, iat=NOW + 1201)}, good), None)
    if (expired.status, renewed.status) != (403, 200):
        raise Failed(f"an expired provider token is answered {expired}, and a new one {renewed}")
    return count + 5


def expect_problem(provider, wrong, reason):
    """Checks that a provider refuses a request for this reason, or accepts it; returns the reply."""
    provider.problems.clear()
    reply = provider.answer(wrong)
    if bool(provider.problems) != bool(reason) or reason and reason not in provider.problems[0]:
        raise Failed(f"{provider.platform} answers {reply}, {provider.problems}, not {reason}: {wrong}")
    return reply


# MARK: FCM


def google_cases():
    """Yields the expected reason, changes of the message, and changes of its headers."""
    yield None, {}, {}
    yield "UNAUTHENTICATED", {}, {"authorization": "Bearer other"}
    yield "content type", {}, {"content-type": "text/plain"}
    yield "no token", {"token": None}, {}
    yield "no token", {"topic": "all"}, {}
    yield "Unknown name \"badge\"", {"badge": 1}, {}
    yield "Unknown name \"badge\"", {"notification": {"badge": "1"}}, {}
    yield "Unknown name \"badge\"", {"android": {"notification": {"badge": 1}}}, {}
    yield "no texts", {"data": {"badge": 1}}, {}
    yield "reserved", {"data": {"from": "a"}}, {}
    yield "reserved", {"data": {"gcm.a": "a"}}, {}
    yield "android.priority", {"android": {"priority": "urgent"}}, {}
    yield "android.ttl", {"android": {"ttl": "3600"}}, {}
    yield "android.ttl", {"android": {"ttl": "2419201s"}}, {}
    yield "notification_count", {"android": {"notification": {"notification_count": -1}}}, {}
    yield "too big", {"data": {"a": "x" * 4096}}, {}


def check_google(accounts):
    google = fcm.FCM(accounts, Clock())
    google.authorization.port = 1
    count = check_assertions(google, accounts)
    token = f"Bearer {next(iter(google.access))}"
    path = f"/v1/projects/{PROJECT}/messages:send"
    for reason, changes, headers in google_cases():
        message = {"token": "t1", "data": {"badge": "1"}} | changes
        message = {name: value for name, value in message.items() if value is not None}
        headers = {"authorization": token, "content-type": "application/json"} | headers
        expect_problem(google, request(path, headers, json.dumps({"message": message}).encode()), reason)
        count += 1
    expect_problem(google, request("/v1/projects/other/messages:send", headers, b"{}"), "NOT_FOUND")
    expect_problem(google, request(path, headers, b"[]"), "not a message")
    google.clock.now += fcm.ACCESS_SECONDS
    if google.answer(request(path, headers, b"{}")).status != 401:
        raise Failed("an expired access token is accepted")
    return count + 3


def check_assertions(google, accounts):
    """Checks that access tokens are issued for correct assertions only."""
    claims = {"iss": EMAIL, "scope": fcm.SCOPE, "aud": f"{google.authorization.url}/token", "iat": NOW, "exp": NOW + 3600}
    other = rsa.generate_private_key(65537, 2048)
    cases = [
        (200, {}, None, {}), (400, {"iss": "other"}, None, {}), (400, {"aud": "other"}, None, {}),
        (400, {"scope": "other"}, None, {}), (400, {"exp": NOW + 3601}, None, {}), (400, {"exp": NOW}, None, {}),
        (400, {"iat": NOW + 100, "exp": NOW + 200}, None, {}), (400, {}, other, {}), (400, {}, None, {"kid": "other"}),
    ]
    for status, changes, key, head in cases:
        assertion = jwt.encode(claims | changes, key or accounts.google, "RS256", {"kid": accounts.google_key_id} | head)
        body = urllib.parse.urlencode({"grant_type": fcm.GRANT, "assertion": assertion}).encode()
        reply = google.authorize(request("/token", {"content-type": "application/x-www-form-urlencoded"}, body))
        if reply.status != status:
            raise Failed(f"an assertion with {changes} and {head} is answered {reply}")
    google.problems.clear()
    return len(cases)


# MARK: Web Push


def browser_cases(accounts, service):
    """Yields the expected reason, changes of the headers, and the plain text."""
    yield None, {}, b'{"title":"T"}'
    yield "TTL", {"ttl": None}, b"{}"
    yield "TTL", {"ttl": "1h"}, b"{}"
    yield "Urgency", {"urgency": "highest"}, b"{}"
    yield "Topic", {"topic": "a" * 33}, b"{}"
    yield "Topic", {"topic": "a b"}, b"{}"
    yield "content-encoding", {"content-encoding": "aesgcm"}, b"{}"
    yield "not a JSON object", {}, b"[1]"
    yield "too large", {}, b"x" * 4096
    yield "no signature", {"authorization": None}, b"{}"
    for reason, changes in [
        ("aud", {"aud": "https://other.example"}), ("exp", {"exp": NOW + 24 * 3600 + 1}), ("exp", {"exp": NOW}),
        ("sub", {"sub": "me"}),
    ]:
        yield reason, {"authorization": vapid(accounts, service, **changes)}, b"{}"
    other = ec.generate_private_key(ec.SECP256R1())
    yield "signature", {"authorization": vapid(accounts, service, key=other)}, b"{}"
    yield "another key", {"authorization": vapid(accounts, service, point="BAAA")}, b"{}"


def vapid(accounts, service, key=None, point=None, **claims):
    claims = {"aud": service.server.url, "exp": NOW + 3600, "sub": "mailto:a@example.com"} | claims
    return f"vapid t={jwt.encode(claims, key or accounts.vapid, 'ES256')}, k={point or accounts.vapid_point}"


def check_browsers(accounts):
    service, count = webpush.WebPush(accounts, Clock()), 0
    service.server.port = 1
    browser, stranger = service.subscribe(), service.subscribe()
    headers = {"authorization": vapid(accounts, service), "ttl": "60", "content-encoding": "aes128gcm"}

    def sealed(plain):
        return http_ece.encrypt(
            plain, private_key=ec.generate_private_key(ec.SECP256R1()), dh=webpush.point(browser.key.public_key()),
            auth_secret=browser.secret, version="aes128gcm")

    for reason, changes, plain in browser_cases(accounts, service):
        expect_problem(service, request(browser.path, headers | changes, sealed(plain)), reason)
        count += 1
    expect_problem(service, request(stranger.path, headers, sealed(b"{}")), "cannot decrypt")
    expect_problem(service, request("/wpush/none", headers, sealed(b"{}")), "no subscription")
    return count + 2


def check():
    """Checks all servers; returns the number of cases."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        accounts = Accounts(pathlib.Path(folder))
        count = check_apple(accounts) + check_google(accounts) + check_browsers(accounts)
    print(f"  the servers refuse wrong requests: {count} cases ({time.monotonic() - start:.1f} s)", flush=True)
    return count
