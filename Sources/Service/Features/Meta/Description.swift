import MicroHTTP
import Values
import Yams

/// The API description, `openapi.yaml`, which is also the contract in tests.
enum Description {
    static let yaml = PublicFile(Resource.bytes("openapi.yaml"), type: "application/yaml")

    /// The description in JSON, for tools and pages that do not read YAML; created on first use.
    static let json = PublicFile(jsonBytes("openapi.yaml"), type: "application/json")

    /// The description of the events of a stream, `asyncapi.yaml`, in JSON.
    static let events = PublicFile(jsonBytes("asyncapi.yaml"), type: "application/json")

    private static func jsonBytes(_ file: String) -> [UInt8] {
        let text = String(decoding: Resource.bytes(file), as: UTF8.self)
        var writer = JSONWriter(reserving: text.utf8.count)
        // Tests check that our text is valid YAML.
        if let root = try? Yams.compose(yaml: text, .basic) { write(root, to: &writer) }
        return writer.bytes
    }

    /// Writes the members in the order of the text, which is arranged for readers.
    private static func write(_ node: Node, to writer: inout JSONWriter) {
        switch node {
        case .mapping(let mapping):
            writer.object { writer in
                for (key, value) in mapping {
                    writer.key(key.string ?? "")
                    write(value, to: &writer)
                }
            }
        case .sequence(let sequence):
            writer.array { writer in
                for value in sequence { write(value, to: &writer) }
            }
        default: writer.value(node.scalarValue)
        }
    }
}
