#!/usr/bin/env python3
"""Runs the curl samples of openapi.yaml (`x-codeSamples`) against the real service.

    samples.py --binary BINARY

The service is empty, so a sample may be answered with 404, or with a conflict. Each answer must be one that the sample's
operation documents, and none may say that the request is malformed, unauthenticated, forbidden or invalid. Prints the
number of samples as `cases: N`."""

import argparse
import functools
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import snippets
import yaml
from harness.services import Service
from harness.tokens import issued

METHODS = ("get", "put", "post", "delete", "options", "head", "patch")
# Statuses that blame the request itself.
BLAMED = {400, 401, 403, 405, 408, 413, 415, 422, 428, 429}
# Samples that a fresh service refuses because of its state, each with a part of the answer.
EXPECTED = {
    "PUT /v1/streams/{id}/token": '"pointer":"/token"',  # the sample's token has no real signature
    "POST /v1/explain": '"pointer":"/eventId"',  # the event is of another log
    "PUT /v1/shops/{id}/presence/me": "presence.wrong_code",
    "POST /v1/shops/{id}/dj/tracks": "dj.not_present",
    "PUT /v1/shops/{id}/dj/tracks/{trackId}/vote": "dj.not_present",
    "PUT /v1/shops/{id}/dj/current-track": '"pointer":"/trackId"',
    "POST /v1/bookings": "booking.in_past",
}


def samples():
    """Returns the samples: operation's name, operation, and command. Deletions come last."""
    contract = yaml.safe_load((snippets.ROOT / "openapi.yaml").read_text(encoding="utf-8"))
    found = [(f"{method.upper()} {path}", item[method], sample["source"]) for path, item in contract["paths"].items()
             for method in METHODS if method in item for sample in item[method].get("x-codeSamples", [])]
    return sorted(found, key=lambda sample: sample[0].startswith("DELETE"))


def start(binary, folder):
    # The tables of a school, plus posts, which have counts.
    tables = snippets.ROOT / "Deploy/tables"
    school, posts = ((tables / f"{name}.yaml").read_text(encoding="utf-8") for name in ("school", "posts"))
    (folder / "tables.yaml").write_text(school + posts.split("\ntables:\n")[1], encoding="utf-8")
    service = Service(binary, folder)
    service.environment |= {
        "HOME": str(folder), "BELLHOP_TABLES": str(folder / "tables.yaml"), "BELLHOP_RATE_LIMIT_USER": "0",
        "BELLHOP_CHANGES_SECRET": "a secret of the changes of this run",
    }
    service.start()
    return service


def status_of(source, folder, environment):
    """Runs a sample; returns the status of its answer, and errors of curl. A stream is read for a second."""
    port = environment["BELLHOP_PORT"]
    text = source.strip().replace("127.0.0.1:8080", f"127.0.0.1:{port}")
    stream = "--max-time 1" if "curl -N" in text else ""
    text = text.replace("curl", f"curl -sS -o answer -w '%{{http_code}}' {stream}", 1)
    done = subprocess.run(["bash", "-c", text], cwd=folder, env=environment, capture_output=True, text=True)
    return int(done.stdout[-3:] or 0), done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    binary = os.path.abspath(parser.parse_args().binary)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="bellhop-samples-"))
    service, count, wrong = start(binary, folder), 0, []
    environment = service.environment
    token = functools.partial(issued, binary, environment=environment)
    tokens = {
        "TOKEN": token("ada"), "BACKEND": token("backend", "--role", "service_role"),
        "STAFF": token("sam", "--role", "staff", "--claim", 'app_metadata.shop_ids=["s1"]'),
    }
    try:
        for name, operation, source in samples():
            count += 1
            status, error = status_of(source, folder, environment | tokens)
            documented = str(status) in operation["responses"]
            with open(f"{folder}/answer", encoding="utf-8", errors="replace") as file:
                answer = file.read(2000)
            is_refused = status in BLAMED and EXPECTED.get(name, "no answer") not in answer
            if not documented or is_refused:
                wrong.append(f"{name}: {status} {error}\n{source}{answer}")
    finally:
        service.kill()
        shutil.rmtree(folder, ignore_errors=True)
    if wrong:
        sys.exit("\n\n".join(wrong))
    print(f"cases: {count}")


if __name__ == "__main__":
    main()
