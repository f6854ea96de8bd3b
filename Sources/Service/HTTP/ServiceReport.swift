import Synchronization

/// How the running service is: whether it can serve, and its numbers.
final class ServiceReport: Sendable {
    private let registry: MetricsRegistry
    private let checks: [@Sendable () -> String?]
    private let isStopping = Atomic<Bool>(false)

    /// - Parameter checks: each says what stands in the way of serving; nil if nothing does. None may wait.
    init(_ registry: MetricsRegistry, checks: [@Sendable () -> String?]) {
        self.registry = registry
        self.checks = checks
    }

    func noteStopping() { isStopping.store(true, ordering: .relaxed) }

    /// Why the service cannot serve; empty when it can.
    func obstacles() -> [String] {
        let stopping = isStopping.load(ordering: .relaxed) ? ["The service is stopping."] : []
        return stopping + checks.compactMap { $0() }
    }

    func metrics() -> String { registry.page() }
}
