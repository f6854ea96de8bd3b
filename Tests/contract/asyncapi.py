#!/usr/bin/env python3
"""Checks that asyncapi.yaml is a valid AsyncAPI 3 document, resolves in itself, and has every event of openapi.yaml."""

import pathlib
import sys

import jsonschema
import pydantic
import yaml
from pydantic_asyncapi.v3 import AsyncAPI

# Members of AsyncAPI that the models do not have.
NOT_MODELLED = {"#/components/securitySchemes"}
SECURITY_TYPES = {
    "userPassword", "apiKey", "X509", "symmetricEncryption", "asymmetricEncryption", "httpApiKey", "http", "oauth2",
    "openIdConnect", "plain", "scramSha256", "scramSha512", "gssapi",
}
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def load(name):
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def references(node):
    """Returns all references below a node."""
    if isinstance(node, list):
        return [found for child in node for found in references(child)]
    if not isinstance(node, dict):
        return []
    own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
    return own + [found for child in node.values() for found in references(child)]


def resolves(reference, document):
    for step in reference.removeprefix("#/").split("/"):
        if not isinstance(document, dict) or step not in document:
            return False
        document = document[step]
    return reference.startswith("#/")


def strangers(model, place="#"):
    """Returns the members that the AsyncAPI models do not know. Schemas may have any member."""
    if isinstance(model, (list, tuple)):
        return [found for index, child in enumerate(model) for found in strangers(child, f"{place}/{index}")]
    if isinstance(model, dict):
        return [found for name, child in model.items() for found in strangers(child, f"{place}/{name}")]
    if not isinstance(model, pydantic.BaseModel) or type(model).__name__ == "Schema":
        return []
    found = [f"{place}/{name}" for name in model.model_extra or {}]
    return found + [more for name, child in model for more in strangers(child, f"{place}/{name}")]


def main():
    document = load("asyncapi.yaml")
    failures = []
    try:
        unknown = set(strangers(AsyncAPI.model_validate(document))) - NOT_MODELLED
        failures += [f"AsyncAPI has no {place}" for place in sorted(unknown)]
    except pydantic.ValidationError as error:
        failures.append(str(error))
    failures += [f"{name} names nothing" for name in set(references(document)) if not resolves(name, document)]
    for name, scheme in document["components"]["securitySchemes"].items():
        if scheme["type"] not in SECURITY_TYPES:
            failures.append(f"security scheme {name} has the unknown type {scheme['type']}")
    messages = document["components"]["messages"]
    for schema in [message["payload"] for message in messages.values()] + list(document["components"]["schemas"].values()):
        try:
            jsonschema.Draft7Validator.check_schema(schema)
        except jsonschema.SchemaError as error:
            failures.append(f"no schema of draft 7: {error.json_path}: {error.message}")
    names = {message["name"] for message in messages.values() if "name" in message}
    described = set(load("openapi.yaml")["paths"]["/v1/stream"]["get"]["x-events"])
    failures += [f"event of one document only: {name}" for name in sorted(names ^ described)]
    sent = {reference["$ref"] for reference in document["channels"]["stream"]["messages"].values()}
    failures += [f"the channel lacks {name}" for name in messages if f"#/components/messages/{name}" not in sent]
    if failures:
        sys.exit("asyncapi.yaml:\n  " + "\n  ".join(failures))
    print(f"asyncapi.yaml: OK, {len(messages)} messages")
    print(f"cases: {len(messages)}")


if __name__ == "__main__":
    main()
