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
            write("bellhop_streams_open", .gauge, "Streams that are open now.", open)
            write("bellhop_streams_opened_total", .counter, "Streams that were opened.", opened)
            let closings = closings.withLock { $0 }
            text.family("bellhop_streams_closed_total", .counter, "Streams that are over, by what ended them.")
            for ending in StreamEnding.allCases {
                text.sample(
                    "bellhop_streams_closed_total", [("reason", ending.rawValue)], Double(closings[ending] ?? 0))
            }
            write("bellhop_stream_events_total", .counter, "Events delivered to streams, live.", deliveries)
            write("bellhop_stream_event_bytes_total", .counter, "Bytes of events delivered, live.", deliveredBytes)
            write("bellhop_stream_replays_total", .counter, "Streams that resumed from a cursor.", replays)
            write("bellhop_stream_replayed_events_total", .counter, "Events replayed from the log.", replayedEvents)
            write("bellhop_stream_resyncs_total", .counter, "Streams told to fetch everything again.", resyncs)
            write("bellhop_stream_topics", .gauge, "Shared topics that open streams subscribed to.", topics)
            write("bellhop_stream_table_subscriptions", .gauge, "Subscriptions to rows of open streams.", tables)
            write("bellhop_stream_overflows_total", .counter, "Streams whose client read too slowly.", overflows)
        }
    }
}

/// The cause of a stream's end: the service, which gave its client a reason, or the connection.
enum StreamEnding: String, CaseIterable {
    case client, reset
    case timedOut = "timed_out"
    case slow, expired, revoked, unavailable, shutdown
}
