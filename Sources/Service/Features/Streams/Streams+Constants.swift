import Rows
import Values

extension StreamsFeature {
    /// What streams say of themselves, and what they make of changes of rows.
    static let events = [
        "stream:ready", "stream:resync", "stream:scope", "stream:expiring", "stream:closing", "query:invalidate",
        "table:change", "engagement_update",
    ]

    /// What clients open streams by, and split their filters by (ENG E-2).
    @Sendable static func writeConstants(to writer: inout JSONWriter, _ settings: Settings) {
        writer.member("stream") { writer in
            writer.member("heartbeatSeconds", settings.heartbeatSeconds)
            writer.member("retryMilliseconds", StreamLimits.retryMilliseconds)
            writer.member("resumableHours", settings.eventsKeptHours)
            writer.member("topicsMax", StreamLimits.topicsMax)
            writer.member("perUserMax", settings.streamsPerUserMax)
        }
        writer.member("subscriptions") { writer in
            writer.member("perStreamMax", FilterLimits.subscriptionsPerStreamMax)
            writer.member("requestBytesMax", StreamLimits.subscriptionsBytesMax)
            writer.member("idBytesMax", FilterLimits.subscriptionIdBytesMax)
            writer.member("selectedColumnsMax", FilterLimits.selectedColumnsMax)
            writer.member("filterBytesMax", FilterLimits.filterBytesMax)
            writer.member("conditionsMax", FilterLimits.conditionsMax)
            writer.member("valuesMax", FilterLimits.valuesMax)
            writer.member("valueBytesMax", FilterLimits.valueBytesMax)
            writer.member("valuesPerStreamMax", FilterLimits.valuesPerStreamMax)
            writer.member("searchesPerStreamMax", FilterLimits.searchesPerStreamMax)
            writer.member("patternRunMax", FilterLimits.patternRunMax)
        }
        writer.member("invalidations") { writer in
            writer.member("windowMilliseconds", TableLimits.windowDefaultMilliseconds)
            writer.member("keysPerStreamMax", TableLimits.pendingKeysPerStreamMax)
            writer.member("causesPerEventMax", TableLimits.causesPerBatchMax)
        }
    }
}
