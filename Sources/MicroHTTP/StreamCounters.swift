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
    /// Messages and openings that the shard has yet to take. If it grows on and on, the shard is overloaded.
    public var inboxDepth = 0

    public static func + (left: StreamCounters, right: StreamCounters) -> StreamCounters {
        let counters: [WritableKeyPath<StreamCounters, Int>] = [
            \.opened, \.closed, \.delivered, \.sends, \.sentBytes, \.heartbeats, \.stalls, \.overflows, \.discarded,
            \.collapsed, \.batches, \.inboxDepth,
        ]
        return counters.reduce(into: left) { sum, counter in sum[keyPath: counter] += right[keyPath: counter] }
    }
}
