import BellhopClient
import Foundation
import TestSupport
import Testing
import Yams

/// The operations of `openapi.yaml` with the examples of their requests.
struct ContractDocument: Sendable {
    /// Read once, because the document has thousands of lines.
    static let shared = Result { try ContractDocument() }

    /// In the order of the document: `GET /v1/badges`.
    let operations: [String]
    /// The bodies by operation.
    private let examples: [String: JSON]

    private init() throws {
        let text = try String(contentsOf: repository.appendingPathComponent("openapi.yaml"), encoding: .utf8)
        let paths = try #require(try Yams.compose(yaml: text)?["paths"]?.mapping)
        var (operations, examples) = ([String](), [String: JSON]())
        for (path, item) in paths {
            for (verb, operation) in item.mapping ?? [:] where operation["operationId"] != nil {
                let name = "\((verb.string ?? "").uppercased()) \(path.string ?? "")"
                operations.append(name)
                let content = operation["requestBody"]?["content"]?["application/json"]
                let example = content?["example"] ?? content?["examples"]?.mapping?.first?.value["value"]
                examples[name] = example.map(Self.json)
            }
        }
        (self.operations, self.examples) = (operations, examples)
    }

    /// Returns the example of an operation's body with other members; nil if it has no body.
    func body(_ operation: String, with members: [String: JSON] = [:]) -> JSON? {
        guard let example = examples[operation] else { return nil }
        return example.object.map { .object($0.merging(members) { $1 }) } ?? example
    }

    private static func json(_ node: Node) -> JSON {
        switch node {
        case .mapping(let members):
            let pairs = members.map { ($0.key.string ?? "", json($0.value)) }
            return .object(Dictionary(pairs, uniquingKeysWith: { first, _ in first }))
        case .sequence(let elements): return .array(elements.map(json))
        case .scalar, .alias:
            switch Resolver.default.resolveTag(of: node) {
            case .null: return .null
            case .bool: return .bool(node.bool ?? false)
            case .int: return .integer(Int64(node.int ?? 0))
            case .float: return .number(node.float ?? 0)
            default: return .string(node.string ?? "")
            }
        }
    }
}
