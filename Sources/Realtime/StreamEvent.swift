import Values

/// One committed event of the log, as it is routed to streams.
///
/// It exists only after its transaction has committed, so it may be delivered to its audience at once.
public struct StreamEvent: Sendable, Hashable {
    /// Its place in the log: rises in commit order and is never used again.
    public let sequence: Int64
    public let tenant: ID<Tenant>
    /// The SSE event name, such as `notification:created`.
    public let name: String
    /// The keys of the row it is about; a stream may see it only if its scope has one of them.
    public let audience: [String]
    /// Nil: personal, for every stream that may see it. Otherwise only for streams that named this topic **and** may
    /// see it: a topic narrows what is sent, it never widens what is seen.
    public let topic: String?
    /// Not 0: the event carries a state, and a later event with the same key replaces it (``CollapseKey``).
    /// 0: a log event, which no other replaces.
    public let collapse: UInt64
    /// One JSON value, in UTF-8.
    public let data: [UInt8]
    /// The trace that it is of, as the W3C's Trace Context writes it; nil where none is recorded.
    public let traceparent: String?

    public init(
        sequence: Int64, tenant: ID<Tenant>, name: String, audience: [String], topic: String? = nil,
        collapse: UInt64 = 0,
        data: [UInt8], traceparent: String? = nil
    ) {
        self.sequence = sequence
        self.tenant = tenant
        self.name = name
        self.audience = audience
        self.topic = topic
        self.collapse = collapse
        self.data = data
        self.traceparent = traceparent
    }
}

/// The number by which streams collapse the events of one state, made from the state's name ("badges:u1").
///
/// It is stored with the event, so it must be the same in every process. Two states of one stream share a key with a
/// probability of 2⁻⁶⁴ a pair.
public enum CollapseKey {
    /// Never 0, which marks a log event.
    public static func of(_ name: String) -> UInt64 {
        let hash = FNV1a.hash(name.utf8)
        return hash == 0 ? 1 : hash
    }
}

extension StreamEvent {
    /// Leaves only the latest event of each state, at the place of the latest; log events stay where they are.
    ///
    /// The place matters: ids must rise along a stream, for a client resumes behind the last one it has seen.
    public static func collapsed(_ events: [StreamEvent]) -> [StreamEvent] {
        var seen: Set<UInt64> = []
        var latest: [StreamEvent] = []
        latest.reserveCapacity(events.count)
        for event in events.reversed() where event.collapse == 0 || seen.insert(event.collapse).inserted {
            latest.append(event)
        }
        latest.reverse()
        return latest
    }
}
