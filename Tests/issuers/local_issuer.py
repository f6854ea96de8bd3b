"""An identity provider on this machine: OpenID configurations, key sets, and tokens signed with their keys."""

import base64
import hmac
import http.server
import json
import threading
import time

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import get_default_algorithms

ALGORITHMS = get_default_algorithms()
CURVES = {"ES256": ec.SECP256R1, "ES384": ec.SECP384R1, "ES512": ec.SECP521R1}


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def compact(head, payload, sign):
    """Returns a token in its compact form."""
    text = b".".join(encoded(json.dumps(part).encode()) for part in (head, payload))
    return b".".join([text, encoded(sign(text))]).decode()


def with_dates(payload):
    now = int(time.time())
    return {"iat": now, "exp": now + 3600} | payload


def signed_with(secret, payload):
    """Returns a token that is signed with a secret (HS256)."""
    head = {"alg": "HS256", "typ": "JWT"}
    return compact(head, with_dates(payload), lambda text: hmac.digest(secret.encode(), text, "sha256"))


class Key:
    """A key pair. `alg` is the name in headers and in the key set; Ed25519 is the newer name of EdDSA (RFC 9864)."""

    def __init__(self, alg, kid):
        self.alg, self.kid = alg, kid
        if alg in CURVES:
            self.private = ec.generate_private_key(CURVES[alg]())
        elif alg in ("EdDSA", "Ed25519"):
            self.private = ed25519.Ed25519PrivateKey.generate()
        else:
            self.private = rsa.generate_private_key(65537, 2048)
        self.algorithm = ALGORITHMS["EdDSA" if alg == "Ed25519" else alg]

    def public(self, **members):
        """Returns the public key as a member of a key set."""
        made = json.loads(self.algorithm.to_jwk(self.private.public_key()))
        made.pop("key_ops", None)
        return made | {"kid": self.kid, "alg": self.alg, "use": "sig"} | members

    def sign(self, payload, **header):
        head = {"alg": self.alg, "typ": "JWT", "kid": self.kid} | header
        head = {name: value for name, value in head.items() if value is not None}
        return compact(head, payload, lambda text: self.algorithm.sign(text, self.private))


class Issuer:
    """One provider: its keys, and what its OpenID configuration says."""

    def __init__(self, server, name, alg="RS256"):
        self.server, self.name = server, name
        self.base = f"{server.url}/{name}"
        self.keys = [Key(alg, f"{name}-1")]
        self.extra = []
        self.named = None
        self.is_away = False

    def rotate(self):
        """Replaces the keys."""
        self.keys = [Key(self.keys[0].alg, f"{self.name}-{time.monotonic_ns()}")]

    def sign(self, payload, **header):
        return self.keys[0].sign(with_dates(payload), **header)

    def document(self, path):
        """Returns the JSON at a path below the issuer's; None if there is none."""
        if self.is_away:
            return None
        if path == ".well-known/openid-configuration":
            return {"issuer": self.named or self.base, "jwks_uri": f"{self.base}/jwks"}
        if path == "jwks":
            return {"keys": [key.public() for key in self.keys] + self.extra}
        return None


class IssuerServer:
    """Answers for any number of issuers, each below a path of its own."""

    def __init__(self):
        issuers = self.issuers = {}

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                _, name, path = (self.path + "//").split("/", 2)
                found = name in issuers and issuers[name].document(path.strip("/"))
                body = json.dumps(found or {}).encode()
                self.send_response(200 if found else 503)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def issuer(self, name, alg="RS256"):
        self.issuers[name] = Issuer(self, name, alg)
        return self.issuers[name]

    def close(self):
        self.server.shutdown()
        self.server.server_close()
