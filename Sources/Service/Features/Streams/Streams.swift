import Domain

/// Streams: one connection that brings each user what the token lets them see; tickets for browsers, renewal, topics,
/// and revocation of tokens.
///
/// `GET /v1/stream` itself is no endpoint of this list: its answer is a connection, not a response (`StreamRoute`).
enum StreamsFeature {
    /// What the endpoints work with.
    struct Parts: Sendable {
        let dependencies: StreamDependencies
        /// Requests about streams, wherever they are.
        let requests: any StreamRequests
        let router: EventRouter
    }

    /// - Parameter parts: nil lists tables and routes without serving them, for `bellhop routes` and `policies`.
    static func feature(_ parts: Parts?) -> Feature {
        Feature(
            name: "streams", tables: [StreamTickets.table, revocations], migrations: migrations,
            endpoints: endpoints(parts), ticks: [tidying], events: events, constants: writeConstants)
    }
}
