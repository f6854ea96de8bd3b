import Rows
import Values

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
            endpoints: endpoints(parts), ticks: [tidying],
            // What streams say of themselves, and what they make of changes of rows.
            events: [
                "stream:ready", "stream:resync", "stream:scope", "stream:expiring", "stream:closing",
                "query:invalidate", "table:change", "engagement_update",
            ], constants: writeConstants)
    }

    /// What clients open streams by, and split their filters by (ENG E-2).
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
                "valueBytesMax": FilterLimits.valueBytesMax, "valuesPerStreamMax": FilterLimits.valuesPerStreamMax,
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
