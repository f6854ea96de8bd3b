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
    let tablesRead = Atomic<Int>(0)
    let unsigned = Atomic<Int>(0)

    init(_ registry: MetricsRegistry) {
        registry.register { [self] text in
            text.single(
                "bellhop_source_connected", .gauge, "1 on the replica that reads the app's log, else 0.",
                value: isConnected.load(ordering: .relaxed) ? 1 : 0)
            text.single(
                "bellhop_source_lag_bytes", .gauge, "Bytes of the app's log that are not stored yet.", value: lagBytes)
            text.single(
                "bellhop_source_lag_seconds", .gauge,
                "Time since the commit of the last stored change; 0 if no change is waiting.",
                value: Double(lagMilliseconds.load(ordering: .relaxed)) / 1000)
            text.single(
                "bellhop_source_transactions_total", .counter, "Transactions read from the app's log.",
                value: transactions)
            text.single(
                "bellhop_source_rows_total", .counter, "Row changes and messages accepted from the app's log.",
                value: rows)
            text.single(
                "bellhop_source_rejected_total", .counter,
                "Row changes and messages rejected from the app's log; the service's log gives the reasons.",
                value: rejected)
            text.single(
                "bellhop_source_slot_lost_total", .counter,
                "Number of times that the replication slot was lost and all streams resynced.", value: slotsLost)
            text.single(
                "bellhop_source_tables_read_total", .counter,
                "Tables with memberships that were read again, because their rows or the file had changed without a message in the log.",
                value: tablesRead)
            text.single(
                "bellhop_source_unsigned_total", .counter,
                "Messages ignored because neither bellhop.notify nor bellhop.publish wrote them.", value: unsigned)
        }
    }

    func add(_ number: Int, to counter: borrowing Atomic<Int>) { counter.add(number, ordering: .relaxed) }
}
