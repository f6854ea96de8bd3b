#!/usr/bin/env python3
"""Generates clients from openapi.yaml with two common generators, compiles them and calls the running service.

openapi-python-client makes the Python client, openapi-generator the TypeScript client. A generator must not warn about
the document, and its client must have every operation. Each client then creates a notification and lists it.
"""

import argparse
import collections
import compileall
import importlib
import json
import os
import pathlib
import pkgutil
import re
import subprocess
import sys
import tempfile

import yaml
from harness.tokens import issued

HERE = pathlib.Path(__file__).resolve().parent
DOCUMENT = HERE.parent.parent / "openapi.yaml"
TOOLS = pathlib.Path(sys.executable).parent
# Messages of openapi-generator about itself, for which the document has no other form.
ABOUT_ITSELF = (
    # The options of an anyOf or oneOf have no names.
    "Failed to get the schema name: null",
    "OpenAPI 3.1 support is still in beta",
)
# An endless response is no value, so this operation is excluded from the counts.
STREAM = "openStream"


def run(*command, folder, environment=None):
    """Runs a command and returns what it prints; ends the test if the command fails."""
    done = subprocess.run(
        [str(part) for part in command], cwd=folder, env={**os.environ, **(environment or {})}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )
    if done.returncode != 0:
        sys.exit(f"{command[0]} failed ({done.returncode}):\n{done.stdout[-8000:]}")
    return done.stdout


def operations():
    """Returns the ids of all operations that a client can call."""
    paths = yaml.safe_load(DOCUMENT.read_text(encoding="utf-8"))["paths"]
    methods = ("get", "post", "put", "patch", "delete")
    described = [item[method] for item in paths.values() for method in methods if method in item]
    ids = [operation["operationId"] for operation in described]
    twice = [name for name, count in collections.Counter(ids).items() if count > 1]
    if twice:
        sys.exit(f"operations of one name: {twice}")
    return set(ids) - {STREAM}


def expect_all(language, wanted, found):
    """Fails if a client lacks an operation. Names are compared without case and separators."""
    found = {name.replace("_", "").lower() for name in found}
    missing = sorted(name for name in wanted if name.lower() not in found)
    if missing:
        sys.exit(f"the {language} client lacks {len(missing)} operations: {', '.join(missing)}")


def python(folder, wanted, url, backend, user):
    """Generates and uses a Python client."""
    configuration = folder / "python.yaml"
    # The generator knows no other type of text than text/*.
    configuration.write_text("content_type_overrides: {application/yaml: text/plain, application/x-ndjson: text/plain}\npost_hooks: []\n")
    run(
        TOOLS / "openapi-python-client", "generate", "--path", DOCUMENT, "--meta", "none", "--config", configuration,
        "--output-path", folder / "bellhop_client", "--fail-on-warning", folder=folder,
    )
    if not compileall.compile_dir(folder / "bellhop_client", quiet=1):
        sys.exit("the Python client does not compile")
    sys.path.insert(0, str(folder))
    client = importlib.import_module("bellhop_client")
    modules = [name for _, name, _ in pkgutil.walk_packages(client.__path__, "bellhop_client.")]
    for name in modules:
        importlib.import_module(name)
    calls = {name.rsplit(".", 1)[1] for name in modules if re.match(r"bellhop_client\.api\.\w+\.\w+$", name)}
    expect_all("Python", wanted, calls)
    use_python(client, url, backend, user)


def use_python(client, url, backend, user):
    models = importlib.import_module("bellhop_client.models")
    post = importlib.import_module("bellhop_client.api.notifications.post_notification")
    listed = importlib.import_module("bellhop_client.api.notifications.list_notifications")
    draft = models.NotificationDraft(
        user_id="generated", category="system", priority=models.Priority.HIGH, title="From Python", message="Hello",
    )
    created = post.sync(client=client.AuthenticatedClient(base_url=url, token=backend), body=draft)
    page = listed.sync(client=client.AuthenticatedClient(base_url=url, token=user))
    if created.notification.id not in [item.id for item in page.items]:
        sys.exit(f"the Python client created {created}, which is not in {page}")
    refused = post.sync_detailed(client=client.AuthenticatedClient(base_url=url, token=user), body=draft)
    if refused.status_code != 403 or refused.parsed.code != "insufficient_scope":
        sys.exit(f"the Python client read a refusal as {refused}")


def typescript(folder, wanted, url, backend, user):
    """Generates and uses a TypeScript client."""
    # Run-time checks need TypeScript 4.9.
    log = run(
        TOOLS / "openapi-generator-cli", "generate", "-i", DOCUMENT, "-g", "typescript-fetch", "-o", folder / "client",
        "--additional-properties=withoutRuntimeChecks=true", folder=folder,
    )
    warnings = [line for line in log.splitlines() if re.search(r"\b(WARN|ERROR)\b", line)]
    warnings = [line for line in warnings if not any(known in line for known in ABOUT_ITSELF)]
    if warnings:
        sys.exit("openapi-generator warns:\n" + "\n".join(warnings))
    (folder / "app.ts").write_text((HERE / "generated.ts").read_text(encoding="utf-8"))
    flags = "--noEmit --strict --target ES2022 --lib ES2022,DOM --module ES2022 --moduleResolution node"
    run("tsc", *flags.split(), "app.ts", folder=folder)
    text = "".join(file.read_text(encoding="utf-8") for file in (folder / "client" / "apis").glob("*.ts"))
    expect_all("TypeScript", wanted, set(re.findall(r"^    async (\w+)\(", text, re.MULTILINE)))
    run("esbuild", "app.ts", "--bundle", "--platform=node", "--format=esm", "--outfile=app.mjs", folder=folder)
    said = run("node", "app.mjs", folder=folder, environment={"URL": url, "BACKEND": backend, "USER_TOKEN": user})
    answer = json.loads(said)
    if answer != {"created": True, "refused": [403, "insufficient_scope"]}:
        sys.exit(f"the TypeScript client says {answer}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--binary", required=True, help="bellhop, which creates the tokens (BELLHOP_JWT_SECRET)")
    options = parser.parse_args()
    tokens = issued(options.binary, "backend", "--role", "service_role"), issued(options.binary, "generated")
    wanted = operations()
    with tempfile.TemporaryDirectory() as folder:
        python(pathlib.Path(folder), wanted, options.url, *tokens)
        typescript(pathlib.Path(folder), wanted, options.url, *tokens)
    print(f"clients in Python and TypeScript were generated, each with {len(wanted)} operations")
    print(f"cases: {2 * len(wanted)}")


if __name__ == "__main__":
    main()
