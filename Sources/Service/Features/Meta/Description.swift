import MicroHTTP
import Realtime
import Values
import Yams

/// The service's own description, `openapi.yaml`, which is also its contract in tests.
enum Description {
    static let yaml = Response.file(Resource.bytes("openapi.yaml"), type: "application/yaml")

    /// The same for tools, and pages, that read no YAML; made when somebody first asks.
    static let json = Response.file(jsonBytes(), type: "application/json")

    private static func jsonBytes() -> [UInt8] {
        let text = String(decoding: Resource.bytes("openapi.yaml"), as: UTF8.self)
        var writer = JSONWriter(reserving: text.utf8.count)
        // A text of ours that tests read: it is YAML.
        if let root = try? Yams.compose(yaml: text, .basic) { write(root, to: &writer) }
        return writer.bytes
    }

    /// In the order of the text, which is written to be read.
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
