"""Servers that act as Firebase Cloud Messaging (HTTP v1) and as Google's authorization server.

They check what Google documents ("Send a message using FCM HTTP v1 API", the REST reference of `projects.messages`,
"FCM error codes", "Using OAuth 2.0 for server to server applications") and answer with Google's errors.
"""

import re
import secrets
import urllib.parse

from accounts import EMAIL, PROJECT
from http2 import Server
from provider import PAYLOAD_BYTES_MAX, Provider, Push, Refusal, json_reply, parsed

SCOPE = "https://www.googleapis.com/auth/firebase.messaging"
GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
ACCESS_SECONDS = 3599
TTL_SECONDS_MAX = 2_419_200
# The members of the messages of the REST reference that matter here. Google refuses unknown ones.
MEMBERS = {
    "message": {"name", "data", "notification", "android", "webpush", "apns", "fcm_options", "token", "topic", "condition"},
    "notification": {"title", "body", "image"},
    "android": {"collapse_key", "priority", "ttl", "restricted_package_name", "data", "notification", "fcm_options",
                "direct_boot_ok"},
    "android.notification": {
        "title", "body", "icon", "color", "sound", "tag", "click_action", "channel_id", "ticker", "sticky", "event_time",
        "local_only", "notification_priority", "default_sound", "visibility", "notification_count", "image"},
}
# Status and code of each error of FCM's.
ERRORS = {
    "INVALID_ARGUMENT": (400, "INVALID_ARGUMENT"), "UNREGISTERED": (404, "NOT_FOUND"),
    "SENDER_ID_MISMATCH": (403, "PERMISSION_DENIED"), "QUOTA_EXCEEDED": (429, "RESOURCE_EXHAUSTED"),
    "UNAVAILABLE": (503, "UNAVAILABLE"), "INTERNAL": (500, "INTERNAL"), "UNAUTHENTICATED": (401, "UNAUTHENTICATED"),
    "THIRD_PARTY_AUTH_ERROR": (401, "UNAUTHENTICATED"),
}


def error(code, field=None, **headers):
    """Returns the answer with one of FCM's errors."""
    status, name = ERRORS[code]
    details = [] if code == "UNAUTHENTICATED" else [
        {"@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": code}]
    if field:
        violation = {"field": field, "description": "Invalid value"}
        details.append({"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [violation]})
    document = {"error": {"code": status, "message": code.lower(), "status": name, "details": details}}
    return json_reply(status, document, **headers)


def refuse(what):
    raise Refusal(400, what)


class FCM(Provider):
    """FCM and the authorization server, which is another server.

    - access: the issued access tokens, and when each one ends.
    - access_script: a function that may return another reply to a request for a token.
    """

    platform = "fcm"

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.authorization = Server(self.authorize, self.accounts.certificate)
        self.access = {}
        self.asked = 0
        self.access_script = None

    # MARK: Access tokens

    def authorize(self, request):
        self.asked += 1
        if self.access_script and (reply := self.access_script()):
            return reply
        try:
            self.check_assertion(request)
        except Refusal as refusal:
            self.problems.append(f"{self.platform}: {refusal}")
            return json_reply(refusal.status, {"error": "invalid_grant", "error_description": refusal.reason})
        token = f"ya29.{secrets.token_urlsafe(40)}"
        self.access[token] = self.clock() + ACCESS_SECONDS
        return json_reply(200, {"access_token": token, "expires_in": ACCESS_SECONDS, "token_type": "Bearer"})

    def check_assertion(self, request):
        form = dict(urllib.parse.parse_qsl(request.body.decode()))
        kind = request.headers.get("content-type")
        if (request.method, request.path, kind) != ("POST", "/token", "application/x-www-form-urlencoded"):
            refuse("not a request for a token")
        if form.get("grant_type") != GRANT:
            refuse("unsupported_grant_type")
        try:
            head, claims = self.claims(form.get("assertion", ""), self.accounts.google.public_key(), "RS256", "google")
        except ValueError as problem:
            refuse(f"Invalid JWT: {problem}")
        expected = {"iss": EMAIL, "scope": SCOPE, "aud": f"{self.authorization.url}/token"}
        if head.get("kid") != self.accounts.google_key_id or any(claims.get(key) != expected[key] for key in expected):
            refuse("Invalid JWT: kid, iss, scope or aud")
        issued, ends, now = claims.get("iat"), claims.get("exp"), self.clock()
        if not (isinstance(issued, int) and isinstance(ends, int) and issued <= now + 60 and now < ends <= issued + 3600):
            refuse("Invalid JWT: iat or exp")

    # MARK: Messages

    def read(self, request):
        if (request.method, request.path) != ("POST", f"/v1/projects/{PROJECT}/messages:send"):
            raise Refusal(404, "NOT_FOUND")
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme != "Bearer" or self.access.get(token, 0) <= self.clock():
            # The service asks for a new one. So this is no mistake of it if the token was valid once.
            if token in self.access:
                return error("UNAUTHENTICATED")
            raise Refusal(401, "UNAUTHENTICATED")
        if not request.headers.get("content-type", "").startswith("application/json"):
            refuse("content type")
        document = parsed(request.body)
        message = document and document.get("message")
        if not isinstance(message, dict) or document.keys() - {"message", "validate_only"}:
            refuse("not a message")
        self.check_message(message)
        return self.message(message, request)

    def check_message(self, message):
        android = message.get("android", {})
        parts = {
            "message": message, "notification": message.get("notification", {}), "android": android,
            "android.notification": android.get("notification", {}),
        }
        for name, part in parts.items():
            if unknown := part.keys() - MEMBERS[name]:
                refuse(f'Invalid JSON payload received. Unknown name "{sorted(unknown)[0]}" at \'{name}\'')
        data = message.get("data", {})
        if not all(isinstance(value, str) for value in data.values()):
            refuse("data has values that are no texts")
        if any(re.match(r"from$|message_type$|google|gcm", name) for name in data):
            refuse("data has a reserved name")
        if [name in message for name in ("token", "topic", "condition")].count(True) != 1 or not message.get("token"):
            refuse("no token")
        if android.get("priority", "high").lower() not in ("high", "normal"):
            refuse("android.priority")
        ttl = re.fullmatch(r"(\d+)(\.\d{1,9})?s", android.get("ttl", "0s"))
        if not ttl or int(ttl[1]) > TTL_SECONDS_MAX:
            refuse("android.ttl")
        count = parts["android.notification"].get("notification_count", 0)
        if not isinstance(count, int) or count < 0:
            refuse("android.notification.notification_count")
        texts = [*data, *data.values(), *(text for text in parts["notification"].values() if isinstance(text, str))]
        if sum(len(text.encode()) for text in texts) > PAYLOAD_BYTES_MAX:
            refuse("Message too big")

    def message(self, message, request):
        data, shown = message.get("data", {}), message.get("notification", {})
        kind = "alert" if shown else "withdrawal" if "withdrawn" in data else "badge"
        return Push(
            self.platform, message["token"], kind, data.get("tag"), int(data["badge"]) if "badge" in data else None,
            shown.get("title"), shown.get("body"), tuple(parsed_list(data.get("withdrawn"))),
            parsed(data.get("data", "{}")) or {}, request,
        )

    def accepted(self, push):
        return json_reply(200, {"name": f"projects/{PROJECT}/messages/{secrets.token_hex(8)}"})

    def refused(self, refusal):
        code = {401: "UNAUTHENTICATED", 404: "NOT_FOUND"}.get(refusal.status, "INVALID_ARGUMENT")
        document = {"error": {"code": refusal.status, "message": refusal.reason, "status": code}}
        return json_reply(refusal.status, document)


def parsed_list(text):
    document = parsed(f'{{"list": {text or "[]"}}}')
    return document["list"] if document else []

