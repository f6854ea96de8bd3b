"""Reads the contract as models and operations, with the types of both languages."""
import yaml

from .texts import camel, capital, pascal, quoted, singular

# Names of nested types that may not have the name of their member.
NESTED = {"Type": "Kind", "Data": "Details", "Protocol": "Rules"}
# Written by hand, because it is thrown as an error.
BY_HAND = {"Problem"}


class Type:
    """A type in both languages; `nullable` says that null is one of its values."""

    def __init__(self, swift, typescript, nullable=False):
        self.swift, self.typescript, self.nullable = swift, typescript, nullable

    def or_null(self):
        return Type(self.swift, self.typescript, True)

    @property
    def in_swift(self):
        return self.swift + ("?" if self.nullable else "")

    @property
    def in_typescript(self):
        return self.typescript + (" | null" if self.nullable and self.typescript != "unknown" else "")


JSON = Type("JSON", "unknown")
OBJECT = Type("JSON", "{ [name: string]: unknown }")


class Field:
    def __init__(self, name, type, required, doc):
        self.name, self.type, self.required, self.doc = name, type, required, doc

    @property
    def in_swift(self):
        return self.type.swift + ("" if self.required and not self.type.nullable else "?")


class Model:
    """An object, a set of words, or one of several objects, with the types that are nested in it."""

    def __init__(self, kind, name, path, doc):
        self.kind, self.name, self.path, self.doc = kind, name, path, doc
        self.fields, self.values, self.variants, self.nested = [], [], [], []
        self.is_body = False

    def becomes_body(self):
        """Whether an app creates the value and may change it afterwards."""
        self.is_body = True
        for nested in self.nested:
            nested.becomes_body()

    @property
    def count(self):
        return 1 + sum(nested.count for nested in self.nested)


class Contract:
    def __init__(self, text, event_tags):
        self.event_tags = event_tags
        self.document = yaml.safe_load(text)
        self.components = self.document["components"]
        self.models = {}
        self.tag_of = {}
        self.tag = None

    # Types

    def component(self, reference):
        kind, name = reference.split("/")[-2:]
        return name, self.components[kind][name]

    def own(self, kind, name, doc, owner):
        """Returns a new model: a top-level one without an owner, else one inside its owner."""
        if owner is None:
            model = Model(kind, name, name, doc)
            if name in self.models:
                raise SystemExit(f"client-models: two models would be called {name}")
            self.models[name] = model
            self.tag_of[name] = self.tag
            return model
        name = NESTED.get(name, name)
        model = Model(kind, name, f"{owner.path}.{name}", doc)
        if any(other.name == name for other in owner.nested):
            raise SystemExit(f"client-models: two types in {owner.path} would be called {name}")
        owner.nested.append(model)
        return model

    def type(self, schema, name, owner=None):
        """Returns the type of a schema. An unnamed schema that needs a name is called `name`."""
        if "$ref" in schema:
            called, target = self.component(schema["$ref"])
            if not self.is_named(target):
                return self.type(target, name, owner)
            if called not in self.models and called not in BY_HAND:
                self.define(called, target)
            return Type(f"{called}", called)
        if "oneOf" in schema:
            rest = [option for option in schema["oneOf"] if option.get("type") != "null"]
            if len(rest) == 1:
                found = self.type(rest[0], name, owner)
                return found.or_null() if len(rest) < len(schema["oneOf"]) else found
            if {option.get("type") for option in rest} == {"array", "object"} and not any(map(self.is_named, rest)):
                return JSON
            if len(rest) == 2 and rest[1].get("items") == rest[0]:
                # One value or several: Swift always sends a list.
                several = self.type(rest[1], name, owner)
                return Type(several.in_swift, f"{self.type(rest[0], name, owner).in_typescript} | {several.in_typescript}")
            return self.choice(schema, name, owner)
        types = schema.get("type", [])
        types = [types] if isinstance(types, str) else list(types)
        values = schema.get("enum", [])
        nullable = "null" in types or None in values
        types = [type for type in types if type != "null"]
        found = self.plain(schema, types, [value for value in values if value is not None], name, owner)
        return found.or_null() if nullable else found

    def is_named(self, schema):
        return "properties" in schema or "allOf" in schema or "enum" in schema

    def plain(self, schema, types, values, name, owner):
        if values:
            return self.words(values, schema, name, owner)
        if "const" in schema:
            return Type("Bool", "true") if schema["const"] is True else Type("String", quoted(schema["const"]))
        if "allOf" in schema or "properties" in schema:
            return self.object(schema, name, owner)
        if len(types) != 1:
            return JSON
        match types[0]:
            case "array":
                element = self.type(schema["items"], singular(name), owner)
                inner = element.in_typescript
                return Type(f"[{element.in_swift}]", f"({inner})[]" if "|" in inner else f"{inner}[]")
            case "object" if isinstance(schema.get("additionalProperties"), dict):
                element = self.type(schema["additionalProperties"], name, owner)
                return Type(f"[String: {element.in_swift}]", f"{{ [name: string]: {element.in_typescript} }}")
            case "object":
                return OBJECT
            case "integer":
                return Type("Int64" if schema.get("format") == "int64" else "Int", "number")
            case "number":
                return Type("Double", "number")
            case "boolean":
                return Type("Bool", "boolean")
            case "string":
                return Type("Date" if schema.get("format") == "date-time" else "String", "string")
        raise SystemExit(f"client-models: {name} has a type that is not known here: {types}")

    def words(self, values, schema, name, owner):
        model = self.own("words", name, schema.get("description"), owner)
        model.values = values
        union = " | ".join(quoted(value) for value in values)
        return Type(model.path, f"{union} | Word" if owner else model.name)

    def object(self, schema, name, owner):
        model = self.own("object", name, schema.get("description"), owner)
        model.fields = self.fields(schema, model)
        return Type(model.path, model.path.replace(".", ""))

    def fields(self, schema, model):
        """Returns the members, including those of the composed schemas, whose nested types stay with them."""
        found = []
        for part in schema.get("allOf", []):
            if "$ref" in part:
                called, target = self.component(part["$ref"])
                if called not in self.models:
                    self.define(called, target)
                found += self.models[called].fields
            else:
                found += self.fields(part, model)
        for name, member in schema.get("properties", {}).items():
            type = self.type(member, pascal(name), model)
            found.append(Field(name, type, name in schema.get("required", []), self.doc(member)))
        return found

    def doc(self, schema):
        if "description" in schema or "$ref" not in schema:
            return schema.get("description")
        return None

    def choice(self, schema, name, owner):
        model = self.own("choice", name, schema.get("description"), owner)
        for option in schema["oneOf"]:
            if "$ref" in option:
                called, target = self.component(option["$ref"])
                self.type(option, called)
                model.variants.append((camel(called), called, called, target["required"]))
            else:
                called = "By" + "And".join(capital(member) for member in option["required"])
                type = self.type(option, called, model)
                model.variants.append((camel(called[2:]), type.swift, type.typescript, option["required"]))
        return Type(model.path, model.path.replace(".", ""))

    def define(self, name, schema):
        if "enum" in schema and None in schema["enum"]:
            raise SystemExit(f"client-models: {name} has null among its words")
        self.type(schema, name)

    # Calls

    def resolved(self, part):
        return self.component(part["$ref"])[1] if "$ref" in part else part

    def operations(self):
        for path, item in self.document["paths"].items():
            if not path.startswith("/v1/"):
                continue
            for method in ("get", "post", "put", "patch", "delete"):
                if method in item:
                    yield Operation(self, path, method, item[method], item.get("parameters", []))

    def events(self):
        """Returns the names of a stream's events, with their types."""
        described = self.document["paths"]["/v1/stream"]["get"]["x-events"]
        found = []
        for name, schema in described.items():
            # The model belongs to the tag of its event.
            self.tag = self.event_tags[name]
            found.append((name, self.type(schema, pascal(name))))
        return found


class Operation:
    def __init__(self, contract, path, method, described, common):
        self.path, self.method, self.id = path, method.upper(), described["operationId"]
        self.tag = contract.tag = described["tags"][0]
        self.summary, self.description = described["summary"], described.get("description")
        # The clients have no call for a body without an end, or of any length.
        answers = [contract.resolved(answer) for status, answer in described["responses"].items() if status[0] == "2"]
        contents = [answer["content"] for answer in answers if "content" in answer]
        self.is_stream = any("application/json" not in content for content in contents)
        self.parameters = []
        for parameter in map(contract.resolved, common + described.get("parameters", [])):
            # The client sends X-Client-Id itself.
            if parameter["name"] == "X-Client-Id":
                continue
            type = contract.type(parameter["schema"], capital(self.id) + pascal(parameter["name"]))
            self.parameters.append((parameter, type))
        self.body = self.read_body(contract, described)
        self.statuses = [status for status in described["responses"] if status.startswith("2")]
        self.answer, self.may_be_empty = self.read_answers(contract, described)
        headers = {parameter["name"] for parameter, _ in self.parameters if parameter["in"] == "header"}
        self.is_conditional = "If-None-Match" in headers
        self.is_paged = any(parameter["name"] == "cursor" for parameter, _ in self.parameters)

    def read_body(self, contract, described):
        if "requestBody" not in described:
            return None
        body = described["requestBody"]
        type = contract.type(body["content"]["application/json"]["schema"], capital(self.id) + "Body")
        if type.swift in contract.models:
            contract.models[type.swift].becomes_body()
        return Type(type.swift, type.typescript, not body.get("required", False))

    def read_answers(self, contract, described):
        """Returns the type of the response, or None, and whether the response may be empty."""
        found, is_empty = [], False
        for status, answer in described["responses"].items():
            if not status.startswith("2") or self.is_stream:
                continue
            content = contract.resolved(answer).get("content")
            if content is None:
                is_empty = True
                continue
            schema = content["application/json"]["schema"]
            if schema not in found:
                found.append(schema)
        if len(found) > 1:
            raise SystemExit(f"client-models: {self.id} has answers of different forms")
        return (self.name_answer(contract, found[0]) if found else None), is_empty

    def name_answer(self, contract, schema):
        if "$ref" in schema:
            return contract.type(schema, "")
        name = schema.get("x-model")
        if name is None:
            raise SystemExit(f"client-models: the schema of the answer of {self.id} needs an x-model, its name")
        if name == "Page":
            element = contract.type(schema["properties"]["items"]["items"], "")
            return Type(f"Page<{element.swift}>", f"Page<{element.typescript}>")
        return Type(name, name) if name in contract.models else contract.type(schema, name)
