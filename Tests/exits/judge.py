#!/usr/bin/env python3
"""Judges what left the service by the contract (harness/contract.py). Debug builds of the service record it into the folder
that TEST_EXITS names (Sources/Service/Exits).

    judge.py FOLDER             judges the records of a stage, and prints what is wrong
    judge.py --seen FOLDER …    checks that the stages together have seen each kind of exit, or that unseen.txt says why not
    judge.py --check            judges exits with planted mistakes, each of which must be found
"""

import argparse
import base64
import collections
import json
import pathlib
import sys

import planted
from harness.contract import Contract

HERE = pathlib.Path(__file__).resolve().parent
# Mistakes of one kind that are printed.
SHOWN_MAX = 3


def records(folder, contract):
    """Returns the records of all processes without repetitions. The last line of a killed process may be cut.

    An answer that was refused before its operation was known gets the operation of its address."""
    lines = dict.fromkeys(line for file in sorted(pathlib.Path(folder).rglob("*.jsonl"))
                          for line in file.read_bytes().splitlines(keepends=True) if line.endswith(b"\n"))
    found = [json.loads(line) for line in lines]
    for record in found:
        if record.get("route") == "none":
            record["route"] = contract.pattern(record["path"]) or "none"
    return found


def kind(record):
    """Returns the kind of an exit, such as `answer getBadges 200` or `event badges:update`."""
    if record["kind"] != "answer":
        return f"{record['kind']} {record['name']}"
    return f"answer {record['method']} {record['route']} {record['status']}"


def mistakes(contract, record):
    body = record.get("body")
    if "bytes" in record:
        return [f"is no UTF-8: {base64.b64decode(record['bytes'])[:200]!r}"]
    if record["kind"] == "event":
        return contract.event(record["name"], body)
    headers = {field["name"].lower(): field["value"] for field in record["headers"]}
    if record["kind"] == "webhook":
        return contract.webhook(record["name"], headers, body)
    if record["kind"] == "push":
        return contract.push(record["name"], headers, body)
    return contract.answer(record["method"], record["route"], record["status"], headers, body)


def judge(folder):
    """Judges the records of a folder. Returns the mistakes by kind, and the number of records of each kind."""
    contract, found, counts = Contract(), collections.defaultdict(list), collections.Counter()
    for record in records(folder, contract):
        counts[kind(record)] += 1
        found[kind(record)] += mistakes(contract, record)
    return {name: sorted(set(texts)) for name, texts in found.items() if texts}, counts


def wanted(contract):
    """Returns the kinds of exits that the contract describes."""
    answers = {f"answer {verb.upper()} {pattern} {status}" for pattern, operations in contract.open["paths"].items()
               for verb, operation in operations.items() if verb != "parameters" for status in operation["responses"]}
    events = {f"event {name}" for name in contract.stream["x-events"]}
    webhooks = {f"webhook {name}" for name in contract.open["components"]["schemas"]["WebhookType"]["enum"]}
    pushes = {f"push {name}" for name in contract.open["components"]["schemas"]["PushPlatform"]["enum"]}
    return answers | events | webhooks | pushes


def excused():
    """Returns the kinds of exits that no test causes, with their reasons. `*` stands for any operation."""
    reasons = {}
    for line in (HERE / "unseen.txt").read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            name, _, reason = line.partition(" | ")
            reasons[name.strip()] = reason.strip()
    return reasons


def check_seen(folders):
    contract, reasons = Contract(), excused()
    seen = {kind(record) for folder in folders for record in records(folder, contract)}
    statuses = {name.split(" ")[-1] for name in seen if name.startswith("answer ")}

    def is_excused(name):
        # An answer of the same code for all operations must be seen at one of them.
        status = name.split(" ")[-1]
        return name in reasons or (name.startswith("answer ") and f"answer * {status}" in reasons and status in statuses)

    unseen = sorted(name for name in wanted(contract) - seen if not is_excused(name))
    strange = sorted(name for name in reasons if "*" not in name and name not in wanted(contract))
    without = sorted(name for name, reason in reasons.items() if not reason)
    listed = sorted(seen & reasons.keys())
    for text, names in (("was not seen", unseen), ("is in unseen.txt, but was seen", listed),
                        ("is in unseen.txt, but the contract does not describe it", strange),
                        ("has no reason in unseen.txt", without)):
        for name in names:
            print(f"  ✗ {name} {text}", file=sys.stderr)
    print(f"{len(seen & wanted(contract))} of {len(wanted(contract))} kinds of exits were seen")
    return not (unseen or listed or strange or without)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*")
    parser.add_argument("--seen", action="store_true")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    if arguments.check:
        contract = Contract()
        sys.exit(not planted.check(lambda record: mistakes(contract, record)))
    if arguments.seen:
        sys.exit(not check_seen(arguments.folders))
    found, counts = judge(arguments.folders[0])
    for name, texts in sorted(found.items()):
        for text in texts[:SHOWN_MAX]:
            print(f"  ✗ {name} {text}", file=sys.stderr)
    print(f"exits: {sum(counts.values())} of {len(counts)} kinds, {len(found)} kinds with mistakes")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
