import Values

/// One committed event of the log, as it is routed to streams.
///
/// It exists only after its transaction has committed, so it may be delivered to its audience at once.
public struct StreamEvent: Sendable, Hashable {
    /// The sequence number in the log. It rises in commit order and is never reused.
    public let sequence: Int64
    public let tenant: ID<Tenant>
    /// The SSE event name, such as `notification:created`.
    public let name: String
    /// The audience keys of the row. A stream may see the event only if its scope has one of them.
    public let audience: [String]
    /// Nil for a personal event, which goes to every stream that may see it. Otherwise the event goes only to streams
    /// that subscribed to this topic **and** may see it. A topic narrows delivery; it never widens visibility.
    public let topic: String?
    /// Not 0 for an event that carries a state: a later event with the same key replaces it (``CollapseKey``). 0 for a
    /// log event, which is never replaced.
    public let collapse: UInt64
    /// One JSON value, in UTF-8.
    public let data: [UInt8]
    /// The trace context of the event (W3C Trace Context); nil if no trace is recorded.
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

/// The key under which streams collapse the events of one state. It is a hash of the state's name ("badges:u1").
///
/// The key is stored with the event, so it must be the same in every process. Two states of one stream share a key with
/// a probability of 2⁻⁶⁴ per pair.
public enum CollapseKey {
    /// Returns the key of a name. It is never 0, which marks a log event.
    public static func of(_ name: String) -> UInt64 {
        let hash = FNV1a.hash(name.utf8)
        return hash == 0 ? 1 : hash
    }
}

extension StreamEvent {
    /// Keeps only the latest event of each state, at its own place. Log events stay where they are.
    ///
    /// The place matters: ids must rise along a stream, because a client resumes after the last id that it has seen.
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
