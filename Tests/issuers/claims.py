"""Attacks on claims: random payloads under random settings. Nobody may get a role, a tenant or the rights of a backend beyond
the rule of Docs/configuration.md, which stands here a second time. Where that page is silent, it follows the service: an empty
object or list below a name of a role limits the role to no organization.

A service is started for each of some random settings. Its tokens are signed by a key of the issuer, or by the secret beside it.
The payloads have claims of every kind at the places that the settings name, before and behind them, and at places that they do
not name.
"""

import http.client
import json
import pathlib
import random
import tempfile

from local_issuer import signed_with

ROLES = ["service_role", "admin", "staff", "barber", "teacher"]
NAMES = [*ROLES, "service", "Admin", "ADMIN", "Boss", "user", "org:admin", "bellhop/service", "member", "A", "B", "worker", ""]
ROLE_PATHS = ["app_metadata.user_role", "role", "roles", "groups", "realm_access.roles", "https://app.example/roles", "roles.key",
              "scope", "scp", "tenants.{tenant}.roles", "o.rol", "a.b.c", "user_metadata.role"]
TENANT_PATHS = ["app_metadata.tenant", "tenant", "org_id", "o.id", "organization", "https://x.example/org.id", "a.t", "tenants"]
USER_PATHS = ["sub", "uid", "oid", "app_metadata.id"]
CONDITIONS = ["client_id=worker", "client_id=cl1", "azp=worker", "scope=bellhop/service", "scp=bellhop/service", "groups=Boss",
              "roles=admin", "gty=client_credentials", "a.b=A"]
SECRET = "a secret of the attack on claims that is long enough"
# What a claim's value may not be read as: such a token must be refused.
REFUSED = object()


# The rule

def look_up(value, names):
    """Returns the value at a path: the longest name that leads to a value is taken; a path leads through a list into each of its
    objects. None if there is none, REFUSED if the path leads through a value that is no object."""
    if not names:
        return value
    if isinstance(value, list):
        found = [look_up(each, names) for each in value]
        if any(each is REFUSED for each in found):
            return REFUSED
        found = [each for each in found if each is not None]
        return [one for each in found for one in (each if isinstance(each, list) else [each])] or None
    if not isinstance(value, dict):
        return REFUSED
    for end in range(len(names), 0, -1):
        below = value.get(".".join(names[:end]))
        if below is not None:
            found = look_up(below, names[end:])
            if found is not None:
                return found
    return None


def at(payload, path, tenant=None):
    names = path.split(".")
    if "{tenant}" in names:
        if tenant is None:
            return None
        names = [tenant if name == "{tenant}" else name for name in names]
    return look_up(payload, names)


def first(payload, paths, tenant=None):
    """Returns the first of the paths that is present, with its value."""
    for path in paths:
        found = at(payload, path, tenant)
        if found is not None:
            return path, found
    return None, None


def text(value):
    """Returns a text or a whole number as a text; REFUSED for anything else."""
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return REFUSED
    return str(value) or REFUSED


def holds(payload, condition):
    path, _, wanted = condition.partition("=")
    found = at(payload, path)
    if isinstance(found, str) and path in ("scope", "scp"):
        return wanted in found.split(" ")
    values = found if isinstance(found, list) else [found]
    return any(isinstance(each, (str, int)) and json.dumps(each).strip('"') == wanted for each in values)


def hold(payload, conditions):
    """Conditions on the same claim are alternatives; different claims must all hold."""
    claims = {condition.partition("=")[0] for condition in conditions}
    return all(any(holds(payload, each) for each in conditions if each.partition("=")[0] == claim) for claim in claims)


def tenant_of(payload, paths, fixed):
    """Returns the tenant; None without a claim of it, REFUSED for several or for none that can be read."""
    if fixed:
        return fixed
    _, found = first(payload, paths)
    if found is None or found is REFUSED:
        return found
    if isinstance(found, dict) and all(isinstance(each, (dict, list)) for each in found.values()):
        found = list(found)
    values = found if isinstance(found, list) else [found]
    if len(values) > 1:
        return REFUSED
    return text(values[0]) if values else None


def names_of(path, found, tenant):
    """Returns the names in a claim of roles, or REFUSED."""
    if isinstance(found, str):
        words = [word.strip(" ") for word in found.split(" " if path in ("scope", "scp") else ",")]
        return [word for word in words if word]
    if isinstance(found, list):
        names = [text(each) for each in found]
        return REFUSED if REFUSED in names else names
    if isinstance(found, dict):
        return [name for name, below in found.items()
                if below is True or (isinstance(below, (dict, list)) and tenant is not None and tenant in below)]
    name = text(found)
    return REFUSED if name is REFUSED else [name]


def role_of(payload, rules, tenant, is_secret):
    """Returns the role that the rule gives; None if it gives none, REFUSED if the token must be refused."""
    if rules["service"] and hold(payload, rules["service"]):
        return "service_role"
    path, found = first(payload, rules["roles"], tenant)
    if found is REFUSED:
        return REFUSED
    if found is not None:
        names = names_of(path, found, tenant)
        if names is REFUSED:
            return REFUSED
        if rules["map"]:
            given = next((ours for theirs, ours in rules["map"] if theirs in names), None)
        else:
            given = next((role for role in ROLES if role in names), None)
        if given:
            return given
    return "service_role" if is_secret and payload.get("role") == "service_role" else None


def reading(payload, rules, is_secret):
    """Returns (tenant, role) by the rule; None if the token must be refused."""
    if payload.get("iss") != rules["issuer"] or not hold(payload, rules["require"]):
        return None
    audiences = payload.get("aud")
    audiences = audiences if isinstance(audiences, list) else [audiences]
    if rules["audience"] and not any(each in audiences for each in rules["audience"]):
        return None
    tenant = tenant_of(payload, rules["tenants"], rules["tenant"])
    if tenant is REFUSED:
        return None
    role = role_of(payload, rules, tenant, is_secret)
    return None if role is REFUSED else (tenant, role)


# The attack

class Settings:
    """Random settings, as the service gets them and as the rule reads them."""

    def __init__(self, choices, issuer):
        def some(pool, least, most):
            return choices.sample(pool, choices.randint(least, most))

        self.rules = {
            "issuer": issuer.base, "roles": some(ROLE_PATHS, 1, 3), "tenants": some(TENANT_PATHS, 1, 2),
            "users": some(USER_PATHS, 1, 2), "require": some(CONDITIONS, 0, 1) if choices.random() < 0.2 else [],
            "service": some(CONDITIONS, 1, 2) if choices.random() < 0.5 else [],
            "tenant": "T" if choices.random() < 0.1 else "",
            "audience": ["api", "web"] if choices.random() < 0.3 else [],
            "map": [(name, choices.choice(ROLES)) for name in some([name for name in NAMES if name], 1, 4)]
            if choices.random() < 0.5 else []}
        rules = self.rules
        self.environment = {
            "BELLHOP_JWT_ISSUER": issuer.base, "BELLHOP_JWKS": f"{issuer.base}/jwks", "BELLHOP_JWT_SECRET": SECRET,
            "BELLHOP_CLAIM_ROLE": ",".join(rules["roles"]), "BELLHOP_CLAIM_TENANT": ",".join(rules["tenants"]),
            "BELLHOP_CLAIM_USER": ",".join(rules["users"]), "BELLHOP_JWT_REQUIRE": ",".join(rules["require"]),
            "BELLHOP_JWT_SERVICE": ",".join(rules["service"]), "BELLHOP_JWT_TENANT": rules["tenant"],
            "BELLHOP_JWT_AUDIENCE": ",".join(rules["audience"]),
            "BELLHOP_ROLES": ",".join(f"{theirs}={ours}" for theirs, ours in rules["map"])}


class Payloads:
    """Random payloads."""

    def __init__(self, choices, rules):
        self.choices, self.rules = choices, rules

    def word(self):
        return self.choices.choice(NAMES)

    def value(self, depth=2):
        kind = self.choices.randrange(14 if depth else 9)
        match kind:
            case 0 | 1 | 2 | 3: return self.word()
            case 4: return ",".join(self.word() for _ in range(3))
            case 5: return " ".join(self.word() for _ in range(3))
            case 6: return self.choices.choice([0, 1, -7, 1.5, 2**53])
            case 7: return self.choices.choice([True, False])
            case 8: return None
            case 9 | 10: return [self.value(0) for _ in range(self.choices.randrange(4))]
            case 11: return [{"key": self.word(), "id": self.word()} for _ in range(self.choices.randrange(3))]
            case _: return {self.word() or "x": self.value(depth - 1) for _ in range(self.choices.randrange(3))}

    def put(self, payload, path):
        """Puts a value at a path, as one name or in objects, with the tenant's name in place of `{tenant}`."""
        names = [self.choices.choice("AB") if name == "{tenant}" else name for name in path.split(".")]
        while len(names) > 1 and self.choices.random() < 0.4:
            place = self.choices.randrange(len(names) - 1)
            names[place:place + 2] = [".".join(names[place:place + 2])]
        if self.choices.random() < 0.1:
            names = names[:-1] or names
        for name in names[:-1]:
            below = payload.get(name)
            if not isinstance(below, dict):
                below = payload[name] = {}
            payload = below
        payload[names[-1]] = self.value()

    def make(self):
        payload = {"iss": self.rules["issuer"], "sub": self.choices.choice(["ada", "ben", 7])}
        pool = [*self.rules["roles"], *self.rules["tenants"], *self.rules["users"]]
        pool += [each.partition("=")[0] for each in self.rules["service"] + self.rules["require"]]
        for path in pool:
            if self.choices.random() < 0.6:
                self.put(payload, path)
        for path in (self.rules["users"][0], self.rules["tenants"][0]):
            # Most tokens have a user and a tenant that can be read, or the rest would not be looked at.
            if self.choices.random() < 0.8:
                payload[path] = self.choices.choice(["A", "B", "ada", "7"])
        for path in self.choices.sample(ROLE_PATHS + TENANT_PATHS + ["role", "service_role", "isService", "admin"], 3):
            self.put(payload, path)
        for condition in self.rules["service"] + self.rules["require"]:
            name, _, wanted = condition.partition("=")
            if "." not in name and self.choices.random() < 0.5:
                payload[name] = self.choices.choice([wanted, [wanted], f"x {wanted}", f"{wanted}x", [[wanted]], {wanted: True}])
        if self.rules["audience"] and self.choices.random() < 0.8:
            payload["aud"] = self.choices.choice(["api", ["x", "web"], ["x"], "apix", {"api": 1}, None])
        if self.choices.random() < 0.03:
            payload["iss"] = self.choices.choice(["https://evil.example", None, [self.rules["issuer"]]])
        return payload


class Tally:
    """What the answers were, and which of them give too much."""

    def __init__(self):
        self.taken = self.refused = self.stricter = self.roles = self.backends = 0
        self.wrong = []

    def judge(self, payload, rules, is_secret, status, me):
        wanted = reading(payload, rules, is_secret)
        if status != 200:
            self.refused += 1
            if status != 401:
                self.wrong.append(f"status {status}: {payload}")
            elif wanted is not None and not self.is_about_user(me["detail"], rules):
                self.stricter += 1
            return
        self.taken += 1
        role = me["role"] if me["role"] in ROLES else None
        found = (me["tenant"], role, me["isService"])
        self.roles += role is not None
        self.backends += me["isService"]
        allowed = wanted and (wanted[0] or "default", wanted[1], wanted[1] == "service_role")
        if allowed and found == (allowed[0], None, False):
            self.stricter += allowed[1] is not None
        elif found != allowed:
            self.wrong.append(f"{found}, not {allowed}: {json.dumps(payload)} by {json.dumps(rules)}")

    @staticmethod
    def is_about_user(detail, rules):
        """Whether a token was refused for its user, of which this rule says nothing."""
        return any(path in detail for path in rules["users"]) or "reserved" in detail or "client_id" in detail


def attack(kind, binary, server, seed, count):
    """Returns the number of payloads, and the differences."""
    print(f"claims: seed {seed}")
    choices, tally, rounds = random.Random(seed), Tally(), 40
    issuer = server.issuer("claims", "ES256")
    for _ in range(rounds):
        settings = Settings(choices, issuer)
        payloads = Payloads(choices, settings.rules)
        with tempfile.TemporaryDirectory() as folder:
            service = kind(binary, pathlib.Path(folder), settings.environment)
            service.start()
            connection = http.client.HTTPConnection("127.0.0.1", service.port)
            try:
                for number in range(count // rounds):
                    payload, is_secret = payloads.make(), number % 5 == 0
                    bearer = signed_with(SECRET, payload) if is_secret else issuer.sign(payload)
                    connection.request("GET", "/v1/me", headers={"Authorization": f"Bearer {bearer}"})
                    answer = connection.getresponse()
                    tally.judge(payload, settings.rules, is_secret, answer.status, json.loads(answer.read()))
            finally:
                connection.close()
                service.stop()
    print(f"claims: {tally.taken} accepted ({tally.roles} with a role, {tally.backends} of backends), {tally.refused} refused, "
          f"{tally.stricter} get less than the rule gives, {len(tally.wrong)} get more")
    return count, [f"claims: {text}" for text in tally.wrong[:20]]
