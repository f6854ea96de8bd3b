import BellhopClient
import Foundation
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

    @Test func everyReference_leadsSomewhere() throws {
        let document = try Self.document()
        func check(_ node: Node) {
            switch node {
            case .mapping(let mapping):
                if let target = mapping["$ref"]?.string {
                    let found = target.dropFirst(2).split(separator: "/").reduce(document as Node?) { $0?[String($1)] }
                    #expect(target.hasPrefix("#/") && found != nil, "\(target)")
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
