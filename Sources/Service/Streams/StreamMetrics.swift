import Synchronization
import Threads

/// The counters of streams. Shards add once per batch, not once per send.
final class StreamMetrics: Sendable {
    let open = Atomic<Int>(0)
    let opened = Atomic<Int>(0)
    let deliveries = Atomic<Int>(0)
    let deliveredBytes = Atomic<Int>(0)
    let replays = Atomic<Int>(0)
    let replayedEvents = Atomic<Int>(0)
    let resyncs = Atomic<Int>(0)
    let overflows = Atomic<Int>(0)
    let topics = Atomic<Int>(0)
    let tables = Atomic<Int>(0)

    private let closings = Locked([StreamEnding: Int]())

    /// Records that a stream has ended.
    func closed(_ ending: StreamEnding) { closings.withLock { $0[ending, default: 0] += 1 } }

    static func add(_ count: Int, to counter: borrowing Atomic<Int>) {
        counter.wrappingAdd(count, ordering: .relaxed)
    }

    init(_ registry: MetricsRegistry) {
        registry.register { [self] text in
            text.single("bellhop_streams_open", .gauge, "Open streams.", value: open)
            text.single("bellhop_streams_opened_total", .counter, "Opened streams.", value: opened)
            let closings = closings.withLock { $0 }
            text.family(
                "bellhop_streams_closed_total", .counter, "Closed streams, by reason.",
                by: "reason", samples: StreamEnding.allCases.map { ($0.rawValue, closings[$0] ?? 0) })
            text.single("bellhop_stream_events_total", .counter, "Live events delivered to streams.", value: deliveries)
            text.single(
                "bellhop_stream_event_bytes_total", .counter, "Bytes of live events delivered to streams.",
                value: deliveredBytes)
            text.single("bellhop_stream_replays_total", .counter, "Streams resumed from a cursor.", value: replays)
            text.single(
                "bellhop_stream_replayed_events_total", .counter, "Events replayed from the log.", value: replayedEvents
            )
            text.single("bellhop_stream_resyncs_total", .counter, "Resyncs sent to streams.", value: resyncs)
            text.single(
                "bellhop_stream_topics", .gauge, "Shared topics with subscriptions of open streams.", value: topics)
            text.single(
                "bellhop_stream_table_subscriptions", .gauge, "Row subscriptions of open streams.", value: tables)
            text.single(
                "bellhop_stream_overflows_total", .counter, "Streams closed because the client read too slowly.",
                value: overflows)
        }
    }
}

/// The cause of a stream's end: the service, which gave its client a reason, or the connection.
enum StreamEnding: String, CaseIterable {
    case client, reset
    case timedOut = "timed_out"
    case slow, expired, revoked, unavailable, shutdown
}
