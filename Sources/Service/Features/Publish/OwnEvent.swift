import Rows
import Values
import Visibility

/// An event of an app, to be published. The service knows its audience, but not its meaning.
struct OwnEvent: Sendable {
    let name: String
    let audience: [String]
    let topic: String?
    /// The name of the state that the event carries whole: an unsent event of that state is replaced by the next. Each
    /// topic has its own namespace of states, and events to keys share another.
    let collapse: String?
    let data: [UInt8]

    /// The rules for names and topics.
    struct Rules: Sendable {
        let topics: [TopicDeclaration]
        /// The prefixes of the service's own event names.
        let taken: Set<Substring>
    }

    init(reading fields: inout Fields, by rules: Rules) {
        name = Self.name(&fields, rules)
        // Unique, because each key is a row in the index of the log.
        var seen: Set<String> = []
        let keys = Self.keys(&fields).filter { seen.insert($0).inserted }
        topic = fields.optionalString("topic", bytesMax: StreamLimits.topicBytesMax)
        collapse = fields.optionalLine("collapse", bytesMax: PublishLimits.collapseBytesMax)
        let value = fields.value("data")
        if !fields.has("data") { fields.reject("data", "is missing: send null for no data") }
        data = value.map { JSONWriter.bytes($0) } ?? Array("null".utf8)
        if data.count > PublishLimits.dataBytesMax {
            fields.reject("data", "must have at most \(PublishLimits.dataBytesMax) bytes, but has \(data.count)")
        }
        if fields.has("to") == fields.has("topic") { fields.reject("", "must contain either to or topic") }
        audience = topic.map { Self.audience(of: $0, &fields, rules) } ?? keys
    }

    func publish(_ tx: Transaction) {
        tx.publish(
            named: name, audience: audience, topic: topic,
            // In a namespace separate from the service's own states.
            collapse: collapse.map { name in topic.map { "publish:\($0.utf8.count):\($0)\(name)" } ?? "publish::\(name)"
            },
            data: data)
    }

    /// The one key without a prefix: every caller of the tenant holds it.
    private static let everyone = "everyone"

    /// Names that a browser's client would misinterpret: EventSource's own events, and the inherited members of
    /// JavaScript objects, in which a client may look up the listeners of a name.
    private static let reservedNames: Set<String> = [
        "abort", "close", "error", "message", "open",
        "__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__", "__proto__", "constructor",
        "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "prototype", "toLocaleString", "toString", "valueOf",
    ]

    private static func name(_ fields: inout Fields, _ rules: Rules) -> String {
        let name = fields.string("event", bytesMax: PublishLimits.nameBytesMax)
        guard !name.isEmpty else { return name }
        let parts = name.split(separator: ":", omittingEmptySubsequences: false)
        let isPlain = parts.allSatisfy { part in
            !part.isEmpty && part.utf8.allSatisfy { $0.isAlphanumeric || "_-.".utf8.contains($0) }
        }
        if !isPlain {
            fields.reject(
                "event", "must be words of letters, digits, _, - and ., separated by colons, such as order:changed")
        } else if reservedNames.contains(name) {
            fields.reject("event", "must not be \(name), which has another meaning in browsers")
        } else if rules.taken.contains(parts[0]) {
            fields.reject("event", "must not begin with \(parts[0]), which is reserved for events of the service")
        }
        return name
    }

    private static func keys(_ fields: inout Fields) -> [String] {
        let keys = fields.strings("to", countMax: PublishLimits.keysMax, bytesMax: PublishLimits.keyBytesMax) ?? []
        if fields.has("to"), keys.isEmpty { fields.reject("to", "must name at least one key, such as user:ada") }
        for (index, key) in keys.enumerated() {
            if !AudienceKey.isKey(key) {
                fields.reject("to/\(index)", "is not a key, such as user:ada or shop:s1:staff")
            } else if key != everyone, !key.utf8.contains(UInt8(ascii: ":")) {
                fields.reject("to/\(index)", "matches no user: did you mean user:\(key)?")
            }
        }
        return keys
    }

    private static func audience(of topic: String, _ fields: inout Fields, _ rules: Rules) -> [String] {
        let colon = topic.firstIndex(of: ":") ?? topic.endIndex
        let id = String(topic[colon...].dropFirst())
        guard let declared = rules.topics.first(where: { $0.prefix == topic[..<colon] }), Fields.isIdentifier(id) else {
            let known = rules.topics.map { "\($0.prefix):{\($0.column)}" }.sorted().joined(separator: ", ")
            fields.reject(
                "topic",
                "is not declared in the table file (BELLHOP_TABLES)\(known.isEmpty ? "" : "; declared are \(known)")")
            return []
        }
        return declared.audience(of: id)
    }
}

/// The limits of apps' events, each with its reason.
enum PublishLimits {
    /// Events of one request: one transaction, for which other writes wait.
    static let eventsMax = 100
    /// Bytes of a request: the maximum number of events of usual size.
    static let bodyBytesMax = 1 << 20
    /// Bytes of an event's data. A stream's socket buffers 64 KiB. With a few events of this size in flight, a client
    /// would look slow. Larger data is better fetched on demand.
    static let dataBytesMax = 16 * 1024
    /// Bytes of a name, which is part of every event.
    static let nameBytesMax = 64
    /// Keys of one event, each a row in the index of the log: as many as a conversation has members.
    static let keysMax = 256
    /// Bytes of a key: a few segments, one of them an id of 128 bytes.
    static let keyBytesMax = 512
    /// Bytes of the name of a state.
    static let collapseBytesMax = 128
}
