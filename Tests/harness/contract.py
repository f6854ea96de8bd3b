"""The contract: openapi.yaml and asyncapi.yaml, by which tests judge what the service sends.

The judgement is stricter than the documents in one point: no object may have a member that is not described."""

import copy
import functools
import json
import pathlib
import re

import jsonschema
import yaml
from jsonschema.validators import extend
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from .providers import REQUESTS

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROBLEM = "application/problem+json"
LINES = "application/x-ndjson"
# Keywords whose schemas judge the same object together with their neighbours.
PARTIAL = ("allOf", "anyOf", "not", "if", "then", "else")


class Loader(yaml.CSafeLoader):
    """A loader that keeps timestamps as text."""


Loader.yaml_implicit_resolvers = {
    letter: [pair for pair in pairs if pair[0] != "tag:yaml.org,2002:timestamp"]
    for letter, pairs in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def load(name):
    with open(ROOT / name, encoding="utf-8") as file:
        return yaml.load(file, Loader)


def closed(document):
    """Returns a document whose objects reject members that are not described.

    The parts of an allOf stay open, because the whole is closed. A part that is also used alone is closed there."""
    document = copy.deepcopy(document)
    parts = set()

    def find(node):
        if isinstance(node, dict):
            for name in PARTIAL:
                inner = node.get(name, [])
                parts.update(part["$ref"] for part in (inner if isinstance(inner, list) else [inner]) if "$ref" in part)
        for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else []:
            find(child)

    def close(node, place, is_part):
        if isinstance(node, list):
            for index, child in enumerate(node):
                close(child, f"{place}/{index}", is_part)
        if not isinstance(node, dict):
            return
        for name, child in node.items():
            close(child, f"{place}/{name}", name in PARTIAL)
        is_schema = isinstance(node.get("properties"), dict) or "allOf" in node or node.get("$ref") in parts
        if is_schema and not is_part and place not in parts:
            node.setdefault("unevaluatedProperties", False)

    find(document)
    close(document, "#", False)
    return document


def has_json_content(validator, schema, instance, _):
    """Judges a text that is JSON, which JSON Schema itself only describes."""
    if not validator.is_type(instance, "string"):
        return
    try:
        value = json.loads(instance)
    except ValueError as error:
        yield jsonschema.ValidationError(f"{instance[:100]!r} is no JSON: {error}")
        return
    yield from validator.descend(value, schema)


formats = jsonschema.FormatChecker()
if "date-time" not in formats.checkers:
    raise SystemExit("times cannot be judged: rfc3339-validator is missing")
formats.checks("int64")(lambda value: not isinstance(value, int) or -(2**63) <= value < 2**63)
Validator = extend(jsonschema.Draft202012Validator, {"contentSchema": has_json_content})


class Contract:
    """Each method returns what is wrong with an exit, as sentences."""

    def __init__(self):
        self.open = load("openapi.yaml")
        self.closed = closed(self.open)
        documents = {"openapi": self.closed, "asyncapi": closed(load("asyncapi.yaml"))}
        self.messages = documents["asyncapi"]["components"]["messages"]
        self.registry = Registry().with_resources(
            (f"urn:{name}", Resource(document, DRAFT202012)) for name, document in documents.items())
        self.stream = self.closed["paths"]["/v1/stream"]["get"]
        self.codes = self.open["components"]["schemas"]["Problem"]["x-codes"]
        self.common = self.closed["x-any-answer"]

    # Schemas

    @functools.cache
    def validator(self, place):
        """Returns the validator of the schema at a place, such as `urn:openapi#/components/schemas/Badges`."""
        return Validator({"$ref": place}, registry=self.registry, format_checker=formats)

    def mistakes(self, place, text):
        """Returns what is wrong with a JSON text."""
        try:
            value = json.loads(text, parse_constant=refuse)
        except ValueError as error:
            return [f"is no JSON ({error}): {text[:300]!r}"]
        return self.mistakes_of_value(place, value)

    def mistakes_of_value(self, place, value):
        found = []
        for error in self.validator(place).iter_errors(value):
            best = jsonschema.exceptions.best_match([error])
            found.append(f"{best.json_path}: {best.message[:300]}")
        return found

    def resolve(self, node):
        while "$ref" in node:
            target = self.closed
            for step in node["$ref"][2:].split("/"):
                target = target[step.replace("~1", "/").replace("~0", "~")]
            node = target
        return node

    # Answers

    def pattern(self, path):
        """Returns the pattern of an address. As in the router, the more exact pattern wins."""
        for pattern in sorted(self.open["paths"], key=lambda pattern: pattern.count("{")):
            if re.fullmatch(re.sub(r"\{[^}]+\}", "[^/]+", pattern), path):
                return pattern
        return None

    def answer(self, method, pattern, status, headers, body):
        """Judges an answer.

        - pattern: The address in the document; None if there is no such address.
        - headers: The fields by their names in lower case.
        - body: None if its content is not known."""
        operations = self.open["paths"].get(pattern, {})
        verb = "get" if method == "HEAD" and "get" in operations else method.lower()
        code = problem_code(headers, body)
        described, place = self.described(pattern, verb, str(status), code)
        if described is None:
            return [f"the status is not described{f' with the code {code}' if code else ''}: {(body or '')[:200]!r}"]
        found = self.mistakes_of_headers(headers, described, status, verb)
        listed = self.codes.get(code, {})
        if code is not None and status not in (listed.get("status"), listed.get("also")):
            found.append(f"the code {code} is not listed with this status")
        content = described.get("content", {})
        media = headers.get("content-type", "").split(";")[0]
        if not content:
            return found + (["has a body that is not described"] if body or media else [])
        if media not in content:
            return found + [f"is {media or 'of no type'}, and not {', '.join(content)}"]
        if body is None or (method == "HEAD" and not body):
            return found
        if media == LINES:
            # Texts may have other ends of lines, such as U+2028, which JSON need not escape.
            lines = body.removesuffix("\n").split("\n") if body else []
            each = f"{place}/content/{escaped(media)}/x-line-schema"
            return found + [mistake for line in lines for mistake in self.mistakes(each, line)]
        if media.endswith(("/json", "+json")) and "schema" in content[media]:
            return found + self.mistakes(f"{place}/content/{escaped(media)}/schema", body)
        return found

    def described(self, pattern, verb, status, code):
        """Returns the description of a status and its place; (None, None) if there is none."""
        operation = self.closed["paths"].get(pattern, {}).get(verb, {})
        if status in operation.get("responses", {}):
            place, node = f"#/paths/{escaped(pattern)}/{verb}/responses/{status}", operation["responses"][status]
        elif code in self.common["x-codes"].get(status, []) or (verb == "options" and status == "204"):
            place, node = f"#/x-any-answer/responses/{status}", self.common["responses"][status]
        else:
            return None, None
        while "$ref" in node:
            place, node = node["$ref"], self.resolve(node)
        return node, f"urn:openapi{place}"

    def mistakes_of_headers(self, headers, described, status, verb):
        own = {name.lower(): self.resolve(header) for name, header in described.get("headers", {}).items()}
        common = {name.lower(): self.resolve(header) for name, header in self.common["headers"].items()}
        known = {"content-type": {}} | common | own
        found = []
        for name, header in known.items():
            # The answer to a read says from where a stream continues. A write may use the same description.
            is_required = header.get("required") or (name == "event-position" and verb == "get" and status == 200)
            if is_required and name not in headers:
                found.append(f"lacks the header {name}")
        for name, value in headers.items():
            if name not in known:
                found.append(f"has the header {name}, which is not described")
            elif "schema" in known[name]:
                found += [f"header {name}: {mistake}" for mistake in self.header_mistakes(known[name]["schema"], value)]
        return found

    def header_mistakes(self, schema, value):
        value = int(value) if schema.get("type") == "integer" and re.fullmatch("[0-9]+", value) else value
        return [error.message for error in Validator(schema, format_checker=formats).iter_errors(value)]

    # Events, webhooks and push messages

    def event(self, name, text):
        if name in self.stream["x-events"]:
            message = next((key for key, one in self.messages.items() if one.get("name") == name), None)
            if message is None:
                return ["asyncapi.yaml lacks it"]
            place = f"urn:openapi#/paths/{escaped('/v1/stream')}/get/x-events/{escaped(name)}"
            found = self.mistakes(place, text)
            return found or self.mistakes(f"urn:asyncapi#/components/messages/{message}/payload", text)
        own = self.stream["responses"]["200"]["content"]["text/event-stream"]["x-event-schema"]["oneOf"][0]
        if list(Validator(own["properties"]["event"]).iter_errors(name)):
            return ["is not described"]
        return self.mistakes("urn:asyncapi#/components/messages/PublishedEvent/payload", text)

    def webhook(self, name, headers, text):
        found = self.mistakes_of_webhook_headers(headers) + self.mistakes("urn:openapi#/components/schemas/Webhook", text)
        return found or ([] if json.loads(text)["type"] == name else [f"is {json.loads(text)['type']}"])

    def mistakes_of_webhook_headers(self, headers):
        operation = self.closed["webhooks"]["event"]["post"]
        described = {"content-type": {"enum": list(operation["requestBody"]["content"])}}
        described |= {one["name"].lower(): one["schema"] for one in operation["parameters"] if one["in"] == "header"}
        return mistakes_of_fields(headers, described)

    def push(self, platform, headers, text):
        payloads = self.closed["paths"]["/v1/devices/{id}"]["put"]["x-payloads"]
        if platform not in payloads:
            return ["is not described"]
        return provider_mistakes(platform, headers, text) + self.mistakes(f"urn:openapi{payloads[platform]['$ref']}", text)


def problem_code(headers, body):
    """Returns the code of a problem document; None for another answer."""
    if headers.get("content-type") != PROBLEM or not body:
        return None
    try:
        return json.loads(body).get("code")
    except (ValueError, AttributeError):
        return None


def mistakes_of_fields(headers, described):
    """Judges the headers of a request of the service: all that are described, and no others."""
    schema = {"properties": described, "required": list(described), "additionalProperties": False}
    return [f"header {error.json_path[2:]}: {error.message}" for error in Validator(schema).iter_errors(headers)]


def provider_mistakes(platform, headers, text):
    """Judges the headers of a push message by what its push service requires."""
    try:
        payload = json.loads(text)
    except ValueError:
        return []
    errors = Validator(REQUESTS[platform]).iter_errors({"headers": headers, "payload": payload})
    return [f"{error.json_path[2:]}: {error.message[:300]}" for error in errors]


def refuse(constant):
    raise ValueError(f"{constant} is no JSON")


def escaped(step):
    """Returns a step of a JSON pointer inside a URI fragment."""
    return step.replace("~", "~0").replace("/", "~1").replace("{", "%7B").replace("}", "%7D").replace("+", "%2B")
