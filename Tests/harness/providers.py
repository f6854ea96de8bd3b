"""What push services require of a request, as a schema of its headers and its payload for each platform.

Sources: Apple's "Sending notification requests to APNs" and "Pushing background updates to your App"; "FCM HTTP v1 API";
RFC 8030 §5, RFC 8188 §2, RFC 8291 §4 and RFC 8292 §3 for Web Push."""

TOKEN = r"[0-9A-Za-z_-]+\.[0-9A-Za-z_-]+\.[0-9A-Za-z_-]+"


def text(pattern):
    return {"type": "string", "pattern": f"^{pattern}$"}


def request(required, optional=None, **rules):
    """Returns the schema of a request with these headers and no others."""
    return {
        "type": "object",
        "properties": {
            "headers": {"type": "object", "properties": required | (optional or {}), "required": list(required),
                        "additionalProperties": False},
        },
        **rules,
    }


REQUESTS = {
    "apns": request(
        {
            "content-type": {"const": "application/json"},
            "authorization": text(f"bearer {TOKEN}"),
            "apns-topic": text(r"[0-9A-Za-z.-]+"),
            "apns-push-type": {"enum": ["alert", "background"]},
            "apns-priority": {"enum": ["5", "10"]},
            # Seconds since 1970. With 0, Apple would not keep the message for a device that is off.
            "apns-expiration": text("[1-9][0-9]*"),
        },
        {"apns-collapse-id": text(".{1,64}")},
        # A background message has priority 5 and shows nothing.
        **{
            "if": {"properties": {"headers": {"properties": {"apns-push-type": {"const": "background"}}}}},
            "then": {"properties": {
                "headers": {"properties": {"apns-priority": {"const": "5"}, "apns-collapse-id": False}},
                "payload": {"properties": {"aps": {"const": {"content-available": 1}}}},
            }},
            "else": {"properties": {
                "payload": {"properties": {"aps": {"not": {"required": ["content-available"]}}}},
            }},
            # The device replaces and removes an alert by this id.
            "anyOf": [
                {"properties": {"headers": {"required": ["apns-collapse-id"]}}},
                {"properties": {"payload": {"properties": {"aps": {"not": {"required": ["alert"]}}}}}},
            ],
        }),
    "fcm": request({"content-type": {"const": "application/json"}, "authorization": text(r"Bearer [!-~]+")}),
    "webpush": request({
        "content-type": {"const": "application/octet-stream"},
        # The key is a point of P-256.
        "authorization": text(f"vapid t={TOKEN}, k=B[0-9A-Za-z_-]{{86}}"),
        "content-encoding": {"const": "aes128gcm"},
        "ttl": text("[0-9]+"),
        "urgency": {"enum": ["very-low", "low", "normal", "high"]},
        "topic": text("[0-9A-Za-z_-]{1,32}"),
    }),
}
