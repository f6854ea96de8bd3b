import Domain
import Rows
import Values

/// Streams: one connection that delivers to each user what the token allows; tickets for browsers, renewal, topics, and
/// revocation of tokens.
///
/// `GET /v1/stream` itself is not an endpoint of this list, because its answer is a connection, not a response
/// (`StreamRoute`).
enum StreamsFeature {
    /// The dependencies of the endpoints.
    struct Parts: Sendable {
        let dependencies: StreamDependencies
        /// Requests about streams, on any replica.
        let requests: any StreamRequests
        let router: EventRouter
    }

    /// Creates the feature.
    ///
    /// - Parameter parts: Nil lists tables and routes without serving them, for `bellhop routes` and `policies`.
    static func feature(_ parts: Parts?) -> Feature {
        Feature(
            name: "streams", tables: [StreamTickets.table, revocations], migrations: migrations,
            endpoints: endpoints(parts), reaction: reaction, ticks: [pruning],
            // The events about streams themselves, and the events made from changes of rows.
            events: [
                "stream:ready", "stream:resync", "stream:scope", "stream:expiring", "stream:closing",
                "query:invalidate", "table:change", "engagement_update",
            ], constants: writeConstants)
    }

    /// Stores the revocation of an erased person's tokens.
    private static let reaction: Reaction = { tx, fact in
        guard case .personLeft(_, mark: let mark) = fact else { return }
        try insertRevocation(.ofErased(mark, in: tx.tenant, at: tx.now), at: tx.now, in: tx.db)
    }

    /// Writes the constants for opening streams, and for splitting filters in clients (R-ENG-E-2).
    @Sendable private static func writeConstants(to writer: inout JSONWriter, _ settings: Settings) {
        writer.member(
            "stream",
            [
                "heartbeatSeconds": settings.heartbeatSeconds, "retryMilliseconds": StreamLimits.retryMilliseconds,
                "resumableHours": settings.eventsKeptHours, "topicsMax": StreamLimits.topicsMax,
                "perUserMax": settings.streamsPerUserMax,
            ])
        writer.member(
            "subscriptions",
            [
                "perStreamMax": FilterLimits.subscriptionsPerStreamMax,
                "requestBytesMax": StreamLimits.subscriptionsBytesMax,
                "idBytesMax": FilterLimits.subscriptionIdBytesMax,
                "selectedColumnsMax": FilterLimits.selectedColumnsMax, "filterBytesMax": FilterLimits.filterBytesMax,
                "conditionsMax": FilterLimits.conditionsMax, "valuesMax": FilterLimits.valuesMax,
                "valueBytesMax": FilterLimits.valueBytesMax, "numberBytesMax": FilterLimits.numberBytesMax,
                "valuesPerStreamMax": FilterLimits.valuesPerStreamMax,
                "searchesPerStreamMax": FilterLimits.searchesPerStreamMax,
                "patternRunMax": FilterLimits.patternRunMax,
            ])
        writer.member(
            "invalidations",
            [
                "windowMilliseconds": TableLimits.windowDefaultMilliseconds,
                "keysPerStreamMax": TableLimits.pendingKeysPerStreamMax,
                "causesPerEventMax": TableLimits.causesPerBatchMax,
            ])
    }
}
