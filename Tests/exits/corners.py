"""Answers of single operations that neither the tour of all operations nor another stage causes."""

import json

JSON = {"Content-Type": "application/json"}
WEB_PUSH = {
    "platform": "webpush",
    "subscription": {
        "endpoint": "https://web.push.apple.com/tour",
        "keys": {"p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
                 "auth": "BTBZMqHH6r4Tts7J_aSIgg"},
    },
}
# One more than the limits of a user's devices, of a shop's barbers, and of a user's open requests.
DEVICES, BARBERS, REQUESTS = 21, 201, 501


class Corners:
    """- tour: what counts the requests and keeps the failures."""

    def __init__(self, tour):
        self.tour = tour
        self.service = tour.bearers["service_role"]

    def see(self):
        for part in (self.conversations, self.requests, self.devices, self.shops, self.posts, self.bookings):
            part()

    def send(self, verb, path, body=None, bearer=None, **headers):
        """Returns the body of an answer that must succeed."""
        status, content = self.tour.exchange(verb, path, json.dumps(body) if body is not None else None,
                                             (bearer or self.service) | (JSON if body is not None else {}) | headers)
        self.tour.count += 1
        if status >= 300:
            self.tour.failures.append(f"{verb} {path} answers {status}: {content[:200]!r}")
            return {}
        return json.loads(content) if content else {}

    def expect(self, status, verb, path, body=None, bearer=None, **headers):
        self.tour.expect(status, verb, path, json.dumps(body) if body is not None else None,
                         (bearer or self.service) | (JSON if body is not None else {}) | headers)

    def conversations(self):
        bea = self.tour.bearer("bea")
        pair = self.send("POST", "/v1/conversations", {"kind": "direct", "memberIds": ["cem"]}, bea).get("id")
        self.expect("409", "PATCH", f"/v1/conversations/{pair}", {"title": "T"}, bea)
        self.expect("409", "PUT", f"/v1/conversations/{pair}/members/dan", None, bea)

    def requests(self):
        bea, cem = self.tour.bearer("bea"), self.tour.bearer("cem")
        asked = self.send("POST", "/v1/requests", {"kind": "friend", "toUserId": "cem"}, bea).get("request", {}).get("id")
        self.send("PATCH", f"/v1/requests/{asked}", {"status": "accepted"}, cem)
        self.expect("409", "DELETE", f"/v1/requests/{asked}", None, bea)
        for number in range(1, REQUESTS):
            self.send("POST", "/v1/requests", {"kind": "friend", "toUserId": f"friend-{number}"}, bea)
        self.expect("409", "POST", "/v1/requests", {"kind": "friend", "toUserId": "one-more"}, bea)

    def devices(self):
        bea = self.tour.bearer("bea")
        for number in range(1, DEVICES):
            self.send("PUT", f"/v1/devices/d{number}", device(number), bea)
        self.expect("409", "PUT", "/v1/devices/one-more", device(DEVICES), bea)

    def shops(self):
        self.send("PUT", "/v1/shops/corner", {"name": "C", "timeZone": "UTC"})
        self.expect("409", "PUT", "/v1/shops/corner/dj/current-track", {"trackId": "t1"})
        for number in range(1, BARBERS):
            self.send("PUT", f"/v1/shops/corner/barbers/b{number}", {"onDuty": True})
        self.expect("409", "PUT", "/v1/shops/corner/barbers/one-more", {"onDuty": True})

    def posts(self):
        bea, cem = self.tour.bearer("bea"), self.tour.bearer("cem")
        self.send("PUT", "/v1/users/bea/followers/me", None, cem)
        post = self.send("POST", "/v1/posts", {"text": "T", "visibility": "followers"}, bea).get("id")
        self.send("PUT", f"/v1/posts/{post}/reposts/me", None, cem)
        self.send("DELETE", "/v1/users/bea/followers/me", None, cem)
        # A former follower may still remove a repost of a hidden post.
        self.expect("204", "DELETE", f"/v1/posts/{post}/reposts/me", None, cem)

    def bookings(self):
        self.expect("404", "GET", "/v1/bookings?shopId=nowhere&day=2026-01-10")
        # A version of this service's epoch, so that the body is read.
        epoch = self.send("GET", "/v1/badges", None, self.tour.bearer("bea")).get("epoch")
        self.expect("415", "PATCH", "/v1/bookings/nobody", "<a/>", None,
                    **{"If-Match": f'"1-{epoch}"', "Content-Type": "text/xml"})


def device(number):
    subscription = WEB_PUSH["subscription"]
    return WEB_PUSH | {"subscription": subscription | {"endpoint": f"{subscription['endpoint']}-{number}"}}
