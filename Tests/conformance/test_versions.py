"""Cases about the descriptions of the service."""

import json

import jsonschema
import pytest
import yaml
from kit.citing import cites

# The fast loader, because the description has 300 KB.
LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


def description(bellhop):
    """Returns the schemas of the events by name, and the document that they refer to."""
    document = bellhop.request("GET", "/asyncapi.json").json
    messages = document["components"]["messages"]
    return {message["name"]: message["payload"] for message in messages.values() if "name" in message}, document


def check(event, schema, document):
    whole = {"$schema": "https://json-schema.org/draft/2020-12/schema", "components": document["components"], "allOf": [schema]}
    jsonschema.Draft202012Validator(whole).validate(json.loads(event.data))


@cites("S-VER-1")
@pytest.mark.parametrize("path", ["/openapi.yaml", "/asyncapi.json"])
def test_descriptions_are_served(bellhop, path):
    answer = bellhop.request("GET", path)
    assert answer.status == 200
    document = yaml.load(answer.body, LOADER) if path.endswith("yaml") else answer.json
    assert "openapi" in document or "asyncapi" in document


@cites("S-VER-1")
def test_description_has_the_stream(bellhop):
    document = yaml.load(bellhop.request("GET", "/openapi.yaml").body, LOADER)
    assert "get" in document["paths"]["/v1/stream"]


@cites("S-VER-2", "S-VER-4")
def test_events_of_the_service_are_listed_and_valid(bellhop, user):
    shop = bellhop.shop()
    user = bellhop.user(jti=bellhop.name("token"))
    stream = user.open(last="unreadable", topics=[f"queue:{shop}"])
    draft = {"userId": user.id, "category": "system", "priority": "NORMAL", "title": "A", "message": "B"}
    assert bellhop.backend.request("POST", "/v1/notifications", draft).status == 201
    user.drain(stream)
    bellhop.revoke(tokenId=user.claims["jti"])
    stream.rest()
    schemas, document = description(bellhop)
    events = [event for event in stream.events if not event.name.startswith("kit:")]
    assert {"stream:ready", "stream:resync", "notification:created", "badges:update", "queue:update", "stream:closing"} <= {
        event.name for event in events}
    for event in events:
        assert event.name in schemas, event.name
        check(event, schemas[event.name], document)
