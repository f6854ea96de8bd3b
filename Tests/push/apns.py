"""A server that acts as Apple's push notification service.

It checks what Apple documents ("Sending notification requests to APNs", "Handling notification responses from APNs",
"Establishing a token-based connection to APNs") and answers with Apple's reasons.
"""

import re
import uuid

from accounts import OTHER_TOPIC, TEAM, TOPIC
from http2 import Reply
from provider import PAYLOAD_BYTES_MAX, Provider, Push, Refusal, is_digits, json_reply, parsed

# Seconds for which Apple accepts a provider token, and the shortest time between two new ones.
TOKEN_SECONDS, RENEWAL_SECONDS = 3600, 1200
COLLAPSE_BYTES_MAX = 64
TYPES = {"alert", "background", "location", "voip", "complication", "fileprovider", "mdm", "liveactivity", "pushtotalk"}
# Status of each reason that a request can cause.
STATUS = {
    "BadCollapseId": 400, "BadDeviceToken": 400, "BadExpirationDate": 400, "BadMessageId": 400, "BadPriority": 400,
    "BadTopic": 400, "DeviceTokenNotForTopic": 400, "InvalidPushType": 400, "MissingTopic": 400, "PayloadEmpty": 400,
    "TopicDisallowed": 400, "ExpiredProviderToken": 403, "InvalidProviderToken": 403, "MissingProviderToken": 403,
    "BadPath": 404, "MethodNotAllowed": 405, "Unregistered": 410, "ExpiredToken": 410, "PayloadTooLarge": 413,
    "TooManyProviderTokenUpdates": 429, "TooManyRequests": 429, "InternalServerError": 500, "ServiceUnavailable": 503,
    "Shutdown": 503,
}


def refuse(reason):
    raise Refusal(STATUS[reason], reason)


def error(reason, **members):
    """Returns the answer with a reason of Apple's. A `timestamp` is in milliseconds."""
    headers = {"retry_after": members.pop("retry_after")} if "retry_after" in members else {}
    return json_reply(STATUS[reason], {"reason": reason, **members}, **headers)


class APNs(Provider):
    """APNs. `topics` has the topic of each device; a device without one has the default topic."""

    platform = "apns"

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.topics = {}
        # By connection: the provider token, and when it arrived first. The tokens that are refused from now on.
        self.tokens, self.expired = {}, set()

    def expire(self):
        """Lets all provider tokens expire, as if Apple's clock had advanced. New ones are no mistake then."""
        self.expired |= {token for token, _ in self.tokens.values()}
        self.tokens.clear()

    def read(self, request):
        if request.method != "POST":
            refuse("MethodNotAllowed")
        found = re.fullmatch(r"/3/device/([^/?]*)", request.path)
        if not found:
            refuse("BadPath")
        device = found[1]
        if not re.fullmatch(r"([0-9A-Fa-f]{2}){8,100}", device):
            refuse("BadDeviceToken")
        if self.check_token(request) in self.expired:
            return error("ExpiredProviderToken")
        self.check_topic(request, device)
        return self.message(request, device, self.check_headers(request))

    def check_token(self, request):
        """Checks the provider token; returns it."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            refuse("MissingProviderToken")
        try:
            head, claims = self.claims(token, self.accounts.apple.public_key(), "ES256", self.platform)
        except ValueError:
            refuse("InvalidProviderToken")
        issued, now = claims.get("iat"), self.clock()
        if head.get("kid") != self.accounts.apple_key_id or claims.get("iss") != TEAM or not isinstance(issued, int):
            refuse("InvalidProviderToken")
        # Apple tolerates clocks that differ a little.
        if issued > now + 60:
            refuse("InvalidProviderToken")
        if issued < now - TOKEN_SECONDS:
            refuse("ExpiredProviderToken")
        if token in self.expired:
            return token
        known, since = self.tokens.get(request.connection, (None, None))
        if known is not None and known != token and now < since + RENEWAL_SECONDS:
            refuse("TooManyProviderTokenUpdates")
        if known != token:
            self.tokens[request.connection] = token, now
        return token

    def check_topic(self, request, device):
        topic = request.headers.get("apns-topic")
        if not topic:
            refuse("MissingTopic")
        if topic not in (TOPIC, OTHER_TOPIC):
            refuse("TopicDisallowed")
        if topic != self.topics.get(device, TOPIC):
            refuse("DeviceTokenNotForTopic")

    def check_headers(self, request):
        """Checks the headers of the message; returns its type."""
        headers = request.headers
        kind, priority = headers.get("apns-push-type"), headers.get("apns-priority", "10")
        if kind not in TYPES:
            refuse("InvalidPushType")
        if priority not in ("1", "5", "10") or kind == "background" and priority == "10":
            refuse("BadPriority")
        if not is_digits(headers.get("apns-expiration", "0")):
            refuse("BadExpirationDate")
        if len(headers.get("apns-collapse-id", "").encode()) > COLLAPSE_BYTES_MAX:
            refuse("BadCollapseId")
        if "apns-id" in headers and not re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", headers["apns-id"]):
            refuse("BadMessageId")
        return kind

    def message(self, request, device, kind):
        if len(request.body) > PAYLOAD_BYTES_MAX:
            refuse("PayloadTooLarge")
        payload = parsed(request.body)
        aps = payload and payload.get("aps")
        if not isinstance(aps, dict) or not aps:
            refuse("PayloadEmpty")
        # Apple accepts such a message and does not deliver it.
        if kind == "background" and (aps.get("content-available") != 1 or {"alert", "badge", "sound"} & aps.keys()):
            raise Refusal(200, "a background message that no device receives")
        alert, own = aps.get("alert") or {}, payload.get("bellhop", {})
        return Push(
            self.platform, device, "withdrawal" if kind == "background" else "alert" if alert else "badge",
            own.get("tag"), own.get("badge", aps.get("badge")), alert.get("title"), alert.get("body"),
            tuple(own.get("withdrawn", ())), own.get("data", {}), request,
        )

    def accepted(self, push):
        return Reply(200, {"apns-id": str(uuid.uuid4())})

    def refused(self, refusal):
        return json_reply(refusal.status, {"reason": refusal.reason})
