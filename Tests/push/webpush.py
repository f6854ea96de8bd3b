"""A server that acts as a browser's push service, and the browsers that are subscribed there.

It checks RFC 8030 (TTL, Urgency, Topic), RFC 8292 (VAPID), and decrypts messages as a browser does (RFC 8188, RFC 8291).
"""

import os
import re
import secrets

import http_ece
from accounts import decoded, encoded, point
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric import ec
from http2 import Reply
from provider import PAYLOAD_BYTES_MAX, Provider, Push, Refusal, is_digits, parsed
from traces import MARK, MARK_BYTES

# Seconds after which a signed token may expire at most (RFC 8292 §2).
TOKEN_SECONDS_MAX = 24 * 3600


class Browser:
    """A subscribed browser: only it can read what is sent to it."""

    def __init__(self, key=None):
        self.key = key or ec.generate_private_key(ec.SECP256R1())
        self.secret = MARK_BYTES[:8] + os.urandom(8)
        self.path = f"/wpush/{MARK}{secrets.token_urlsafe(32)}"

    def subscription(self, url):
        """Returns the subscription as `PushSubscription.toJSON()` does."""
        return {
            "endpoint": url + self.path, "expirationTime": None,
            "keys": {"p256dh": encoded(point(self.key.public_key())), "auth": encoded(self.secret)},
        }

    def decrypted(self, body):
        return http_ece.decrypt(body, private_key=self.key, auth_secret=self.secret, version="aes128gcm")


class WebPush(Provider):
    """A push service of browsers. `browsers` are the subscribed ones, by the path of their endpoint."""

    platform = "webpush"

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.browsers = {}

    def subscribe(self, key=None):
        """Subscribes a browser."""
        browser = Browser(key)
        self.browsers[browser.path] = browser
        return browser

    def read(self, request):
        browser = self.browsers.get(request.path)
        if request.method != "POST" or browser is None:
            raise Refusal(404, "no subscription")
        self.check_headers(request)
        self.check_signature(request)
        if request.headers.get("content-encoding") != "aes128gcm":
            raise Refusal(400, "content-encoding")
        # RFC 8030 §7.2: a push service must accept bodies of up to 4096 bytes.
        if len(request.body) > PAYLOAD_BYTES_MAX:
            raise Refusal(413, "too large")
        try:
            payload = parsed(browser.decrypted(request.body))
        except (ValueError, InvalidTag, http_ece.ECEException) as problem:
            raise Refusal(400, f"the browser cannot decrypt it: {problem!r}") from None
        if payload is None:
            raise Refusal(400, "not a JSON object")
        return self.message(request, payload)

    def check_headers(self, request):
        headers = request.headers
        if not is_digits(headers.get("ttl", "")):
            raise Refusal(400, "TTL")
        if headers.get("urgency", "normal") not in ("very-low", "low", "normal", "high"):
            raise Refusal(400, "Urgency")
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,32}", headers.get("topic", "a")):
            raise Refusal(400, "Topic")

    def check_signature(self, request):
        found = re.fullmatch(r"vapid t=([^,\s]+), ?k=([^,\s]+)", request.headers.get("authorization", ""))
        if not found:
            raise Refusal(401, "no signature")
        # The subscription is restricted to the key with which the browser was subscribed (RFC 8292 §4.1).
        if found[2] != self.accounts.vapid_point:
            raise Refusal(403, "another key")
        key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), decoded(found[2]))
        try:
            _, claims = self.claims(found[1], key, "ES256", self.platform)
        except ValueError as problem:
            raise Refusal(403, f"signature: {problem}") from None
        now = self.clock()
        if claims.get("aud") != self.server.url:
            raise Refusal(403, f"aud: {claims.get('aud')}")
        if not isinstance(claims.get("exp"), int) or not now < claims["exp"] <= now + TOKEN_SECONDS_MAX:
            raise Refusal(403, f"exp: {claims.get('exp')}")
        if not str(claims.get("sub", "")).startswith(("mailto:", "https:")):
            raise Refusal(403, f"sub: {claims.get('sub')}")

    def message(self, request, payload):
        kind = "alert" if "title" in payload else "withdrawal" if payload.get("withdrawn") else "badge"
        return Push(
            self.platform, request.path, kind, payload.get("tag"), payload.get("badge"), payload.get("title"),
            payload.get("body"), tuple(payload.get("withdrawn", ())), payload.get("data", {}), request,
        )

    def accepted(self, push):
        return Reply(201, {"location": f"{self.server.url}/m/{secrets.token_hex(8)}", "ttl": push.request.headers["ttl"]})

    def refused(self, refusal):
        return Reply(refusal.status, {"content-type": "text/plain"}, refusal.reason.encode())
