import Synchronization

/// What the streams count. Shards add once a batch, not once a send.
final class StreamMetrics: Sendable {
    let open = Atomic<Int>(0)
    let opened = Atomic<Int>(0)
    let deliveries = Atomic<Int>(0)
    let deliveredBytes = Atomic<Int>(0)
    let replays = Atomic<Int>(0)
    let replayedEvents = Atomic<Int>(0)
    let resyncs = Atomic<Int>(0)
    let overflows = Atomic<Int>(0)

    static func add(_ count: Int, to counter: borrowing Atomic<Int>) {
        counter.wrappingAdd(count, ordering: .relaxed)
    }

    /// Name, kind and help as Prometheus wants them, with the present value.
    func samples() -> [(name: String, kind: String, help: String, value: Int)] {
        func now(_ counter: borrowing Atomic<Int>) -> Int { counter.load(ordering: .relaxed) }
        return [
            ("bellhop_streams_open", "gauge", "Streams that are open now.", now(open)),
            ("bellhop_streams_opened_total", "counter", "Streams that were opened.", now(opened)),
            ("bellhop_stream_events_total", "counter", "Events delivered to streams, live.", now(deliveries)),
            ("bellhop_stream_event_bytes_total", "counter", "Bytes of events delivered, live.", now(deliveredBytes)),
            ("bellhop_stream_replays_total", "counter", "Streams that resumed from a cursor.", now(replays)),
            ("bellhop_stream_replayed_events_total", "counter", "Events replayed from the log.", now(replayedEvents)),
            ("bellhop_stream_resyncs_total", "counter", "Streams told to fetch everything again.", now(resyncs)),
            ("bellhop_stream_overflows_total", "counter", "Streams whose client read too slowly.", now(overflows)),
        ]
    }
}
