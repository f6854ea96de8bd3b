import Domain

/// Streams: one connection that brings each user what the token lets them see; tickets for browsers, renewal, topics,
/// and revocation of tokens.
///
/// `GET /v1/stream` itself is no endpoint of this list: its answer is a connection, not a response (`StreamRoute`).
enum StreamsFeature {
    /// - Parameter directory: nil lists tables and routes without serving them, for `bellhop routes` and `policies`.
    static func feature(_ directory: StreamDirectory?) -> Feature {
        Feature(
            name: "streams", tables: [tickets, revocations], migrations: migrations, endpoints: endpoints(directory),
            reactions: [], topics: [], ticks: [tidying])
    }
}
