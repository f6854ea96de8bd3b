import Synchronization
import Threads

/// The metrics of all routes.
final class HTTPMetrics: Sendable {
    /// Requests to unknown addresses.
    let unrouted = EndpointMetrics(method: "other", route: "none")
    private let endpoints = Locked([EndpointMetrics]())

    init(_ registry: MetricsRegistry) {
        registry.register { [self] text in
            let all = endpoints.withLock { $0 } + [unrouted]
            text.family("bellhop_http_requests_total", .counter, "Answered requests.")
            for endpoint in all { endpoint.writeRequests(to: &text) }
            text.family("bellhop_http_response_bytes_total", .counter, "Bytes of response bodies.")
            for endpoint in all { endpoint.writeBytes(to: &text) }
            text.family(
                "bellhop_http_request_duration_seconds", .histogram,
                "Time from the end of a request's head to its response.")
            for endpoint in all { endpoint.writeDurations(to: &text) }
        }
    }

    /// Adds the metrics of one more route.
    func endpoint(_ method: String, _ route: String) -> EndpointMetrics {
        let endpoint = EndpointMetrics(method: method, route: route)
        endpoints.withLock { $0.append(endpoint) }
        return endpoint
    }
}

/// The metrics of one route. Counted without a lock, because all reactors write here at every request.
final class EndpointMetrics: Sendable {
    /// Upper bounds of the duration's buckets, in seconds.
    static let bounds: [Double] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5]
    static let statuses = [
        200, 201, 202, 204, 304, 400, 401, 403, 404, 405, 408, 409, 412, 413, 415, 422, 428, 429, 431, 500, 503,
    ]

    let method: String
    let route: String
    /// One counter for each of `statuses`, and one for all others.
    private let counts = Counters(count: statuses.count + 1)
    private let buckets = Counters(count: bounds.count + 1)
    private let nanoseconds = Atomic<UInt64>(0)
    private let bytes = Atomic<UInt64>(0)

    init(method: String, route: String) {
        self.method = method
        self.route = route
    }

    func count(status: Int, bytes bodyBytes: Int, nanoseconds duration: UInt64) {
        counts.add(1, at: Self.statuses.firstIndex(of: status) ?? Self.statuses.count)
        let seconds = Double(duration) / 1e9
        buckets.add(1, at: Self.bounds.firstIndex { seconds <= $0 } ?? Self.bounds.count)
        nanoseconds.wrappingAdd(duration, ordering: .relaxed)
        bytes.wrappingAdd(UInt64(bodyBytes), ordering: .relaxed)
    }

    func writeRequests(to text: inout MetricsText) {
        for (index, count) in counts.values.enumerated() where count > 0 {
            let status = index < Self.statuses.count ? "\(Self.statuses[index])" : "other"
            text.sample("bellhop_http_requests_total", labels + [("status", status)], Double(count))
        }
    }

    func writeDurations(to text: inout MetricsText) {
        let values = buckets.values
        guard values.contains(where: { $0 > 0 }) else { return }
        text.histogram(
            "bellhop_http_request_duration_seconds", labels, bounds: Self.bounds, counts: values.map(Int.init),
            sum: Double(nanoseconds.load(ordering: .relaxed)) / 1e9)
    }

    func writeBytes(to text: inout MetricsText) {
        let bytes = bytes.load(ordering: .relaxed)
        if bytes > 0 { text.sample("bellhop_http_response_bytes_total", labels, Double(bytes)) }
    }

    private var labels: [(String, String)] { [("method", method), ("route", route)] }
}

/// A fixed number of atomic counters.
///
/// `@unchecked Sendable`: the memory is allocated once and never replaced; every access is atomic.
private final class Counters: @unchecked Sendable {
    private let storage: UnsafeMutableBufferPointer<Atomic<UInt64>>

    init(count: Int) {
        storage = .allocate(capacity: count)
        for index in 0..<count { storage.initializeElement(at: index, to: Atomic(0)) }
    }

    deinit {
        storage.deinitialize()
        storage.deallocate()
    }

    func add(_ amount: UInt64, at index: Int) { storage[index].wrappingAdd(amount, ordering: .relaxed) }

    var values: [UInt64] { storage.indices.map { storage[$0].load(ordering: .relaxed) } }
}
