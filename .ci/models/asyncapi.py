"""Generates asyncapi.yaml: the events of a stream as an AsyncAPI 3 document, from `x-events` of openapi.yaml."""
import re

import yaml

from .texts import NOTE, pascal

STREAM = "/v1/stream"
SCHEMAS = "#/components/schemas/"
DESCRIPTION = """\
The events that Bellhop sends on the stream `GET /v1/stream`, as Server-Sent Events. The `name` of a message is the field
`event`, its payload is the field `data` in JSON, and its header `id` is the field `id`.

openapi.yaml describes the requests: tokens, tickets, topics and table subscriptions.
"""
CHANNEL = """\
A stream carries the personal events of its user, and the events of the topics and tables to which it subscribes.
"""
OWN_EVENT = """\
An event that an app publishes with `POST /v1/publish`. Its name and its data are the app's choice. The first part of the name
is never one that Bellhop uses for its own events.
"""
# The kinds of credentials have other names in AsyncAPI.
SECURITY = {"http": "http", "apiKey": "httpApiKey"}


def asyncapi(contract):
    """Returns the text of asyncapi.yaml."""
    return f"# {NOTE}\n" + yaml.dump(
        Events(contract).root(), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=118, default_flow_style=False)


class Dumper(yaml.SafeDumper):
    """Writes no anchors, indents lists, and writes texts of several lines as blocks."""

    def ignore_aliases(self, data):
        return True

    def increase_indent(self, flow=False, indentless=False):
        return super().increase_indent(flow, False)

    def text(self, data):
        return self.represent_scalar("tag:yaml.org,2002:str", data, style="|" if "\n" in data else None)


Dumper.add_representer(str, Dumper.text)


class Events:
    def __init__(self, contract):
        self.document, self.event_tags = contract.document, contract.event_tags
        self.stream = self.document["paths"][STREAM]["get"]
        self.schemas = {}

    def root(self):
        messages = {pascal(name): self.message(name, schema) for name, schema in self.stream["x-events"].items()}
        messages["PublishedEvent"] = {"title": "Event of an app", "description": OWN_EVENT, "payload": self.own_payload()}
        for message in messages.values():
            message["traits"] = [{"$ref": "#/components/messageTraits/event"}]
        info = self.document["info"]
        title = f"Events of {info['title']}"
        licence = {"name": "Apache 2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"}
        host = {"default": "bells.example", "description": "Host of the service, and its port."}
        sent = {"$ref": "#/channels/stream"}
        return {
            "asyncapi": "3.0.0",
            "info": {"title": title, "version": info["version"], "description": DESCRIPTION, "license": licence},
            "defaultContentType": "application/json",
            "servers": {"service": {"host": "{host}", "protocol": "https", "variables": {"host": host}}},
            "channels": {"stream": {
                "address": STREAM, "title": "Event stream", "description": CHANNEL,
                "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in messages},
            }},
            "operations": {"sendEvents": {
                "action": "send", "channel": sent, "title": "Send events",
                "security": [{"$ref": f"#/components/securitySchemes/{name}"} for name in self.accepted()],
                "bindings": {"http": {"method": "GET", "query": self.query(), "bindingVersion": "0.3.0"}},
            }},
            "components": {
                "messages": messages,
                "messageTraits": {"event": {"headers": self.headers()}},
                "schemas": dict(sorted(self.schemas.items())),
                "securitySchemes": {name: self.scheme(name) for name in self.accepted()},
            },
        }

    def message(self, name, schema):
        found = {"name": name, "title": self.title(name)}
        text = schema.get("description") or self.target(schema).get("description")
        if text:
            found["description"] = text
        found["tags"] = [{"name": self.event_tags[name]}]
        return found | {"payload": self.schema({key: schema[key] for key in schema if key != "description"})}

    def own_payload(self):
        return dict(self.document["components"]["schemas"]["OwnEvent"]["properties"]["data"])

    @staticmethod
    def title(name):
        words = re.split("[:_]", name)
        return " ".join([words[0].capitalize(), *words[1:]])

    def target(self, schema):
        reference = schema.get("$ref", "")
        return self.document["components"]["schemas"][reference.removeprefix(SCHEMAS)] if reference else {}

    def schema(self, node):
        """Returns a schema for AsyncAPI, which is JSON Schema of draft 7, and notes the schemas that it names."""
        if isinstance(node, list):
            return [self.schema(child) for child in node]
        if not isinstance(node, dict):
            return node
        name = node.get("$ref", "").removeprefix(SCHEMAS) if isinstance(node.get("$ref"), str) else ""
        if name and name not in self.schemas:
            self.schemas[name] = {}
            self.schemas[name] = self.schema(self.document["components"]["schemas"][name])
        # Draft 7 ignores the members beside a reference.
        if name and len(node) > 1:
            rest = {key: value for key, value in node.items() if key != "$ref"}
            return {"allOf": [{"$ref": node["$ref"]}], **self.schema(rest)}
        return {key: self.schema(value) for key, value in node.items()}

    def headers(self):
        described = self.stream["responses"]["200"]["content"]["text/event-stream"]["x-event-schema"]
        return {"type": "object", "properties": {"id": dict(described["properties"]["id"])}}

    def query(self):
        parameters = [parameter for parameter in self.stream["parameters"] if parameter["in"] == "query"]
        return {"type": "object", "properties": {
            parameter["name"]: {**parameter["schema"], "description": parameter["description"]} for parameter in parameters}}

    def accepted(self):
        return [name for alternative in self.stream["security"] for name in alternative]

    def scheme(self, name):
        described = self.document["components"]["securitySchemes"][name]
        return {**described, "type": SECURITY[described["type"]]}
