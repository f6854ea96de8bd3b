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
            func write(_ name: String, _ kind: MetricsText.Kind, _ help: String, _ value: borrowing Atomic<Int>) {
                text.single(name, kind, help, value.load(ordering: .relaxed))
            }
            write("bellhop_streams_open", .gauge, "Open streams.", open)
            write("bellhop_streams_opened_total", .counter, "Opened streams.", opened)
            let closings = closings.withLock { $0 }
            text.family("bellhop_streams_closed_total", .counter, "Closed streams, by reason.")
            for ending in StreamEnding.allCases {
                text.sample(
                    "bellhop_streams_closed_total", [("reason", ending.rawValue)], Double(closings[ending] ?? 0))
            }
            write("bellhop_stream_events_total", .counter, "Live events delivered to streams.", deliveries)
            write(
                "bellhop_stream_event_bytes_total", .counter, "Bytes of live events delivered to streams.",
                deliveredBytes)
            write("bellhop_stream_replays_total", .counter, "Streams resumed from a cursor.", replays)
            write("bellhop_stream_replayed_events_total", .counter, "Events replayed from the log.", replayedEvents)
            write("bellhop_stream_resyncs_total", .counter, "Resyncs sent to streams.", resyncs)
            write("bellhop_stream_topics", .gauge, "Shared topics with subscriptions of open streams.", topics)
            write("bellhop_stream_table_subscriptions", .gauge, "Row subscriptions of open streams.", tables)
            write(
                "bellhop_stream_overflows_total", .counter, "Streams closed because the client read too slowly.",
                overflows)
        }
    }
}

/// The cause of a stream's end: the service, which gave its client a reason, or the connection.
enum StreamEnding: String, CaseIterable {
    case client, reset
    case timedOut = "timed_out"
    case slow, expired, revoked, unavailable, shutdown
}
