"""Runs the service behind each identity provider of Docs/providers, with the settings of its page.

    issuers.py --binary BINARY [--only NAME …]

A provider on this machine serves the OpenID configuration and the keys, and signs invented tokens. Each token must be read as
its provider means it, its successor must have the same identity, a backend's token must be a backend's, and a token for
somebody else must be refused with the claim that differs. Prints a table, and the number of cases as `cases: N`.
"""

import argparse
import http.client
import json
import pathlib
import sys
import tempfile

import moving
import pages
from claims import attack
from harness.services import Service
from harness.waiting import Failed
from local_issuer import IssuerServer
from providers import PROVIDERS

TENANTS_KEY = "a-key-of-a-backend-that-belongs-to-the-tenant-of-the-user"
COLUMNS = ["user", "tenant", "role", "session", "backend", "renewal", "refusals"]


class Behind(Service):
    """The service with the settings of a page, behind a local issuer."""

    def __init__(self, binary, folder, settings):
        super().__init__(binary, folder)
        del self.environment["BELLHOP_JWT_SECRET"]
        self.environment |= {"BELLHOP_RATE_LIMIT_USER": "0", **settings}

    def me(self, bearer):
        status, body = self.request("GET", "/v1/me", bearer)
        return status, json.loads(body)


class Trial:
    """One provider: its service, its tokens, and what was found."""

    def __init__(self, binary, folder, server, provider):
        self.provider, self.found, self.cases = provider, {}, 0
        self.issuer = server.issuer(provider.name.lower().replace(" ", "-"), provider.alg)
        settings = pages.settings(provider.name)
        self.real = settings["BELLHOP_JWT_ISSUER"]
        if "BELLHOP_JWKS" in settings:
            settings["BELLHOP_JWKS"] = f"{self.issuer.base}/jwks"
            self.local = self.real
        else:
            self.local = self.issuer.base + ("/" if self.real.endswith("/") else "")
            self.issuer.named = settings["BELLHOP_JWT_ISSUER"] = self.local
        self.key = settings.get("BELLHOP_SERVICE_KEYS", "").partition(":")[2]
        # A backend of one tenant ends sessions there; one of all tenants acts in the tenant default.
        keys = [settings.get("BELLHOP_SERVICE_KEYS"), f"of-the-tenant:{TENANTS_KEY}:tenant={provider.tenant}"]
        settings["BELLHOP_SERVICE_KEYS"] = ",".join(filter(None, keys))
        self.service = Behind(binary, folder, settings)

    def payload(self, changes):
        """Returns the provider's payload with changes; None removes a claim."""
        made = {"iss": self.real, **changes}
        if made["iss"] == self.real:
            made["iss"] = self.local
        return {name: value for name, value in made.items() if value is not None}

    def sign(self, changes):
        return self.issuer.sign(self.payload(changes), **self.provider.header)

    def expect(self, column, found, wanted, what):
        """Notes a case; the table shows the first difference."""
        self.cases += 1
        if found != wanted:
            self.found.setdefault(column, f"{what}: {found}, not {wanted}")

    def run(self):
        self.service.start()
        try:
            self.users()
            self.backends()
            self.refusals()
            if pages.FOLDER.joinpath(f"{self.provider.name}.md").exists():
                self.shown()
            self.revocation()
        finally:
            self.service.stop()

    def users(self):
        provider = self.provider
        status, me = self.service.me(self.sign(provider.payload))
        self.expect("user", status, 200, f"status ({me.get('detail')})")
        if status != 200:
            return
        for column, member, wanted in (
                ("user", "userId", provider.user), ("tenant", "tenant", provider.tenant), ("role", "role", provider.role),
                ("session", "sessionId", provider.session), ("backend", "isService", False)):
            self.expect(column, me[member], wanted, member)
        status, next_me = self.service.me(self.sign(provider.payload | provider.renewed))
        self.expect("renewal", (status, next_me.get("identity")), (200, me["identity"]), "identity of the next token")
        other = dict(provider.payload)
        for claim in ("sub", "uid", "oid"):
            if claim in other:
                other[claim] = f"{other[claim]}-2"
        status, them = self.service.me(self.sign(other))
        self.expect("user", (status, them.get("identity") == me["identity"]), (200, False), "identity of another user")

    def backends(self):
        if self.provider.backend:
            bearer = self.sign(self.provider.backend)
        else:
            bearer = self.key
        status, me = self.service.me(bearer)
        self.expect("backend", (status, me.get("isService")), (200, True), f"a backend's token ({me.get('detail')})")

    def revocation(self):
        """A backend ends the session of a stolen token."""
        if self.provider.session is None:
            return
        status, answer = self.service.request("POST", "/v1/revocations", TENANTS_KEY, {"sessionId": self.provider.session})
        self.expect("session", status, 201, f"its revocation ({answer[:200]})")
        bearer = self.sign(self.provider.payload | self.provider.renewed)
        status, problem = self.service.me(bearer)
        self.expect("session", (status, problem.get("code")), (401, "invalid_token.revoked"), "a token of the revoked session")

    def refusals(self):
        for changes, claim in self.provider.foreign:
            status, problem = self.service.me(self.sign(self.provider.payload | changes))
            named = f"token's {claim} " in problem.get("detail", "") or f"no {claim}" in problem.get("detail", "")
            self.expect("refusals", (status, named), (401, True), f"{changes} ({problem.get('detail')})")
        strange = self.issuer.keys[0].__class__(self.provider.alg, "strange")
        bearer = strange.sign(self.payload(self.provider.payload) | {"exp": 4_000_000_000})
        self.expect("refusals", self.service.me(bearer)[0], 401, "a token of an unknown key")
        strange.kid = self.issuer.keys[0].kid
        bearer = strange.sign(self.payload(self.provider.payload) | {"exp": 4_000_000_000})
        self.expect("refusals", self.service.me(bearer)[0], 401, "a token of another key with a known id")
        log = self.service.log()
        self.expect("refusals", "A token was refused." in log, True, "a line of the log")

    def shown(self):
        """The tokens that the page shows are what it says."""
        for payload in pages.examples(self.provider.name):
            status, me = self.service.me(self.sign(payload))
            self.expect("user", status, 200, f"the token of the page ({me.get('detail')})")
            self.expect("backend", me.get("isService"), pages.is_backend(payload), "the token of the page is a backend's")
            if pages.is_backend(payload):
                continue
            self.expect("role", me.get("role"), self.provider.role, "role of the page's token")
            tenant = "default" if self.provider.name == "better-auth" else self.provider.tenant
            self.expect("tenant", me.get("tenant"), tenant, "tenant of the page's token")


def table(trials):
    """Returns a table of the providers, and the differences."""
    lines = [f"{'provider':14}" + "".join(f"{column:>10}" for column in COLUMNS)]
    differences = []
    for trial in trials:
        provider = trial.provider
        absent = {"session": provider.session is None, "tenant": provider.tenant == "default", "role": provider.role == "authenticated"}
        cells = ["WRONG" if column in trial.found else "-" if absent.get(column) else "yes" for column in COLUMNS]
        lines.append(f"{provider.name:14}" + "".join(f"{cell:>10}" for cell in cells))
        differences += [f"{provider.name}, {column}: {text}" for column, text in trial.found.items()]
    return lines, differences


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--payloads", type=int, default=10_000)
    options = parser.parse_args()
    binary, server = str(pathlib.Path(options.binary).resolve()), IssuerServer()
    described = sorted(provider.name for provider in PROVIDERS)
    if described != sorted(sum(pages.names(), [])):
        raise Failed(f"the pages have other providers than this test: {pages.names()}")
    trials, cases, differences = [], 0, []
    for provider in PROVIDERS:
        if options.only and provider.name not in options.only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            trial = Trial(binary, pathlib.Path(folder), server, provider)
            trial.run()
        trials.append(trial)
    lines, differences = table(trials)
    print("\n".join(lines))
    cases = sum(trial.cases for trial in trials)
    if not options.only or "moving" in options.only:
        number, found = moving.run(Behind, binary, server)
        cases, differences = cases + number, differences + found
    if not options.only or "claims" in options.only:
        number, found = attack(Behind, binary, server, options.seed, options.payloads)
        cases, differences = cases + number, differences + found
    server.close()
    for line in differences:
        print(f"FAIL  {line}")
    print(f"cases: {cases}")
    sys.exit(bool(differences))


if __name__ == "__main__":
    try:
        main()
    except http.client.HTTPException as error:
        raise SystemExit(f"the service did not answer: {error}") from error
