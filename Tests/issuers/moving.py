"""What happens over time: two issuers and the move from one to the other, keys that rotate, a provider that is away, and
addresses that are refused."""

import contextlib
import http.client
import json
import pathlib
import subprocess
import tempfile
import time

from harness.events import EventReader
from harness.services import environment_for
from harness.waiting import PATIENCE_SECONDS, Failed, wait_until
from local_issuer import Key


class Cases:
    """Counts cases, and collects the ones that differ."""

    def __init__(self):
        self.count, self.differences = 0, []

    def expect(self, what, found, wanted):
        self.count += 1
        if found != wanted:
            self.differences.append(f"{what}: {found}, not {wanted}")


def answer(service, path):
    """Returns the status; None while the service does not listen."""
    with contextlib.suppress(OSError, http.client.HTTPException):
        return service.request("GET", path, None)[0]


class Stream:
    """An open stream."""

    def __init__(self, service, bearer):
        self.connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=PATIENCE_SECONDS)
        self.connection.request("GET", "/v1/stream", headers={"Authorization": f"Bearer {bearer}"})
        self.answer, self.reader, self.events = self.connection.getresponse(), EventReader(), []
        self.id = json.loads(self.next("stream:ready").data)["streamId"]

    def next(self, name):
        """Returns the next event of a name."""
        while True:
            while self.events:
                event = self.events.pop(0)
                if event.name == name:
                    return event
            piece = self.answer.read1(1 << 16)
            if not piece:
                raise Failed(f"the stream ended before {name}")
            self.events += self.reader.feed(piece)

    def close(self):
        self.connection.close()


@contextlib.contextmanager
def running(kind, binary, *, is_ready=True, **settings):
    """Runs a service. Without keys it gets not ready, so that nobody waits for this."""
    with tempfile.TemporaryDirectory() as folder:
        service = kind(binary, pathlib.Path(folder), settings)
        service.launch()
        try:
            wait_until(lambda: answer(service, "/readyz" if is_ready else "/healthz") == 200, "the service to listen")
            yield service
        finally:
            service.stop()


def tell(service, backend, number):
    """Publishes an event to ada."""
    body = {"event": f"note:n{number}", "to": ["user:ada"], "data": {"number": number}}
    status, answer = service.request("POST", "/v1/publish", backend, body)
    if status >= 300:
        raise Failed(f"an event was answered with {status}: {answer}")


def from_one_to_another(kind, binary, server, cases):
    """Ada's stream stays open while her tokens come from another provider, whose names of claims differ."""
    old, new, third = server.issuer("old"), server.issuer("new", "ES256"), server.issuer("third")
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "issuers.yaml")
        file.write_text(
            f"- jwtIssuer: {new.base}\n  jwtAudience: [api]\n  claimTenant: org\n  claimRole: groups\n  roles: Boss=admin\n"
            f"  jwtService: client_id=worker\n")
        settings = {"BELLHOP_JWT_ISSUER": old.base, "BELLHOP_CLAIM_TENANT": "tenant", "BELLHOP_CLAIM_ROLE": "role",
                    "BELLHOP_ISSUERS": str(file)}
        with running(kind, binary, **settings) as service:
            before = old.sign({"iss": old.base, "sub": "ada", "tenant": "A", "role": "admin"})
            after = new.sign({"iss": new.base, "aud": "api", "sub": "ada", "org": "A", "groups": ["Boss"]})
            backend = new.sign({"iss": new.base, "aud": "api", "client_id": "worker", "org": "A"})
            stream = Stream(service, before)
            tell(service, backend, 1)
            cases.expect("an event before the move", stream.next("note:n1").name, "note:n1")
            first, second = service.me(before)[1], service.me(after)[1]
            cases.expect("identity at both issuers", second.get("identity"), first.get("identity"))
            cases.expect("role at the new issuer", second.get("role"), "admin")
            status, answer = service.request("PUT", f"/v1/streams/{stream.id}/token", after, {"token": after})
            cases.expect(f"renewal of the stream ({answer[:200]})", status, 200)
            tell(service, backend, 2)
            cases.expect("an event after the move", stream.next("note:n2").name, "note:n2")
            stream.close()
            mixed = {"sub": "eve", "tenant": "A", "role": "admin", "org": "A", "groups": ["Boss"], "aud": "api"}
            cases.expect("a token of a third issuer", service.me(third.sign({"iss": third.base} | mixed))[0], 401)
            cases.expect("a token without iss", service.me(new.sign(mixed))[0], 401)
            cases.expect("the old issuer's key in the new one's name", service.me(old.sign({"iss": new.base} | mixed))[0], 401)
            cases.expect("the new issuer's key in the old one's name", service.me(new.sign({"iss": old.base} | mixed))[0], 401)
            cases.expect("the old issuer's rules for the new one's token", service.me(
                new.sign({"iss": new.base, "sub": "eve", "role": "admin", "aud": "api"}))[1].get("role"), "authenticated")
            cases.expect("the new issuer's rules for the old one's token", service.me(
                old.sign({"iss": old.base, "sub": "eve", "groups": ["Boss"], "client_id": "worker"}))[1].get("isService"), False)


def algorithms(kind, binary, server, cases):
    """Every algorithm, with the header that its issuers write, and attacks on the choice of the algorithm."""
    issuer = server.issuer("algorithms")
    names = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"]
    keys = {name: Key(name, f"k-{name}") for name in names}
    issuer.extra = [key.public() for key in keys.values()]
    with running(kind, binary, BELLHOP_JWT_ISSUER=issuer.base) as service:
        payload = {"iss": issuer.base, "sub": "ada", "exp": int(time.time()) + 3600}
        now = service.me(issuer.sign({"iss": issuer.base, "sub": "ada"}))[1]
        for name, key in keys.items():
            for typ in ("JWT", "at+jwt", None):
                found = service.me(key.sign(payload, typ=typ))
                cases.expect(f"{name} with typ {typ} ({found[1].get('detail')})", (found[0], found[1].get("identity")),
                             (200, now["identity"]))
        # Both names mean the same algorithm, in the key set and in the header.
        for key, name in ((keys["EdDSA"], "Ed25519"), (keys["Ed25519"], "EdDSA")):
            cases.expect(f"{key.alg} in the set, {name} in the header", service.me(key.sign(payload, alg=name))[0], 200)
        for key, name in ((keys["RS256"], "PS256"), (keys["PS256"], "RS256"), (keys["ES256"], "ES384"), (keys["RS256"], "none"),
                          (keys["RS256"], "HS256"), (keys["EdDSA"], "Ed448"), (keys["ES256"], "ES256K")):
            cases.expect(f"{key.alg} in the set, {name} in the header", service.me(key.sign(payload, alg=name))[0], 401)
        cases.expect("a token of another type", service.me(keys["RS256"].sign(payload, typ="dpop+jwt"))[0], 401)
        cases.expect("critical headers", service.me(keys["RS256"].sign(payload, crit=["x"], x=1))[0], 401)


def long_tokens(kind, binary, server, cases):
    """Tokens with many groups, as long as the setting allows, also where a stream gets the next one."""
    issuer = server.issuer("long")
    for bytes_max, status in (("8192", 401), ("16384", 200)):
        with running(kind, binary, BELLHOP_JWT_ISSUER=issuer.base, BELLHOP_JWT_BYTES=bytes_max) as service:
            short = issuer.sign({"iss": issuer.base, "sub": "ada"})
            long = issuer.sign({"iss": issuer.base, "sub": "ada", "groups": ["g" * 36] * 250})
            cases.expect(f"a token of {len(long)} bytes, {bytes_max} allowed", service.me(long)[0], status)
            stream = Stream(service, short)
            found, answer = service.request("PUT", f"/v1/streams/{stream.id}/token", short, {"token": long})
            cases.expect(f"its use for an open stream ({answer[:300]})", found, 200 if status == 200 else 422)
            stream.close()


def keys_over_time(kind, binary, server, cases):
    """The provider is away at the start, comes back, rotates, and is away again."""
    issuer = server.issuer("moody")
    issuer.is_away = True
    def token():
        return issuer.sign({"iss": issuer.base, "sub": "ada"})

    with running(kind, binary, is_ready=False, BELLHOP_JWT_ISSUER=issuer.base) as service:
        cases.expect("/readyz without keys", answer(service, "/readyz"), 503)
        cases.expect("a token without keys", service.me(token())[0], 503)
        address = f"{issuer.base}/.well-known/openid-configuration"
        cases.expect("the line names the address", address in service.log(), True)
        issuer.is_away = False
        wait_until(lambda: service.me(token())[0] == 200, "the keys to be fetched")
        cases.expect("/readyz with keys", answer(service, "/readyz"), 200)
        old = token()
        issuer.rotate()
        wait_until(lambda: service.me(token())[0] == 200, "the new key to be fetched")
        cases.expect("a token of the withdrawn key", service.me(old)[0], 401)
        issuer.is_away = True
        cases.expect("a known key while the provider is away", service.me(token())[0], 200)


def named_otherwise(kind, binary, server, cases):
    """An OpenID configuration of another issuer gives no keys: they would sign in this one's name."""
    for named in ("https://evil.example", "SLASH"):
        issuer = server.issuer(f"named-{named[:4].lower()}")
        issuer.named = issuer.base + "/" if named == "SLASH" else named
        with running(kind, binary, is_ready=False, BELLHOP_JWT_ISSUER=issuer.base) as service:
            wait_until(lambda: "could not be fetched" in service.log(), "the line about the keys")
            cases.expect("the line names both issuers", issuer.named in service.log() and issuer.base in service.log(), True)
            cases.expect("a token", service.me(issuer.sign({"iss": issuer.base, "sub": "ada"}))[0] in (401, 503), True)


def refused_addresses(binary, cases):
    """Settings of keys that end the start, with what the message must contain."""
    for settings, text in (
            ({"BELLHOP_JWT_ISSUER": "http://keycloak:8080/realms/app"}, "BELLHOP_JWKS_PRIVATE"),
            ({"BELLHOP_JWT_ISSUER": "https://id.example", "BELLHOP_JWKS": "http://keycloak:8080/certs"}, "BELLHOP_JWKS_PRIVATE"),
            ({"BELLHOP_JWT_ISSUER": "P2abc"}, "BELLHOP_JWKS"),
            ({"BELLHOP_JWT_ISSUER": "https://u:p@id.example"}, "user or password"),
            ({"BELLHOP_JWT_ISSUER": "https://id.example", "BELLHOP_ROLES": "Boss=amdin"}, "did you mean admin"),
            ({"BELLHOP_JWT_ISSUER": "https://id.example", "BELLHOP_JWT_SERVICE": "worker"}, "name=value"),
            ({}, "BELLHOP_JWT_ISSUER")):
        with tempfile.TemporaryDirectory() as folder:
            environment = environment_for(
                BELLHOP_PORT="0", BELLHOP_DATABASE=f"sqlite:{folder}/refused.sqlite", **settings)
            start = subprocess.run([binary, "serve"], env=environment, capture_output=True, text=True, timeout=60)
        cases.expect(f"{settings} ({start.stderr[:300]})", (start.returncode, text in start.stderr), (78, True))


def private_network(kind, binary, cases):
    """With the setting, the service asks at an http:// address of a private network, where nothing listens here."""
    with running(kind, binary, is_ready=False, BELLHOP_JWT_ISSUER="https://id.example", BELLHOP_JWKS="http://localhost:1/certs",
                 BELLHOP_JWKS_PRIVATE="true") as service:
        wait_until(lambda: "http://localhost:1/certs" in service.log(), "the line about the keys")
        cases.expect("the start", service.process.poll(), None)


def run(kind, binary, server):
    """Returns the number of cases, and the differences."""
    cases = Cases()
    for part in (from_one_to_another, algorithms, long_tokens, keys_over_time, named_otherwise):
        part(kind, binary, server, cases)
    refused_addresses(binary, cases)
    private_network(kind, binary, cases)
    print(f"moving, rotating, refusing: {cases.count} cases, {len(cases.differences)} wrong")
    return cases.count, cases.differences
