#!/usr/bin/env python3
"""Attacks the audit log of a real database as its owner, and proves that `bellhop audit verify` finds each attack that
Docs/audit.md promises to find, and that it reports nothing for an intact log:

  - without `--known`, what does not follow from the log itself,
  - with `--known`, logs that were emptied, cut or computed again as a whole,
  - and that the acts of a person whose id was blanked are still found by the digest.

    Tests/crash/audit.py --binary .build/debug/bellhop [--seed 1] [--on sqlite|postgres]

The attacker knows everything that the database holds: the secrets of the digests, and how hashes are computed. Needs only
Python's standard library, and PostgreSQL's programs for `--on postgres`.
"""

import contextlib
import copy
import hashlib
import hmac
import random
import sqlite3
import subprocess
import sys
import time

from crash import run_script
from erasure import database
from harness.services import Service, environment_for
from harness.tokens import token
from harness.waiting import Failed

DAY = 86_400_000_000
ORIGIN = "0" * 64
COLUMNS = [
    "tenant", "sequence", "noted_at", "actor_kind", "actor_id", "actor_digest", "action", "target_kind", "target_id",
    "target_digest", "request_id", "outcome", "count", "cut_through", "cut_hash", "cut_at", "cut_days", "previous_hash",
    "hash",
]
TENANTS = ["default", "other"]


# The log, as the attacker reads and writes it.


class SQLiteLog:
    def __init__(self, stored):
        self.path = stored.address.removeprefix("sqlite:")

    def read(self, table):
        with contextlib.closing(sqlite3.connect(self.path)) as db:
            db.row_factory = sqlite3.Row
            return [dict(row) for row in db.execute(f"SELECT * FROM {table}")]

    def replace(self, tables):
        with contextlib.closing(sqlite3.connect(self.path)) as db:
            for table, rows in tables.items():
                db.execute(f"DELETE FROM {table}")
                for row in rows:
                    marks = ", ".join("?" * len(row))
                    db.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", list(row.values()))
            db.commit()


class PostgresLog:
    def __init__(self, stored):
        self.cluster = stored.cluster

    def read(self, table):
        columns = "name, encode(secret, 'hex') AS secret" if table == "service_secrets" else "*"
        rows = self.cluster.rows(f"SELECT row_to_json(t) FROM (SELECT {columns} FROM {table}) t", "bellhop")
        for row in rows:
            if "secret" in row:
                row["secret"] = bytes.fromhex(row["secret"])
        return rows

    def replace(self, tables):
        statements = ["BEGIN"]
        for table, rows in tables.items():
            statements.append(f"DELETE FROM {table}")
            for row in rows:
                values = ", ".join(self.literal(value) for value in row.values())
                statements.append(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({values})")
        self.cluster.sql("; ".join([*statements, "COMMIT"]), "bellhop")

    @staticmethod
    def literal(value):
        if value is None:
            return "NULL"
        if isinstance(value, bytes):
            return f"'\\x{value.hex()}'"
        return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def hash_of(entry):
    parts = ["bellhop-audit-1", entry["previous_hash"], entry["tenant"], entry["sequence"], entry["noted_at"],
             entry["actor_kind"], entry["actor_digest"], entry["action"], entry["target_kind"], entry["target_digest"],
             entry["request_id"], entry["outcome"], entry["count"]]
    if entry["cut_through"] is not None:
        parts += [entry["cut_through"], entry["cut_hash"], entry["cut_at"], entry["cut_days"]]
    text = b"".join(
        b"-\n" if part is None else b"%d:%s\n" % (len(str(part).encode()), str(part).encode()) for part in parts)
    return hashlib.sha256(text).hexdigest()


class State:
    """The chains of all tenants, in memory."""

    def __init__(self, entries, heads, secrets):
        self.chains = {tenant: sorted((row for row in entries if row["tenant"] == tenant), key=lambda row: row["sequence"])
                       for tenant in TENANTS}
        self.heads = {row["tenant"]: row for row in heads}
        self.secrets = {row["name"]: row["secret"] for row in secrets}

    def tables(self):
        return {
            "audit": [{name: row[name] for name in COLUMNS} for tenant in TENANTS for row in self.chains[tenant]],
            "audit_heads": list(self.heads.values()),
            "service_secrets": [{"name": name, "secret": secret} for name, secret in self.secrets.items()],
        }

    def digest(self, tenant, person):
        return hmac.new(self.secrets[f"audit:{tenant}"], person.encode(), hashlib.sha256).hexdigest()

    def chain_again(self, tenant="default", after=0, renumbers=True):
        """Computes the hashes of all entries behind a place of the list, and the head."""
        chain = self.chains[tenant]
        for index in range(after, len(chain)):
            entry = chain[index]
            if index > 0:
                entry["previous_hash"] = chain[index - 1]["hash"]
                if renumbers:
                    entry["sequence"] = chain[index - 1]["sequence"] + 1
            entry["hash"] = hash_of(entry)
        self.end(tenant)

    def end(self, tenant="default"):
        """Makes the last entry the head."""
        last = self.chains[tenant][-1] if self.chains[tenant] else None
        if last is None:
            self.heads.pop(tenant, None)
        else:
            self.heads[tenant] = {"tenant": tenant, "sequence": last["sequence"], "hash": last["hash"]}

    def add_cut(self, through, at=None, days=365, noted_at=None, tenant="default"):
        """Deletes the entries up to a number, and adds an entry that notes it."""
        chain = self.chains[tenant]
        gone = [entry for entry in chain if entry["sequence"] <= through]
        self.chains[tenant] = chain = [entry for entry in chain if entry["sequence"] > through]
        last = chain[-1] if chain else gone[-1]
        entry = dict.fromkeys(COLUMNS) | {
            "tenant": tenant, "sequence": last["sequence"] + 1, "noted_at": noted_at or int(time.time() * 1e6),
            "actor_kind": "bellhop", "actor_id": "bellhop", "actor_digest": self.digest(tenant, "bellhop"),
            "action": "retention", "target_kind": "audit", "outcome": "removed", "count": len(gone),
            "cut_through": through, "cut_hash": gone[-1]["hash"],
            "cut_at": at or max(entry["noted_at"] for entry in gone), "cut_days": days, "previous_hash": last["hash"],
        }
        entry["hash"] = hash_of(entry)
        chain.append(entry)
        self.end(tenant)


# The attacks. Each names where it must be found: `plain` by every verification, `known` with the lines of an earlier one,
# `setting` by a verification that knows for how many days entries are kept, `open` nowhere, for the reason in Docs/audit.md.

ATTACKS = []


def attack(where):
    def add(function):
        ATTACKS.append((where, function))
        return function

    return add


def changing(name, value):
    def change(state):
        state.chains["default"][2][name] = value

    change.__name__ = f"change_{name}"
    ATTACKS.append(("plain", change))


for column, text in [("action", "GET /v1/me"), ("actor_kind", "staff"), ("outcome", "shown"), ("count", 7),
                     ("request_id", "another"), ("target_kind", "posts"), ("actor_id", "another"), ("hash", "a" * 64),
                     ("previous_hash", "a" * 64), ("noted_at", 1), ("actor_digest", "a" * 64), ("target_digest", "a" * 64)]:
    changing(column, text)


@attack("plain")
def replace_a_person_and_the_digest(state):
    entry = state.chains["default"][2]
    entry["actor_id"], entry["actor_digest"] = "another", state.digest("default", "another")


@attack("plain")
def remove_an_entry(state):
    del state.chains["default"][3]


@attack("plain")
def remove_an_entry_and_renumber(state):
    del state.chains["default"][3]
    for entry in state.chains["default"][3:]:
        entry["sequence"] -= 1
    state.end()


@attack("plain")
def exchange_two_entries(state):
    chain = state.chains["default"]
    chain[2]["sequence"], chain[3]["sequence"] = chain[3]["sequence"], chain[2]["sequence"]


@attack("plain")
def remove_the_last_entry(state):
    state.chains["default"].pop()


@attack("plain")
def invent_a_head(state):
    state.heads["default"]["sequence"] += 5


@attack("plain")
def remove_the_head(state):
    del state.heads["default"]


@attack("plain")
def cut_the_beginning(state):
    del state.chains["default"][:2]


@attack("plain")
def exchange_the_tenants(state):
    state.chains = {tenant: [row | {"tenant": tenant} for row in state.chains[other]]
                    for tenant, other in zip(TENANTS, reversed(TENANTS))}
    for tenant in TENANTS:
        state.end(tenant)


@attack("plain")
def move_an_entry_to_another_tenant(state):
    entry = state.chains["other"].pop()
    state.end("other")
    last = state.chains["default"][-1]
    state.chains["default"].append(entry | {
        "tenant": "default", "sequence": last["sequence"] + 1, "previous_hash": last["hash"]})
    state.end()


@attack("plain")
def replace_the_secret_of_the_digests(state):
    state.secrets["audit:default"] = b"x" * 32


@attack("plain")
def note_a_deletion_in_another_entry(state):
    state.chains["default"][2] |= {"cut_through": 1, "cut_hash": "a" * 64, "cut_at": 1, "cut_days": 365}


@attack("plain")
def blank_the_noted_deletion(state):
    for entry in state.chains["default"]:
        entry |= {"cut_through": None, "cut_hash": None, "cut_at": None, "cut_days": None}
    state.chain_again(renumbers=False)


@attack("plain")
def change_the_hash_of_the_noted_deletion(state):
    noted = next(index for index, entry in enumerate(state.chains["default"]) if entry["cut_through"])
    state.chains["default"][noted]["cut_hash"] = "a" * 64
    state.chain_again(after=noted)


@attack("plain")
def delete_young_entries(state):
    state.add_cut(state.chains["default"][-3]["sequence"])


@attack("setting")
def delete_young_entries_by_fewer_days(state):
    young = state.chains["default"][-3]
    state.add_cut(young["sequence"], at=young["noted_at"] - 2 * DAY, days=1)


@attack("plain")
def delete_young_entries_by_days_beyond_any_number(state):
    """The verification has to name the entry, and not to end by an overflow."""
    young = state.chains["default"][-3]
    state.add_cut(young["sequence"], at=young["noted_at"] - 400 * DAY, days=2**63 - 1)


@attack("plain")
def delete_young_entries_in_the_future(state):
    young = state.chains["default"][-3]
    state.add_cut(young["sequence"], noted_at=int(time.time() * 1e6) + 366 * DAY)


@attack("known")
def delete_young_entries_and_lie_about_their_time(state):
    state.add_cut(state.chains["default"][-3]["sequence"], at=int(time.time() * 1e6) - 400 * DAY)


@attack("known")
def empty_the_log_and_note_a_deletion(state):
    state.add_cut(state.chains["default"][-1]["sequence"], at=int(time.time() * 1e6) - 400 * DAY)


@attack("known")
def empty_the_log_and_invent_a_deletion(state):
    state.chains["default"][-1]["hash"] = "a" * 64
    state.add_cut(state.chains["default"][-1]["sequence"], at=int(time.time() * 1e6) - 400 * DAY)


@attack("known")
def empty_the_log(state):
    state.chains["default"] = []
    state.end()


@attack("known")
def empty_the_log_of_every_tenant(state):
    for tenant in TENANTS:
        state.chains[tenant] = []
        state.end(tenant)


@attack("known")
def change_an_entry_and_compute_the_rest(state):
    state.chains["default"][2]["action"] = "GET /v1/me"
    state.chain_again(after=2)


@attack("known")
def blame_another_person_and_compute_the_rest(state):
    for entry in state.chains["default"]:
        if entry["actor_id"] == "backend":
            entry["actor_id"], entry["actor_digest"] = "another", state.digest("default", "another")
    state.chain_again(after=0)


@attack("known")
def remove_an_entry_and_compute_the_rest(state):
    del state.chains["default"][2]
    state.chain_again(after=2)


@attack("known")
def insert_an_entry_and_compute_the_rest(state):
    state.chains["default"].insert(2, dict(state.chains["default"][2]))
    state.chain_again(after=2)


@attack("known")
def exchange_two_entries_and_compute_the_rest(state):
    chain = state.chains["default"]
    chain[2], chain[3] = chain[3], chain[2]
    state.chain_again(after=2)


@attack("known")
def change_the_times_and_compute_the_rest(state):
    for entry in state.chains["default"][:4]:
        entry["noted_at"] += DAY
    state.chain_again(after=0)


@attack("known")
def rewind_the_log(state):
    del state.chains["default"][-2:]
    state.end()


@attack("open")
def remove_entries_after_the_last_verification(state):
    state.chains["default"].pop()
    state.end()


@attack("open")
def add_an_entry(state):
    state.chains["default"].append(dict(state.chains["default"][-2]))
    state.chain_again(after=len(state.chains["default"]) - 1)


@attack("open")
def blank_a_person(state):
    for entry in state.chains["default"]:
        entry["actor_id"] = None


# The trial.


def write_entries(service, count):
    for tenant in TENANTS:
        metadata = {"user_role": "service_role", "tenant": tenant}
        bearer = token(service.secret, "backend", tenant=tenant, app_metadata=metadata)
        for number in range(count):
            body = {"userId": f"person-{number}", "issuedBefore": "2026-01-01T00:00:00Z"}
            status, content = service.request("POST", "/v1/revocations", bearer, body)
            if status != 201:
                raise Failed(f"a revocation was answered with {status}: {content[:300]}")


def line_of(entry):
    seconds, microseconds = divmod(entry["noted_at"], 1_000_000)
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{entry['tenant']}\t{entry['sequence']}\t{entry['hash']}\t{moment}.{microseconds // 1000:03}Z\n"


def age(state):
    """Makes the first entries of a tenant older than the log keeps them, and deletes some of them, as the service does.

    Returns lines of verifications that would have been made meanwhile.
    """
    chain = state.chains["default"]
    for index, entry in enumerate(chain[:6]):
        entry["noted_at"] -= (500 - 10 * index) * DAY
    state.chain_again(after=0)
    lines = line_of(chain[1])
    state.add_cut(3)
    chain = state.chains["default"]
    for entry in [dict(entry) for entry in chain[-4:-1]]:
        chain.append(entry)
    state.chain_again(after=len(chain) - 3)
    return lines + line_of(chain[-3]) + line_of(chain[-2]) + line_of(state.chains["other"][-1])


class Trial:
    def __init__(self, options, folder, log, address):
        self.options, self.log, self.folder = options, log, folder
        self.environment = environment_for(BELLHOP_DATABASE=address)
        self.known = folder / "heads.txt"

    def verify(self, *arguments, command=("audit", "verify")):
        done = subprocess.run(
            [self.options.binary, *command, *arguments], env=self.environment, capture_output=True, text=True)
        if done.returncode not in (0, 1):
            raise Failed(f"bellhop {' '.join(command)} ended with {done.returncode}: {done.stderr[-600:]}")
        return done

    def prepare(self):
        """Stores an aged log with lines of earlier verifications. The last entry was written after them."""
        state = State(self.log.read("audit"), self.log.read("audit_heads"), self.log.read("service_secrets"))
        self.known.write_text(age(state))
        self.log.replace(state.tables())
        for arguments in [(), ("--known", str(self.known))]:
            done = self.verify(*arguments)
            if done.returncode:
                raise Failed(f"an intact log was refused: {done.stdout}{done.stderr}")
        if "--known" not in self.verify().stderr:
            raise Failed("a verification without earlier lines does not say what it cannot find")
        if done.stdout != "".join(line_of(state.chains[tenant][-1]) for tenant in TENANTS):
            raise Failed(f"the lines are not those of the last entries: {done.stdout}")
        return state

    def judge(self, where, function, state):
        changed = copy.deepcopy(state)
        function(changed)
        self.log.replace(changed.tables())
        done = self.verify()
        plain = done.returncode == 1
        # As a script does that verifies every day: the lines of this verification are behind the earlier ones.
        appended = self.folder / "appended.txt"
        appended.write_text(self.known.read_text() + done.stdout)
        known = self.verify("--known", str(appended)).returncode == 1
        check = self.verify(command=("check",)).returncode == 1
        expected = {"plain": (True, True, True), "setting": (True, True, False), "known": (False, True, False),
                    "open": (False, False, False)}[where]
        if (plain, known, check) != expected:
            raise Failed(
                f"{function.__name__} is found by verify: {plain}, with --known: {known}, by check: {check}, "
                f"and must be {expected}")
        print(f"  {where:7} {function.__name__}", flush=True)


def run(options, folder):
    with database(options.on, folder) as stored:
        service = Service(options.binary, folder)
        service.environment["BELLHOP_DATABASE"] = stored.address
        stored.prepare(options.binary)
        service.start()
        try:
            write_entries(service, 10)
            service.stop()
        finally:
            if service.process.poll() is None:
                service.kill()
        log = (SQLiteLog if options.on == "sqlite" else PostgresLog)(stored)
        trial = Trial(options, folder, log, stored.address)
        state = trial.prepare()
        attacks = list(ATTACKS)
        random.Random(options.seed).shuffle(attacks)
        for where, function in attacks:
            trial.judge(where, function, state)
        blanked = copy.deepcopy(state)
        blank_a_person(blanked)
        digest = blanked.digest("default", "backend")
        if not any(entry["actor_digest"] == digest for entry in blanked.chains["default"]):
            raise Failed("the acts of a blanked person are not found by the digest")
    return len(ATTACKS)


if __name__ == "__main__":
    sys.exit(run_script("audit", __doc__, run, on="sqlite"))
