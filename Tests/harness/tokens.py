"""JSON Web Tokens for the service."""

import base64
import hashlib
import hmac
import json
import subprocess
import time


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def token(secret, subject, user_role=None, seconds=86400, **claims):
    """Signs a token with HS256. `user_role` is the role in `app_metadata`."""
    now = int(time.time())
    claims = {"sub": subject, "iat": now, "exp": now + seconds, **claims}
    if user_role:
        claims["app_metadata"] = {"user_role": user_role}
    parts = [encoded(json.dumps(part).encode()) for part in ({"alg": "HS256", "typ": "JWT"}, claims)]
    signature = hmac.new(secret.encode(), b".".join(parts), hashlib.sha256).digest()
    return b".".join([*parts, encoded(signature)]).decode()


def issued(binary, subject, *options, environment=None):
    """Returns a token that `bellhop token` creates."""
    command = [binary, "token", "--subject", subject, *options]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip()
