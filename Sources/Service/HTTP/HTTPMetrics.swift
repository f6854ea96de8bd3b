import Threads

/// What all routes have answered.
final class HTTPMetrics: Sendable {
    /// What was asked at addresses that nothing serves.
    let unrouted = EndpointMetrics(method: "other", route: "none")
    private let endpoints = Locked([EndpointMetrics]())

    init(_ registry: MetricsRegistry) {
        registry.register { [self] text in
            let all = endpoints.withLock { $0 } + [unrouted]
            text.family("bellhop_http_requests_total", .counter, "Requests answered.")
            for endpoint in all { endpoint.writeRequests(to: &text) }
            text.family("bellhop_http_response_bytes_total", .counter, "Bytes of the answers' bodies.")
            for endpoint in all { endpoint.writeBytes(to: &text) }
            text.family("bellhop_http_request_duration_seconds", .histogram, "From a request's head to its answer.")
            for endpoint in all { endpoint.writeDurations(to: &text) }
        }
    }

    /// The metrics of one more route.
    func endpoint(_ method: String, _ route: String) -> EndpointMetrics {
        let endpoint = EndpointMetrics(method: method, route: route)
        endpoints.withLock { $0.append(endpoint) }
        return endpoint
    }
}
