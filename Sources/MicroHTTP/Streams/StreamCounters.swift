/// The counters of a shard since its creation, and the depth of its inbox.
public struct StreamCounters: Sendable, Hashable {
    public var opened = 0
    public var closed = 0
    /// Items that a program sent and a socket accepted completely.
    public var delivered = 0
    /// Calls of `send` that carried them. There are fewer if items were joined.
    public var sends = 0
    public var sentBytes = 0
    public var heartbeats = 0
    /// The number of times that a socket was full and a backlog had to be created.
    public var stalls = 0
    public var overflows = 0
    /// Items discarded by the rule for slow readers.
    public var discarded = 0
    /// Items replaced by a later one with the same key.
    public var collapsed = 0
    /// Rounds of the loop that found something in the inbox.
    public var batches = 0
    /// Messages and openings that the shard has yet to take. If it grows continuously, the shard is overloaded.
    public var inboxDepth = 0

    public static func + (left: StreamCounters, right: StreamCounters) -> StreamCounters {
        let counters: [WritableKeyPath<StreamCounters, Int>] = [
            \.opened, \.closed, \.delivered, \.sends, \.sentBytes, \.heartbeats, \.stalls, \.overflows, \.discarded,
            \.collapsed, \.batches, \.inboxDepth,
        ]
        return counters.reduce(into: left) { sum, counter in sum[keyPath: counter] += right[keyPath: counter] }
    }
}
