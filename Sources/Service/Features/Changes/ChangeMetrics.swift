import Synchronization

/// What became of the items of deliveries.
final class ChangeMetrics: Sendable {
    let accepted = Atomic<Int>(0)
    let duplicates = Atomic<Int>(0)
    let rejected = Atomic<Int>(0)

    init(_ registry: MetricsRegistry) {
        registry.register { [self] text in write(to: &text) }
    }

    private func write(to text: inout MetricsText) {
        text.family("bellhop_changes_total", .counter, "Items of deliveries of table changes.")
        let results = [
            ("accepted", accepted.load(ordering: .relaxed)), ("duplicate", duplicates.load(ordering: .relaxed)),
            ("rejected", rejected.load(ordering: .relaxed)),
        ]
        for (result, count) in results {
            text.sample("bellhop_changes_total", [("result", result)], Double(count))
        }
    }
}
