/// A kind of shared topic, such as `queue:{shopId}`.
struct TopicKind: Sendable {
    let prefix: String
    /// The state that a stream is sent when it joins, as an event's name and data; nil: there is none.
    let initial: @Sendable (Transaction, _ id: String) throws -> (String, [UInt8])?
}

/// A table of the service as subscriptions name it.
struct WatchedTable: Sendable, Hashable {
    let schema: String
    let table: String
}
