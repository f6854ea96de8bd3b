/// One committed event of the log, as it is routed to streams.
///
/// It exists only after its transaction has committed, so whoever holds one may show it to those of its audience.
public struct StreamEvent: Sendable, Hashable {
    /// Its place in the log: rises in commit order and is never used again.
    public let sequence: Int64
    public let tenant: String
    /// The SSE event name, such as `notification:created`.
    public let name: String
    /// The keys of the row it is about; a stream may see it only if its scope holds one of them.
    public let audience: [String]
    /// Nil: personal, for every stream that may see it. Otherwise only for streams that named this topic **and** may
    /// see it: a topic narrows what is sent, it never widens what is seen.
    public let topic: String?
    /// Not 0: the event tells a state, and a later one with the same key makes it worthless (``CollapseKey``).
    /// 0: a log event, which is never dropped in favour of another.
    public let collapse: UInt64
    /// One JSON value, in UTF-8.
    public let data: [UInt8]

    public init(
        sequence: Int64, tenant: String, name: String, audience: [String], topic: String? = nil, collapse: UInt64 = 0,
        data: [UInt8]
    ) {
        self.sequence = sequence
        self.tenant = tenant
        self.name = name
        self.audience = audience
        self.topic = topic
        self.collapse = collapse
        self.data = data
    }
}

/// Turns the name of a state ("badges:u1") into the number by which streams collapse its events.
///
/// It is stored with the event, so it must be the same in every process: FNV-1a, 64 bits, and not Swift's seeded
/// hasher. Two states of one stream share a key with a probability of 2⁻⁶⁴ a pair.
public enum CollapseKey {
    /// Never 0, which marks a log event.
    public static func of(_ name: String) -> UInt64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in name.utf8 { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01b3 }
        return hash == 0 ? 1 : hash
    }
}

extension StreamEvent {
    /// Leaves only the latest event of each state, at the place of the latest; log events stay where they are.
    ///
    /// The place matters: ids must rise along a stream, for a client resumes behind the last one it has seen.
    public static func collapsed(_ events: [StreamEvent]) -> [StreamEvent] {
        var seen: Set<UInt64> = []
        var kept: [StreamEvent] = []
        kept.reserveCapacity(events.count)
        for event in events.reversed() where event.collapse == 0 || seen.insert(event.collapse).inserted {
            kept.append(event)
        }
        kept.reverse()
        return kept
    }
}
