import MicroHTTP
import Threads
import Values
import Yams

/// The API description, `openapi.yaml`, which is also the contract in tests, and the description of the events,
/// `asyncapi.yaml`. A service with some sets off serves them without what is off.
final class Description: Sendable {
    /// The documents, each created on first use: nobody reads them in most processes.
    private let made = Locked([Document: PublicFile]())
    private let filter: DescriptionFilter

    enum Document: Hashable {
        case yaml
        /// For tools and pages that do not read YAML.
        case json
        case events
    }

    init(without filter: DescriptionFilter) { self.filter = filter }

    func file(_ document: Document) -> PublicFile {
        made.withLock { made in
            if let known = made[document] { return known }
            let file = make(document)
            made[document] = file
            return file
        }
    }

    private func make(_ document: Document) -> PublicFile {
        switch document {
        case .yaml: PublicFile(yaml("openapi.yaml"), type: "application/yaml")
        case .json: PublicFile(json("openapi.yaml"), type: "application/json")
        case .events: PublicFile(json("asyncapi.yaml"), type: "application/json")
        }
    }

    private func yaml(_ file: String) -> [UInt8] {
        let text = Resource.bytes(file)
        guard !filter.isEmpty, let root = root(file) else { return text }
        // Without a width, long descriptions would be folded.
        return (try? Yams.serialize(node: root, width: -1, allowUnicode: true)).map { Array($0.utf8) } ?? text
    }

    private func json(_ file: String) -> [UInt8] {
        var writer = JSONWriter(reserving: Resource.bytes(file).count)
        if let root = root(file) { Self.write(root, to: &writer) }
        return writer.bytes
    }

    /// Returns a document without what is off. Tests check that our text is valid YAML.
    private func root(_ file: String) -> Node? {
        let text = String(decoding: Resource.bytes(file), as: UTF8.self)
        guard let root = try? Yams.compose(yaml: text, .basic) else { return nil }
        return filter.isEmpty ? root : filter.filtered(root)
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
