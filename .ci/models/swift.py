"""Generates the Swift side: models, calls, events and problem codes."""
import re

from .texts import NOTE, Writer, camel, paragraphs, pascal, quoted, singular

# Words that Swift would read as other members.
WORDS = {"none": "nothing", "*": "any"}
KEYWORDS = {"public", "default", "in", "case", "is", "as", "self", "true", "false", "internal", "private", "operator"}


def escaped(name):
    return f"`{name}`" if name in KEYWORDS else name


class Swift(Writer):
    def doc(self, indent, text, more=()):
        for line in paragraphs(text, 116 - indent):
            self.add(indent, f"/// {line}")
        for line in more:
            self.add(indent, f"/// {line}")

    def model(self, indent, model):
        self.doc(indent, model.doc)
        {"object": self.object, "words": self.words, "choice": self.choice}[model.kind](indent, model)

    def words(self, indent, model):
        self.add(indent, f"public struct {model.name}: Word {{", "    public let rawValue: String", "",
                 "    public init(rawValue: String) { self.rawValue = rawValue }", "")
        for value in model.values:
            name = escaped(WORDS.get(value) or camel(value))
            self.add(indent, f"    public static let {name} = {model.name}(rawValue: {quoted(value)})")
        self.add(indent, "}")

    def object(self, indent, model):
        names = [field.name for field in model.fields]
        page = ", PageOfItems" if {"items", "next"} <= set(names) else ""
        self.add(indent, f"public struct {model.name}: Codable, Sendable, Hashable{page} {{")
        for field in model.fields:
            self.doc(indent + 4, field.doc)
            # The client's own machines apply events to the models that they hold.
            keyword = "var" if model.is_body else "internal(set) var"
            self.add(indent + 4, f"public {keyword} {escaped(field.name)}: {field.in_swift}")
        parameters = ", ".join(
            f"{field.name}: {field.in_swift}" + (" = nil" if field.in_swift.endswith("?") else "")
            for field in model.fields)
        self.add(indent, "", f"    public init({parameters}) {{")
        for field in model.fields:
            self.add(indent, f"        self.{field.name} = {escaped(field.name)}")
        self.add(indent, "    }")
        if model.is_body and any(field.required and field.type.nullable for field in model.fields):
            self.encoding(indent + 4, model)
        for nested in model.nested:
            self.add(0, "")
            self.model(indent + 4, nested)
        self.add(indent, "}")

    def encoding(self, indent, model):
        self.add(0, "")
        self.add(indent, "/// Null is said, since leaving it out would be another wish.",
                 "public func encode(to encoder: any Encoder) throws {",
                 "    var container = encoder.container(keyedBy: CodingKeys.self)")
        for field in model.fields:
            always = field.required or not field.in_swift.endswith("?")
            verb = "encode" if always else "encodeIfPresent"
            self.add(indent, f"    try container.{verb}({field.name}, forKey: .{field.name})")
        self.add(indent, "}")

    def choice(self, indent, model):
        self.add(indent, f"public enum {model.name}: Codable, Sendable, Hashable {{")
        for case, type, _, _ in model.variants:
            self.add(indent, f"    case {case}({type})")
        if not model.is_body:
            self.add(indent, "    /// What only a newer service knows.", "    case other(JSON)")
        self.add(indent, "", "    public init(from decoder: any Decoder) throws {",
                 "        let json = try JSON(from: decoder)")
        branch = "if"
        for case, type, _, required in sorted(model.variants, key=lambda variant: -len(variant[3])):
            wanted = ", ".join(quoted(name) for name in required)
            self.add(indent, f"        {branch} json.has({wanted}) {{",
                     f"            self = .{case}(try {type}(from: decoder))")
            branch = "} else if"
        self.add(indent, "        } else {")
        if model.is_body:
            self.add(indent, "            throw DecodingError.dataCorrupted(",
                     '                .init(codingPath: decoder.codingPath, debugDescription: "no variant matches"))')
        else:
            self.add(indent, "            self = .other(json)")
        self.add(indent, "        }", "    }", "", "    public func encode(to encoder: any Encoder) throws {",
                 "        switch self {")
        for case in [variant[0] for variant in model.variants] + ([] if model.is_body else ["other"]):
            self.add(indent, f"        case .{case}(let value): try value.encode(to: encoder)")
        self.add(indent, "        }", "    }")
        for nested in model.nested:
            self.add(0, "")
            self.model(indent + 4, nested)
        self.add(indent, "}")

    # Calls

    def parameter_name(self, parameter):
        return "ifMatch" if parameter["name"] == "If-Match" else camel(parameter["name"])

    def signature(self, operation, left_out=(), with_etag=False):
        parts = []
        in_order = [item for item in operation.parameters if item[0]["in"] == "path" or item[0]["name"] == "If-Match"]
        rest = [item for item in operation.parameters if item not in in_order]
        for parameter, type in in_order:
            parts.append(f"{self.parameter_name(parameter)}: {qualified(type.swift)}")
        if operation.body:
            default = " = nil" if operation.body.nullable else ""
            parts.append(f"_ body: {qualified(operation.body.in_swift)}{default}")
        for parameter, type in rest:
            name = self.parameter_name(parameter)
            if parameter["name"] in left_out:
                continue
            if parameter["name"] == "If-None-Match":
                if with_etag:
                    parts.append(f"{name}: String")
            elif parameter.get("required"):
                parts.append(f"{name}: {qualified(type.swift)}")
            else:
                parts.append(f"{name}: {qualified(type.swift)}? = nil")
        return ", ".join(parts)

    def call(self, operation, with_etag=False):
        self.add(0, "")
        description = operation.description
        self.doc(4, operation.summary, [""] + [f"/// {line}"[4:] for line in paragraphs(description, 112)]
                 if description else [])
        self.add(4, "///", f"/// `{operation.method} {operation.path}`")
        if with_etag:
            self.add(4, "///", "/// - Returns: nil where the state is still the one that `ifNoneMatch` names (304).")
        elif operation.may_be_empty and operation.answer:
            self.add(4, "///", "/// - Returns: no value where there is nothing to show (204).")
        self.parameter_docs(operation, with_etag)
        answer = f"Bellhop.Answer<{qualified(operation.answer.swift) if operation.answer else 'Void'}"
        answer += "?>" if operation.answer and operation.may_be_empty else ">"
        runner = "answer"
        if with_etag:
            answer, runner = answer + "?", "answerUnlessCurrent"
        elif operation.answer and operation.may_be_empty:
            runner = "answerIfAny"
        if operation.method != "GET":
            self.add(4, "@discardableResult")
        signature = self.signature(operation, with_etag=with_etag)
        self.add(4, f"public func {operation.id}({signature}) async throws -> {answer} {{")
        values = [parameter["name"] for parameter, _ in operation.parameters if parameter["in"] == "path"]
        places = f", [{', '.join(f'{quoted(name)}: {name}' for name in values)}]" if values else ""
        steps = self.steps(operation, with_etag)
        keyword = "var" if steps else "let"
        self.add(8, f"{keyword} call = try Bellhop.Call({quoted(operation.method)}, {quoted(operation.path)}{places})")
        self.add(8, *steps)
        self.add(8, f"return try await {runner}(call)")
        self.add(4, "}")

    def steps(self, operation, with_etag):
        found = ["try call.json(body)"] if operation.body else []
        for parameter, _ in operation.parameters:
            name = self.parameter_name(parameter)
            if parameter["in"] == "query":
                found.append(f"call.query({quoted(parameter['name'])}, {name})")
            elif parameter["in"] == "header" and (with_etag or parameter["name"] != "If-None-Match"):
                found.append(f"try call.header({quoted(parameter['name'])}, {name})")
        return found

    def parameter_docs(self, operation, with_etag):
        own = {"Idempotency-Key": "the same call with the same key is done once; the answer is kept for 24 hours.",
               "If-Match": "the `etag` of the state that is meant to change; another one by now is a problem 412."}
        found = []
        for parameter, _ in operation.parameters:
            text = own.get(parameter["name"]) or parameter.get("description")
            if text and (with_etag or parameter["name"] != "If-None-Match"):
                found.append((self.parameter_name(parameter), text))
        if found:
            self.add(4, "///", "/// - Parameters:")
        for name, text in found:
            lines = paragraphs(f"- {name}: {text[:1].lower() + text[1:]}", 106)
            self.add(4, f"///   {lines[0]}", *[f"///     {line}" for line in lines[1:]])

    def pages(self, operation):
        name = operation.id.removeprefix("list").removeprefix("get")
        name = singular(name[:1].lower() + name[1:]) + "Pages"
        self.add(0, "")
        self.doc(4, f"{operation.summary}, page by page; `limit` is the number of items on a page.")
        signature = self.signature(operation, left_out=("cursor",))
        type = qualified(operation.answer.swift)
        self.add(4, f"public func {name}({signature}) -> Bellhop.Pages<{type}> {{")
        passed = ["cursor: cursor" if parameter["name"] == "cursor" else f"{self.parameter_name(parameter)}: "
                  f"{self.parameter_name(parameter)}" for parameter, _ in operation.parameters
                  if parameter["name"] != "If-None-Match"]
        self.add(8, f"Bellhop.Pages {{ cursor in try await {operation.id}({', '.join(passed)}) }}")
        self.add(4, "}")


def qualified(type):
    """Returns the name of the type outside `Bellhop`."""
    plain = {"String", "Int", "Int64", "Bool", "Double", "Date", "JSON", "Void"}
    return re.sub(
        r"[A-Za-z][A-Za-z0-9.]*", lambda found: found[0] if found[0] in plain else f"Bellhop.{found[0]}", type)


def swift_files(contract, operations, events):
    """Returns the files by name."""
    head = [f"// {NOTE}", ""]
    files = {}

    def file(name, opening, body):
        writer = Swift()
        writer.add(0, *head, *opening)
        body(writer)
        writer.add(0, "}")
        files[name] = writer.text()

    def models(members):
        def body(writer):
            for number, model in enumerate(members):
                if number:
                    writer.add(0, "")
                writer.model(4, model)
        return body

    tags = [tag["name"] for tag in contract.document["tags"]]
    for tag in tags:
        members = [model for name, model in contract.models.items() if contract.tag_of[name] == tag]
        if members:
            file(f"Bellhop+{pascal(tag) if tag != 'dj' else 'DJ'}.swift",
                 (["import Foundation", ""] if any(map(is_dated, members)) else []) + ["extension Bellhop {"], models(members))
        mine = [operation for operation in operations if operation.tag == tag and not operation.is_stream]
        if mine:
            dates = any(type.swift == "Date" for operation in mine for _, type in operation.parameters)
            file(f"BellhopClient+{pascal(tag) if tag != 'dj' else 'DJ'}.swift",
                 (["import Foundation", ""] if dates else []) + ["extension BellhopClient {"],
                 lambda writer, mine=mine: calls(writer, mine))
    file("StreamEvent.swift", ["extension Bellhop {"], lambda writer: event_enum(writer, events))
    file("Problem+Code.swift", ["extension Bellhop.Problem {"],
         lambda writer: codes(writer, contract.components["schemas"]["Problem"]["x-codes"]))
    return files


def is_dated(model):
    return any(re.search(r"\bDate\b", field.type.swift) for field in model.fields) or any(map(is_dated, model.nested))


def calls(writer, operations):
    begin = len(writer.lines)
    for operation in operations:
        writer.call(operation)
        if operation.is_conditional:
            writer.call(operation, with_etag=True)
        if operation.is_paged:
            writer.pages(operation)
    del writer.lines[begin]


def event_enum(writer, events):
    writer.doc(4, "An event of a stream, read. Where a newer service sends one that is not known here, or of another "
                  "form, it stays as it came.")
    writer.add(4, "public enum StreamEvent: Sendable, Hashable {")
    for name, type in events:
        writer.add(8, f"/// `{name}`", f"case {camel(name)}({type.swift})")
    writer.add(8, "case other(ServerSentEvent)", "", "public init(_ event: ServerSentEvent) {")
    writer.add(12, "self = (try? StreamEvent.read(event)) ?? .other(event)")
    writer.add(8, "}", "", "private static func read(_ event: ServerSentEvent) throws -> StreamEvent {")
    writer.add(12, "switch event.name {")
    for name, _ in events:
        writer.add(12, f"case {quoted(name)}: .{camel(name)}(try event.model())")
    writer.add(12, "default: .other(event)", "}")
    writer.add(8, "}")
    writer.add(4, "}")


def codes(writer, codes):
    writer.doc(4, "What a problem is about, as a word that never changes its meaning.")
    writer.add(4, "public struct Code: Bellhop.Word {", "    public let rawValue: String", "",
               "    public init(rawValue: String) { self.rawValue = rawValue }")
    for code, about in sorted(codes.items()):
        writer.add(0, "")
        writer.doc(8, f"{about['status']}: {about['meaning']}")
        writer.add(8, f"public static let {escaped(camel(code))} = Code(rawValue: {quoted(code)})")
    writer.add(4, "}")
