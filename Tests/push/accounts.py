"""The accounts of an operator at the push services, and the certificates of the servers that act as them."""

import base64
import datetime
import ipaddress
import json

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

TOPIC, OTHER_TOPIC, TEAM = "com.example.app", "com.example.other", "TEAM000001"
PROJECT, EMAIL = "demo-project", "sender@demo-project.iam.example"
CONTACT = "mailto:operator@example.com"


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decoded(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def point(key):
    """Returns a public key of P-256, uncompressed."""
    return key.public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)


def pem(key):
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


class Accounts:
    """The keys of one operator, and their files as the settings name them."""

    def __init__(self, folder):
        self.folder = folder
        self.apple_key_id, self.apple = "KEY0000001", ec.generate_private_key(ec.SECP256R1())
        self.google_key_id, self.google = "g1", rsa.generate_private_key(65537, 2048)
        self.vapid = ec.generate_private_key(ec.SECP256R1())
        self.apple_path = folder / "apple.p8"
        self.apple_path.write_bytes(pem(self.apple))
        self.authority_path = folder / "authority.pem"
        self.certificate = self.issue()

    def google_account(self, token_url):
        """Writes the file of the service account; returns its path."""
        path = self.folder / "google.json"
        path.write_text(json.dumps({
            "type": "service_account", "project_id": PROJECT, "private_key_id": self.google_key_id,
            "private_key": pem(self.google).decode(), "client_email": EMAIL, "token_uri": token_url,
        }), encoding="utf-8")
        return path

    @property
    def vapid_scalar(self):
        return encoded(self.vapid.private_numbers().private_value.to_bytes(32, "big"))

    @property
    def vapid_point(self):
        return encoded(point(self.vapid.public_key()))

    def issue(self):
        """Creates an authority, and a certificate for 127.0.0.1. Returns the paths of the certificate and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Authority of the tests")])
        authority = signed(name, name, key.public_key(), key, x509.BasicConstraints(True, 0))
        self.authority_path.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
        own = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "push.example")])
        places = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        certificate = signed(subject, name, own.public_key(), key, places)
        paths = self.folder / "server.pem", self.folder / "server.key"
        paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        paths[1].write_bytes(pem(own))
        return paths


def signed(subject, issuer, public, key, extension):
    now = datetime.datetime.now(datetime.timezone.utc)
    builder = x509.CertificateBuilder(issuer, subject, public, x509.random_serial_number())
    builder = builder.not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + datetime.timedelta(days=2))
    return builder.add_extension(extension, critical=True).sign(key, hashes.SHA256())
