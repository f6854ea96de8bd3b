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

/// A state of one user, stored nowhere: the next one replaces it, and who opens a stream is sent the present one.
struct OwnState: Sendable {
    let tenant: String
    /// Whose streams: a key of their scopes.
    let key: String
    let name: String
    let collapse: UInt64
    let data: [UInt8]
}
