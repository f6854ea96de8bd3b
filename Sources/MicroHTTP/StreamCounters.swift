import Synchronization

/// What a shard has done since it was made, and how much waits in its inbox.
public struct StreamCounters: Sendable, Hashable {
    public var opened = 0
    public var closed = 0
    /// Items that a program sent and a socket took whole.
    public var delivered = 0
    /// Calls of `send` that carried them: fewer, when items were joined.
    public var sends = 0
    public var sentBytes = 0
    public var heartbeats = 0
    /// How often a socket was full and a buffer had to be made.
    public var stalls = 0
    public var overflows = 0
    /// Items thrown away by the rule for slow readers.
    public var discarded = 0
    /// Items that a later one with the same key replaced.
    public var collapsed = 0
    /// Rounds of the loop that found something in the inbox.
    public var batches = 0
    /// Messages and openings that the shard has yet to take. If it keeps growing, the shard is overloaded.
    public var inboxDepth = 0

    public init() {}

    public static func + (left: StreamCounters, right: StreamCounters) -> StreamCounters {
        var sum = left
        sum.opened += right.opened
        sum.closed += right.closed
        sum.delivered += right.delivered
        sum.sends += right.sends
        sum.sentBytes += right.sentBytes
        sum.heartbeats += right.heartbeats
        sum.stalls += right.stalls
        sum.overflows += right.overflows
        sum.discarded += right.discarded
        sum.collapsed += right.collapsed
        sum.batches += right.batches
        sum.inboxDepth += right.inboxDepth
        return sum
    }
}

/// The counters as other threads may read them: the shard counts in plain integers and publishes once per round, so that
/// counting costs the sending loop nothing.
final class PublishedStreamCounters: Sendable {
    private let opened = Atomic(0)
    private let closed = Atomic(0)
    private let delivered = Atomic(0)
    private let sends = Atomic(0)
    private let sentBytes = Atomic(0)
    private let heartbeats = Atomic(0)
    private let stalls = Atomic(0)
    private let overflows = Atomic(0)
    private let discarded = Atomic(0)
    private let collapsed = Atomic(0)
    private let batches = Atomic(0)

    func publish(_ counters: StreamCounters) {
        opened.store(counters.opened, ordering: .relaxed)
        closed.store(counters.closed, ordering: .relaxed)
        delivered.store(counters.delivered, ordering: .relaxed)
        sends.store(counters.sends, ordering: .relaxed)
        sentBytes.store(counters.sentBytes, ordering: .relaxed)
        heartbeats.store(counters.heartbeats, ordering: .relaxed)
        stalls.store(counters.stalls, ordering: .relaxed)
        overflows.store(counters.overflows, ordering: .relaxed)
        discarded.store(counters.discarded, ordering: .relaxed)
        collapsed.store(counters.collapsed, ordering: .relaxed)
        batches.store(counters.batches, ordering: .relaxed)
    }

    func read() -> StreamCounters {
        var counters = StreamCounters()
        counters.opened = opened.load(ordering: .relaxed)
        counters.closed = closed.load(ordering: .relaxed)
        counters.delivered = delivered.load(ordering: .relaxed)
        counters.sends = sends.load(ordering: .relaxed)
        counters.sentBytes = sentBytes.load(ordering: .relaxed)
        counters.heartbeats = heartbeats.load(ordering: .relaxed)
        counters.stalls = stalls.load(ordering: .relaxed)
        counters.overflows = overflows.load(ordering: .relaxed)
        counters.discarded = discarded.load(ordering: .relaxed)
        counters.collapsed = collapsed.load(ordering: .relaxed)
        counters.batches = batches.load(ordering: .relaxed)
        return counters
    }
}
