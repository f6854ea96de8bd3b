import BellhopClient
import Foundation
import MicroHTTP
import Testing
import Yams

@testable import Service

/// `openapi.yaml` against the router, both ways: nothing is served that is not described, nothing described that is not
/// served.
@Suite struct ContractTests {
    private static func document() throws -> Node {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let text = try String(contentsOf: root.appendingPathComponent("openapi.yaml"), encoding: .utf8)
        return try #require(try Yams.compose(yaml: text))
    }

    /// `GET /v1/badges` → its operation.
    private static func operations(_ document: Node) -> [String: Node] {
        var found: [String: Node] = [:]
        for (path, item) in document["paths"]?.mapping ?? [:] {
            for (verb, operation) in item.mapping ?? [:] where verb.string != "parameters" {
                found["\((verb.string ?? "").uppercased()) \(path.string ?? "")"] = operation
            }
        }
        return found
    }

    /// A status is a quoted key: it is found by its text, and not as the number it looks like.
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
            let isRoleBound = route.access == "service" || route.access == "staffOrService"
            #expect(!isRoleBound || Self.answers(operation, "403"), "\(route.method) \(route.pattern)")
        }
    }

    /// The dispatcher refuses what an endpoint does not declare: an item that is described must be declared.
    @Test func queryItems_areThoseThatTheEndpointDeclares() throws {
        let document = try Self.document()
        let operations = Self.operations(document)
        for endpoint in Catalog.features().flatMap(\.endpoints) {
            let key = "\(endpoint.method.rawValue) \(endpoint.pattern)"
            let parameters = try #require(operations[key])["parameters"]?.sequence.map(Array.init) ?? []
            let described = parameters.map { Self.resolved($0, in: document) }
                .filter { $0["in"]?.string == "query" }.compactMap { $0["name"]?.string }
            switch endpoint.query {
            case .only(let declared): #expect(Set(described) == declared, "\(key)")
            case .any: #expect(described.isEmpty, "\(key)")
            }
        }
    }

    private static func resolved(_ node: Node, in document: Node) -> Node {
        guard let target = node["$ref"]?.string else { return node }
        return target.dropFirst(2).split(separator: "/").reduce(document as Node?) { $0?[String($1)] } ?? node
    }

    @Test func everyEvent_isDescribed_andEveryDescribedOneBelongsToAFeature() throws {
        let stream = try #require(Self.operations(try Self.document())["GET /v1/stream"])
        let described = try #require(stream["x-events"]?.mapping).keys.compactMap(\.string)
        #expect(Set(described) == Set(Catalog.features().flatMap(\.events)))
    }

    @Test func console_listensToEveryEvent() async throws {
        let service = try TestService.start()
        let page = try await service.client(as: .user("u1")).get("/").text
        for event in Catalog.features().flatMap(\.events) { #expect(page.contains("\"\(event)\""), "\(event)") }
    }

    @Test func config_hasTheMembersThatAreDescribed() async throws {
        let schema = try #require(try Self.document()["components"]?["schemas"]?["Config"]?["properties"]?.mapping)
        let service = try TestService.start()
        let config = try #require(try await service.client(as: .user("u1")).get("/v1/config").json.object)
        #expect(Set(config.keys) == Set(schema.keys.compactMap(\.string)))
        for (name, member) in config {
            let described = try #require(schema[Node(name)]?["properties"]?.mapping, "\(name)")
            #expect(Set((member.object ?? [:]).keys) == Set(described.keys.compactMap(\.string)), "\(name)")
        }
    }

    @Test func everyReference_leadsSomewhere() throws {
        let document = try Self.document()
        func check(_ node: Node) {
            switch node {
            case .mapping(let mapping):
                if let target = mapping["$ref"]?.string {
                    let found = target.dropFirst(2).split(separator: "/").reduce(document as Node?) { $0?[String($1)] }
                    #expect(target.hasPrefix("#/"), "\(target)")
                    #expect(found != nil, "\(target)")
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
            }
            if operation["requestBody"] != nil {
                for status in ["400", "413", "415", "422"] {
                    #expect(Self.answers(operation, status), "\(key) \(status)")
                }
            }
        }
    }

    @Test func description_isServed_asItIs() async throws {
        let service = try TestService.start()
        let answer = try await service.client(as: .user("u1")).get("/openapi.yaml")
        #expect(answer.status == 200)
        #expect(try Yams.compose(yaml: answer.text) == Self.document())
    }
}
