import Synchronization

/// The metrics of reading an app's log.
final class SourceMetrics: Sendable {
    let isConnected = Atomic<Bool>(false)
    let lagBytes = Atomic<Int>(0)
    let lagMilliseconds = Atomic<Int>(0)
    let transactions = Atomic<Int>(0)
    let rows = Atomic<Int>(0)
    let rejected = Atomic<Int>(0)
    let slotsLost = Atomic<Int>(0)
    let unsigned = Atomic<Int>(0)

    init(_ registry: MetricsRegistry) {
        registry.register { [self] text in write(to: &text) }
    }

    private func write(to text: inout MetricsText) {
        text.single(
            "bellhop_source_connected", .gauge, "1 on the replica that reads the app's log, else 0.",
            isConnected.load(ordering: .relaxed) ? 1 : 0)
        text.single(
            "bellhop_source_lag_bytes", .gauge, "Bytes of the app's log that are not stored here yet.",
            lagBytes.load(ordering: .relaxed))
        text.family(
            "bellhop_source_lag_seconds", .gauge,
            "Time since the commit of what was stored last; 0 where nothing waits.")
        text.sample("bellhop_source_lag_seconds", [], Double(lagMilliseconds.load(ordering: .relaxed)) / 1000)
        text.single(
            "bellhop_source_transactions_total", .counter, "Transactions of the app that were read.",
            transactions.load(ordering: .relaxed))
        text.single(
            "bellhop_source_rows_total", .counter, "Rows' changes and messages of the app's log that were taken in.",
            rows.load(ordering: .relaxed))
        text.single(
            "bellhop_source_rejected_total", .counter, "Those that were not, each with a reason in the log.",
            rejected.load(ordering: .relaxed))
        text.single(
            "bellhop_source_slot_lost_total", .counter, "Times that the slot was lost, and streams began anew.",
            slotsLost.load(ordering: .relaxed))
        text.single(
            "bellhop_source_unsigned_total", .counter,
            "Messages that were ignored: neither bellhop.notify nor bellhop.publish wrote them.",
            unsigned.load(ordering: .relaxed))
    }

    func add(_ number: Int, to counter: borrowing Atomic<Int>) { counter.add(number, ordering: .relaxed) }
}
