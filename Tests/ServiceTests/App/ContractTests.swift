import BellhopClient
import Foundation
import MicroHTTP
import Push
import TestSupport
import Testing
import Values
import Yams

@testable import Service

/// `openapi.yaml` and the router agree: every served route is described, and every described operation is served.
@Suite(.timed) struct ContractTests {
    private static func document() throws -> Node {
        let root = repository
        let text = try String(contentsOf: root.appendingPathComponent("openapi.yaml"), encoding: .utf8)
        return try #require(try Yams.compose(yaml: text))
    }

    /// Returns the operations by method and path, such as `GET /v1/badges`.
    private static func operations(_ document: Node) -> [String: Node] {
        var found: [String: Node] = [:]
        for (path, item) in document["paths"]?.mapping ?? [:] {
            for (verb, operation) in item.mapping ?? [:] where verb.string != "parameters" {
                found["\((verb.string ?? "").uppercased()) \(path.string ?? "")"] = operation
            }
        }
        return found
    }

    /// Returns whether an operation describes a status. The status is a quoted key, so the lookup compares its text,
    /// not a number.
    private static func answers(_ operation: Node, _ status: String) -> Bool {
        operation["responses"]?.mapping?.keys.contains { $0.string == status } == true
    }

    @Test func everyRoute_isDescribed_andEveryOperationIsARoute() throws {
        let described = Set(Self.operations(try Self.document()).keys)
        let served = Set(Operations.routes.map { "\($0.method) \($0.pattern)" })
        #expect(served.subtracting(described).isEmpty)
        #expect(described.subtracting(served).isEmpty)
    }

    @Test func security_isWhatTheRouteAsksFor() throws {
        let operations = Self.operations(try Self.document())
        for route in Operations.routes {
            let operation = try #require(operations["\(route.method) \(route.pattern)"])
            let isOpen = operation["security"]?.sequence?.isEmpty == true
            #expect(isOpen == (route.access == "anyone"), "\(route.pattern)")
            let isRoleBound = ["service", "staffOrService", "adminOrService"].contains(route.access)
            #expect(!isRoleBound || Self.answers(operation, "403"), "\(route.method) \(route.pattern)")
        }
    }

    /// The dispatcher refuses undeclared query items, so each described item must be declared.
    @Test func queryItems_areThoseThatTheEndpointDeclares() throws {
        let document = try Self.document()
        let operations = Self.operations(document)
        for endpoint in Catalog.features().flatMap(\.endpoints) {
            let key = "\(endpoint.method.rawValue) \(endpoint.pattern)"
            let parameters = try #require(operations[key])["parameters"]?.sequence.map(Array.init) ?? []
            let described = parameters.map { Self.resolved($0, in: document) }
                .filter { $0["in"]?.string == "query" }.compactMap { $0["name"]?.string }
            switch endpoint.query {
            case .only(let declared): #expect(Set(described) == Set(declared), "\(key)")
            case .any: #expect(described.isEmpty, "\(key)")
            }
        }
    }

    private static func resolved(_ node: Node, in document: Node) -> Node {
        node["$ref"]?.string.flatMap { find($0, in: document) } ?? node
    }

    /// Resolves a JSON pointer such as `#/paths/~1v1~1stream/get`.
    private static func find(_ reference: String, in document: Node) -> Node? {
        reference.dropFirst(2).split(separator: "/").reduce(document as Node?) { node, step in
            node?[String(step).replacingOccurrences(of: "~1", with: "/").replacingOccurrences(of: "~0", with: "~")]
        }
    }

    @Test func everyEvent_isDescribed_andEveryDescribedOneBelongsToAFeature() throws {
        let stream = try #require(Self.operations(try Self.document())["GET /v1/stream"])
        let described = try #require(stream["x-events"]?.mapping).keys.compactMap(\.string)
        #expect(Set(described) == Set(Catalog.features().flatMap(\.events)))
    }

    /// The stream's `x-event-schema` describes each event of `x-events`, for tools that read schemas.
    @Test func eventSchema_namesEveryEvent() throws {
        let stream = try #require(Self.operations(try Self.document())["GET /v1/stream"])
        let described = try #require(stream["x-events"]?.mapping).keys.compactMap(\.string)
        let answer = try #require(stream["responses"]?.mapping?.first { $0.key.string == "200" }?.value)
        let content = try #require(answer["content"]?["text/event-stream"])
        let all = try #require(content["x-event-schema"]?["oneOf"]?.sequence).map { $0["properties"] }
        // One alternative describes apps' events: any name without a prefix of the service's events, and any data.
        let patterns = all.compactMap { $0?["event"]?["not"]?["pattern"]?.string }
        let taken = try Regex(try #require(patterns.first))
        for prefix in Catalog.eventPrefixes { #expect("\(prefix):x".firstMatch(of: taken) != nil, "\(prefix)") }
        let items = all.filter { $0?["event"]?["not"] == nil }
        #expect(items.count == all.count - 1)
        #expect(items.compactMap { $0?["event"]?["const"]?.string }.sorted() == described.sorted())
        #expect(items.allSatisfy { $0?["data"]?["contentSchema"]?["$ref"]?.string != nil })
    }

    /// Each kind of topic can be subscribed to; the table file may declare others.
    @Test func topics_areOfEveryKind() throws {
        let schemas = try #require(try Self.document()["components"]?["schemas"])
        let kinds = Catalog.features().flatMap(\.topics).map(\.prefix).sorted()
        for name in ["Topics", "OptionalTopics"] {
            let pattern = try #require(schemas[name]?["items"]?["pattern"]?.string)
            let topic = try Regex(pattern)
            for kind in kinds + ["order"] { #expect("\(kind):s1".wholeMatch(of: topic) != nil, "\(kind) in \(name)") }
            for none in ["order", "or,der:s1", ":s1", "order:"] {
                #expect(none.wholeMatch(of: topic) == nil, "\(none)")
            }
        }
    }

    @Test func platforms_areTheProviders() throws {
        let schemas = try #require(try Self.document()["components"]?["schemas"])
        let platforms = try #require(schemas["PushPlatform"]?["enum"]?.sequence).compactMap(\.string)
        #expect(platforms == PushProviders.all.map { $0.name })
        let members = Set(try #require(schemas["PushDeviceDraft"]?["properties"]?.mapping).keys.compactMap(\.string))
        #expect(members == Set(PushProviders.all.map { $0.addressMember }).union(["platform", "app", "environment"]))
    }

    /// The error codes in the service's source equal those in the document, with the same statuses.
    @Test func everyErrorCode_isListed_andEveryListedOneIsAnswered() throws {
        let listed = try #require(try Self.document()["components"]?["schemas"]?["Problem"]?["x-codes"]?.mapping)
        var statuses: [String: Int] = [:]
        for (code, entry) in listed {
            statuses[code.string ?? ""] = entry["status"]?.int
            #expect(entry["meaning"]?.string?.isEmpty == false, "\(code)")
        }
        let code = try Self.sources()
        var answered: Set<String> = []
        let kinds: [String: Failure.Kind] = [
            "malformed": .malformed, "unauthenticated": .unauthenticated, "forbidden": .forbidden,
            "notFound": .notFound, "conflict": .conflict, "stale": .stale, "tooLarge": .tooLarge,
            "unsupportedMediaType": .unsupportedMediaType, "invalid": .invalid,
            "preconditionRequired": .preconditionRequired, "rateLimited": .rateLimited, "unavailable": .unavailable,
            "insufficientStorage": .insufficientStorage,
        ]
        for match in code.matches(of: /\.(?<kind>[a-zA-Z]+),\s*"(?<code>[a-z_]+(?:\.[a-z_]+)*)"/) {
            guard let kind = kinds[String(match.kind)], !Self.unanswered.contains(String(match.code)) else { continue }
            answered.insert(String(match.code))
            #expect(statuses[String(match.code)] == kind.status.code, "\(match.code)")
        }
        answered.formUnion(Claims.Refusal.allCases.map(\.rawValue))
        let named = /[cC]ode(?::(?:\s*String\s*=)?|\s*=)\s*"(?<code>[a-z_]+(?:\.[a-z_]+)*)"/
        for match in code.matches(of: named) { answered.insert(String(match.code)) }
        for match in code.matches(of: /problem\(\s*\d+,\s*"[^"]+",\s*"(?<code>[a-z_.]+)"/) {
            answered.insert(String(match.code))
        }
        #expect(answered.count > 60, "the search must find error codes")
        #expect(answered.subtracting(statuses.keys) == [], "codes in the source that Problem/x-codes does not list")
        #expect(Set(statuses.keys).subtracting(answered) == [], "listed codes that no answer uses")
    }

    /// Codes that are not in any response: they prevent a start, reject a single item, or appear in the log.
    private static let unanswered: Set = [
        "tables.invalid", "tables.unreadable", "webhook.bad_secret", "memberships.full", "event.unreadable",
    ]

    private static func sources() throws -> String {
        let root = repository
        return try ["Values", "Domain", "Rows", "Service"].map { module in
            let folder = root.appendingPathComponent("Sources/\(module)")
            let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)
            return try (files?.compactMap { $0 as? URL } ?? []).filter { $0.pathExtension == "swift" }
                .map { try String(contentsOf: $0, encoding: .utf8) }.joined(separator: "\n")
        }.joined(separator: "\n")
    }

    /// Each operation has examples of requests and responses; `conformance.py` checks them against their schemas.
    @Test func everyOperation_hasExamples() throws {
        let document = try Self.document()
        func expectExample(_ holder: Node?, _ what: String) {
            guard let content = holder.map({ Self.resolved($0, in: document) })?["content"]?["application/json"] else {
                return
            }
            #expect(content["example"] != nil || content["examples"] != nil, "\(what) has no example")
        }
        for (key, operation) in Self.operations(document) {
            expectExample(operation["requestBody"], "the request of \(key)")
            for (status, response) in operation["responses"]?.mapping ?? [:] {
                guard let status = status.string, status.hasPrefix("2") else { continue }
                expectExample(response, "\(status) of \(key)")
            }
        }
    }

    @Test func config_hasTheMembersThatAreDescribed() async throws {
        let schema = try #require(try Self.document()["components"]?["schemas"]?["Config"]?["properties"]?.mapping)
        let service = try TestService.start()
        let config = try #require(try await service.call("GET", "/v1/config", as: .user("u1")).json.object)
        #expect(Set(config.keys) == Set(schema.keys.compactMap(\.string)))
        for (name, member) in config {
            let described = schema[Node(name)]?["properties"]?.mapping?.keys.compactMap(\.string)
            #expect(member.object.map { Set($0.keys) } == described.map(Set.init), "\(name)")
        }
    }

    @Test func everyReference_resolves() throws {
        let document = try Self.document()
        func check(_ node: Node) {
            switch node {
            case .mapping(let mapping):
                if let target = mapping["$ref"]?.string {
                    #expect(target.hasPrefix("#/"), "\(target)")
                    #expect(Self.find(target, in: document) != nil, "\(target)")
                }
                for (_, value) in mapping { check(value) }
            case .sequence(let sequence): for value in sequence { check(value) }
            case .scalar, .alias: return
            }
        }
        check(document)
    }

    @Test func everyOperation_hasAName_andProblemsForWhatCanFail() throws {
        var names: Set<String> = []
        for (key, operation) in Self.operations(try Self.document()) {
            let name = try #require(operation["operationId"]?.string, "\(key)")
            #expect(names.insert(name).inserted, "\(name) is there twice")
            #expect(operation["summary"]?.string != nil, "\(key)")
            if operation["security"]?.sequence?.isEmpty != true {
                #expect(Self.answers(operation, "401"), "\(key)")
                #expect(Self.answers(operation, "429"), "\(key)")
                // A backend may lack the capability.
                #expect(operation["x-capability"] != nil && Self.answers(operation, "403"), "\(key)")
            }
            if operation["requestBody"] != nil {
                for status in ["400", "413", "415", "422"] {
                    #expect(Self.answers(operation, status), "\(key) \(status)")
                }
            }
        }
    }

    @Test func description_isServedUnchanged() async throws {
        let service = try TestService.start()
        let answer = try await service.call("GET", "/openapi.yaml", as: .user("u1"))
        #expect(answer.status == 200)
        #expect(try Yams.compose(yaml: answer.text) == Self.document())
        let other = try await service.call("GET", "/openapi.json", as: .user("u1"))
        #expect(other[header: "Content-Type"] == "application/json")
        // JSON is valid YAML, so both documents are parsed and compared by their names.
        let document = try Self.document()
        let inJSON = try #require(try Yams.compose(yaml: other.text))
        func names(_ node: Node?) -> [String] { node?.mapping.map { $0.keys.compactMap(\.string) } ?? [] }
        #expect(names(inJSON["paths"]) == names(document["paths"]))
        for name in names(document["components"]?["schemas"]) {
            let (there, here) = (inJSON["components"]?["schemas"]?[name], document["components"]?["schemas"]?[name])
            #expect(names(there) == names(here))
        }
    }

    @Test func eventDescription_isServedInJSON_withEveryEvent() async throws {
        let service = try TestService.start()
        let answer = try await service.call("GET", "/asyncapi.json", as: .user("u1"))
        #expect(answer[header: "Content-Type"] == "application/json")
        let messages = try Yams.compose(yaml: answer.text)?["components"]?["messages"]?.mapping ?? [:]
        let served = messages.compactMap { $0.value["name"]?.string }
        let events = try Self.document()["paths"]?["/v1/stream"]?["get"]?["x-events"]?.mapping ?? [:]
        #expect(served == events.compactMap { $0.key.string } && !served.isEmpty)
    }
}
