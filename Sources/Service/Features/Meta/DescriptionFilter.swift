import Yams

/// The parts of a description that a service with some sets off leaves out: their operations and events, and what only
/// those refer to.
struct DescriptionFilter {
    /// An operation by its method in lower case and its pattern.
    struct Operation: Hashable {
        let method: String
        let pattern: String
    }

    let operations: Set<Operation>
    let events: Set<String>
    /// Members of `GET /v1/config`.
    let constants: Set<String>

    var isEmpty: Bool { operations.isEmpty && events.isEmpty && constants.isEmpty }

    /// Returns the document without what is off. It keeps the order of the text, which is arranged for readers.
    func filtered(_ document: Node) -> Node {
        var document = document
        let known = Set(operationsByPath.keys)
        document["paths"] = document["paths"].map {
            keeping($0) { path, item in
                guard known.contains(path) else { return item }
                let rest = keeping(item) { method, operation in
                    operations.contains(Operation(method: method, pattern: path)) ? nil : operation
                }
                return rest.mapping?.contains { Self.methods.contains($0.key.string ?? "") } == true ? rest : nil
            }
        }
        document["paths"] = document["paths"].map(withoutEvents)
        document["tags"] = document["tags"].map { tags in withoutUnused(tags, in: document) }
        document["x-stores"] = document["x-stores"].map { keeping($0) { _, store in isOff(store) ? nil : store } }
        let whole = document
        document["channels"] = whole["channels"].map { keeping($0) { _, channel in withoutEvents(channel, of: whole) } }
        if !constants.isEmpty { removeConstants(from: &document) }
        return Self.withoutUnused(document)
    }

    private static let methods: Set = ["get", "put", "post", "patch", "delete"]

    private var operationsByPath: [String: [Operation]] { Dictionary(grouping: operations, by: \.pattern) }

    private func withoutUnused(_ tags: Node, in document: Node) -> Node {
        var used: Set<String> = []
        for (_, item) in document["paths"]?.mapping ?? [:] {
            for (_, operation) in item.mapping ?? [:] {
                for tag in operation["tags"]?.sequence ?? [] { used.insert(tag.string ?? "") }
            }
        }
        return Node(tags.sequence.map { $0.filter { used.contains($0["name"]?.string ?? "") } } ?? [], tags.tag)
    }

    /// Whether a store of the clients reads an operation that is off.
    private func isOff(_ store: Node) -> Bool {
        let path = (store["path"]?.string ?? "").prefix { $0 != "?" }
        let segments = path.split(separator: "/")
        return operations.contains { operation in
            let pattern = operation.pattern.split(separator: "/")
            return operation.method == "get" && pattern.count == segments.count
                && zip(pattern, segments).allSatisfy { $0 == $1 || $0.hasPrefix("{") && $1.hasPrefix("{") }
        }
    }

    private func withoutEvents(_ channel: Node, of document: Node) -> Node {
        var channel = channel
        channel["messages"] = channel["messages"].map {
            keeping($0) { name, reference in
                let event = document["components"]?["messages"]?[name]?["name"]?.string ?? ""
                return events.contains(event) ? nil : reference
            }
        }
        return channel
    }

    /// Removes the events from the description of a stream: from its list, and from the alternatives of its schema.
    private func withoutEvents(_ node: Node) -> Node {
        switch node {
        case .mapping:
            keeping(node) { key, value in
                let value = withoutEvents(value)
                return key == "x-events" ? keeping(value) { events.contains($0) ? nil : $1 } : value
            }
        case .sequence(let sequence):
            Node(
                sequence.filter { !events.contains($0["properties"]?["event"]?["const"]?.string ?? "") }
                    .map(withoutEvents), node.tag)
        default: node
        }
    }

    private func removeConstants(from document: inout Node) {
        guard var schema = document["components"]?["schemas"]?["Config"] else { return }
        schema["properties"] = schema["properties"].map { keeping($0) { constants.contains($0) ? nil : $1 } }
        document["components"]?["schemas"]?["Config"] = schema
        guard let path = document["paths"]?["/v1/config"],
            let example = path["get"]?["responses"]?["200"]?["content"]?["application/json"]?["example"]
        else { return }
        document["paths"]?["/v1/config"]?["get"]?["responses"]?["200"]?["content"]?["application/json"]?["example"] =
            keeping(example) { constants.contains($0) ? nil : $1 }
    }

    /// Returns a mapping with what a rule makes of its members, without those of which it makes nothing.
    private func keeping(_ node: Node, _ rule: (_ key: String, _ value: Node) -> Node?) -> Node {
        guard let mapping = node.mapping else { return node }
        let members = mapping.compactMap { key, value in rule(key.string ?? "", value).map { (key, $0) } }
        return Node(members, node.tag)
    }

    // MARK: Components

    /// Removes the components to which nothing refers any more. Schemes of security are named, not referred to.
    private static func withoutUnused(_ document: Node) -> Node {
        guard let components = document["components"]?.mapping, let members = document.mapping else { return document }
        var used: Set<String> = []
        var added: Set<String> = []
        for (key, value) in members where key.string != "components" { collect(value, &added) }
        while !added.isEmpty {
            used.formUnion(added)
            let reached = added
            added = []
            for reference in reached { component(reference, of: components).map { collect($0, &added) } }
            added.subtract(used)
        }
        var document = document
        for (kind, named) in components where kind.string != "securitySchemes" {
            guard let name = kind.string, let entries = named.mapping else { continue }
            let kept = entries.filter { used.contains("#/components/\(name)/\($0.key.string ?? "")") }
            document["components"]?[name] = Node(kept.map { ($0.key, $0.value) }, named.tag)
        }
        return document
    }

    private static func component(_ reference: String, of components: Node.Mapping) -> Node? {
        let parts = reference.split(separator: "/").map(String.init)
        guard parts.count == 4, parts[1] == "components" else { return nil }
        return components[Node(parts[2])]?[parts[3]]
    }

    private static func collect(_ node: Node, _ references: inout Set<String>) {
        switch node {
        case .mapping(let mapping):
            for (key, value) in mapping {
                if key.string == "$ref", let target = value.string {
                    references.insert(target)
                } else {
                    collect(value, &references)
                }
            }
        case .sequence(let sequence): for value in sequence { collect(value, &references) }
        default: break
        }
    }
}
