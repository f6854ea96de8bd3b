"""JSON Web Tokens for the service."""

import base64
import hashlib
import hmac
import json
import subprocess
import time


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def token(secret, subject, user_role=None, seconds=86400, app_metadata=None, **claims):
    """Signs a token with HS256. `app_metadata` has the claims that give rights; `user_role` is the role among them."""
    now = int(time.time())
    rights = {**(app_metadata or {}), **({"user_role": user_role} if user_role else {})}
    claims = {"sub": subject, "iat": now, "exp": now + seconds, **claims, **({"app_metadata": rights} if rights else {})}
    parts = [encoded(json.dumps(part).encode()) for part in ({"alg": "HS256", "typ": "JWT"}, claims)]
    signature = hmac.new(secret.encode(), b".".join(parts), hashlib.sha256).digest()
    return b".".join([*parts, encoded(signature)]).decode()


def issued(binary, subject, *options, environment=None):
    """Returns a token that `bellhop token` creates."""
    command = [binary, "token", "--subject", subject, *options]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip()
