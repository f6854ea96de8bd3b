import Synchronization

/// The state of the running service: whether it can serve, and its metrics.
final class ServiceReport: Sendable {
    private let registry: MetricsRegistry
    private let checks: [@Sendable () -> String?]
    private let isStopping = Atomic<Bool>(false)

    /// - Parameter checks: Each returns an obstacle to serving, or nil, and must not block.
    init(_ registry: MetricsRegistry, checks: [@Sendable () -> String?]) {
        self.registry = registry
        self.checks = checks
    }

    func noteStopping() { isStopping.store(true, ordering: .relaxed) }

    /// Returns the reasons why the service cannot serve; empty if it can.
    func obstacles() -> [String] {
        let stopping = isStopping.load(ordering: .relaxed) ? ["The service is stopping."] : []
        return stopping + checks.compactMap { $0() }
    }

    func metrics() -> String { registry.page() }
}
