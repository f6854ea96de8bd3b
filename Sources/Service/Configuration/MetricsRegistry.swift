import Threads

/// All metrics of a running service: made first, so that each part registers its own when it is made.
final class MetricsRegistry: Sendable {
    private let collectors = Locked([@Sendable (inout MetricsText) -> Void]())

    /// - Parameter collect: writes whole families, with their present values. Called for each scrape, on any thread.
    func register(_ collect: @escaping @Sendable (inout MetricsText) -> Void) {
        collectors.withLock { $0.append(collect) }
    }

    /// The page that Prometheus reads.
    func page() -> String {
        var text = MetricsText()
        for collect in collectors.withLock({ $0 }) { collect(&text) }
        return text.text
    }
}
