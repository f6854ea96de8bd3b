import Database
import Foundation
import MicroHTTP

/// How the running service is: whether it can serve, and its numbers.
///
/// `@unchecked Sendable`: the variables are only touched while `lock` is held.
final class ServiceReport: @unchecked Sendable {
    private let store: Store
    private let authenticator: Authenticator
    private let streams: StreamMetrics
    private let changes: ChangeMetrics
    /// What was asked at addresses that nothing serves.
    let unrouted = EndpointMetrics(method: "other", route: "none")
    /// Guards everything below.
    private let lock = NSLock()
    private var endpoints: [EndpointMetrics] = []
    private var isStopping = false
    private var isInContact: @Sendable () -> Bool = { true }
    private var serverSamples: @Sendable (inout MetricsText) -> Void = { _ in }

    init(store: Store, authenticator: Authenticator, streams: StreamMetrics, changes: ChangeMetrics) {
        self.store = store
        self.authenticator = authenticator
        self.streams = streams
        self.changes = changes
    }

    /// The server is made after the routes that ask for this.
    func include(_ samples: @escaping @Sendable (inout MetricsText) -> Void) {
        lock.withLock { serverSamples = samples }
    }

    func include(endpoints: [EndpointMetrics]) { lock.withLock { self.endpoints = endpoints } }

    func include(contact: @escaping @Sendable () -> Bool) { lock.withLock { isInContact = contact } }

    func noteStopping() { lock.withLock { isStopping = true } }

    /// Why the service cannot serve; empty when it can.
    func obstacles() -> [String] {
        var reasons: [String] = []
        if lock.withLock({ isStopping }) { reasons.append("The service is stopping.") }
        if !authenticator.isReady { reasons.append("The issuer's keys could not be fetched yet.") }
        if !isDatabaseReadable() { reasons.append("The database cannot be read.") }
        return reasons
    }

    /// A file is read; whether a server answers is known from the last time, since nobody may wait for it here.
    private func isDatabaseReadable() -> Bool {
        guard store.engine == .sqlite else { return lock.withLock { isInContact }() }
        return (try? store.read { try $0.exists("SELECT 1") }) != nil
    }

    func metrics() -> String {
        var text = MetricsText()
        let endpoints = lock.withLock { self.endpoints } + [unrouted]
        text.family("bellhop_http_requests_total", .counter, "Requests answered.")
        for endpoint in endpoints { endpoint.writeRequests(to: &text) }
        text.family("bellhop_http_response_bytes_total", .counter, "Bytes of the answers' bodies.")
        for endpoint in endpoints { endpoint.writeBytes(to: &text) }
        text.family("bellhop_http_request_duration_seconds", .histogram, "From a request's head to its answer.")
        for endpoint in endpoints { endpoint.writeDurations(to: &text) }
        for sample in streams.samples() {
            let kind = MetricsText.Kind(rawValue: sample.kind) ?? .gauge
            text.single(sample.name, kind, sample.help, Double(sample.value))
        }
        changes.write(to: &text)
        writeStore(to: &text)
        text.single(
            "bellhop_process_resident_memory_bytes", .gauge, "Memory of the process.",
            Double(ProcessMemory.residentBytes))
        text.single(
            "bellhop_process_allocated_bytes", .gauge, "Memory that is allocated and not freed: grows with a leak.",
            Double(ProcessMemory.allocatedBytes))
        lock.withLock { serverSamples }(&text)
        return text.text
    }

    private func writeStore(to text: inout MetricsText) {
        let store = self.store.metrics()
        text.single(
            "bellhop_database_size_bytes", .gauge, "Bytes on disk, the log included.", Double(self.store.sizeBytes))
        text.single("bellhop_database_commits_total", .counter, "Groups committed.", Double(store.batches))
        text.single("bellhop_database_writes_total", .counter, "Writes committed.", Double(store.jobs))
        text.single(
            "bellhop_database_writes_undone_total", .counter, "Writes undone by their error.", Double(store.jobsFailed))
        text.single(
            "bellhop_database_commits_failed_total", .counter, "Groups that were lost.", Double(store.batchesFailed))
        text.single(
            "bellhop_database_groups_retried_total", .counter, "Groups done again after a loss of the connection.",
            Double(store.batchesRetried))
        text.single(
            "bellhop_database_writes_refused_total", .counter, "Writes refused: queue full.", Double(store.refused))
        text.single("bellhop_database_queue_depth", .gauge, "Writes that wait.", Double(store.queueDepth))
        text.single("bellhop_database_wal_pages", .gauge, "Pages in the write-ahead log.", Double(store.walPages))
        text.single(
            "bellhop_database_checkpoints_failed_total", .counter, "Checkpoints that failed.",
            Double(store.checkpointsFailed))
        text.family("bellhop_database_commit_duration_seconds", .histogram, "Time of COMMIT, the fsync included.")
        text.histogram(
            "bellhop_database_commit_duration_seconds", bounds: StoreMetrics.commitSecondsBounds,
            counts: store.commitSecondsBuckets, sum: store.commitSeconds)
    }
}
