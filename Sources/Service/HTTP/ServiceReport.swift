import Synchronization

/// The state of the running service: whether it can serve, and its metrics.
final class ServiceReport: Sendable {
    let metrics: MetricsPage
    private let checks: [@Sendable () -> String?]
    private let isStopping = Atomic<Bool>(false)

    /// - Parameter checks: Each returns an obstacle to serving, or nil, and must not block.
    init(_ metrics: MetricsPage, checks: [@Sendable () -> String?]) {
        self.metrics = metrics
        self.checks = checks
    }

    func noteStopping() { isStopping.store(true, ordering: .relaxed) }

    /// Returns the reasons why the service cannot serve; empty if it can.
    func obstacles() -> [String] {
        let stopping = isStopping.load(ordering: .relaxed) ? ["The service is stopping."] : []
        return stopping + checks.compactMap { $0() }
    }
}
