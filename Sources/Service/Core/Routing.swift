import Domain
import Foundation
import Logging
import MicroHTTP

/// All routes of the service with their metrics: what the server is made from.
struct Routing: Sendable {
    let routes: [Route]
    private let report: ServiceReport

    init(dispatcher: Dispatcher, parts: ServingParts) {
        let endpoints = Catalog.features(servedBy: parts).flatMap(\.endpoints)
        var metrics: [EndpointMetrics] = []
        var routes = endpoints.map { endpoint in
            let counts = EndpointMetrics(method: endpoint.method.rawValue, route: endpoint.pattern)
            metrics.append(counts)
            return dispatcher.route(endpoint, counts)
        }
        let stream = EndpointMetrics(method: "GET", route: StreamRoute.pattern)
        metrics.append(stream)
        let streamRoute = StreamRoute(parts.streams)
        routes.append(
            Route(.get, StreamRoute.pattern) { request in
                _ = RequestTrace.of(request, endpoint: stream)
                return streamRoute.reply(to: request)
            })
        // The report is itself asked by routes: it is given their metrics once they exist.
        parts.report.include(endpoints: metrics)
        self.routes = routes
        report = parts.report
    }

    func configuration(_ settings: Settings, logger: Logger) -> ServerConfiguration {
        var configuration = ServerConfiguration()
        configuration.host = settings.host
        configuration.port = settings.port
        configuration.reactors = settings.reactors
        configuration.shards = settings.shards
        configuration.pinsShards = settings.pinsShards
        configuration.connectionsMax = settings.connectionsMax
        configuration.connectionTimeoutSeconds = settings.connectionTimeoutSeconds
        configuration.streamsMax = settings.streamsMax
        configuration.heartbeatSeconds = settings.heartbeatSeconds
        let decoration = ResponseDecoration(settings: settings)
        configuration.decorate = { decoration.decorate($0, &$1) }
        configuration.problem = { decoration.problem($0) }
        let isLogging = settings.logRequests
        let unrouted = report.unrouted
        configuration.completed = { request, status, bytes, nanoseconds in
            let trace = RequestTrace.of(request)
            (trace.endpoint ?? unrouted).count(status: status, bytes: bytes, nanoseconds: nanoseconds)
            guard isLogging else { return }
            logger.info(
                "request",
                metadata: [
                    "requestId": "\(trace.id)", "method": "\(request.method.rawValue)", "path": "\(request.path)",
                    "status": "\(status)", "bytes": "\(bytes)", "microseconds": "\(nanoseconds / 1000)",
                    "userId": "\(trace.principal?.caller.userId.text ?? "-")",
                    "tenant": "\(trace.principal?.caller.tenant ?? "-")",
                ])
        }
        return configuration
    }
}

extension Server {
    func write(to text: inout MetricsText) {
        text.single("bellhop_http_requests_read_total", .counter, "Requests whose head was read.", Double(requestCount))
        text.single("bellhop_streams_max", .gauge, "Streams that may be open.", Double(streamsMax))
        let counters = shards.map(\.counters)
        func sum(_ value: (StreamCounters) -> Int) -> Double { Double(counters.reduce(0) { $0 + value($1) }) }
        text.single("bellhop_stream_sends_total", .counter, "Calls of the kernel that sent to streams.", sum(\.sends))
        text.single("bellhop_stream_sent_bytes_total", .counter, "Bytes sent to streams.", sum(\.sentBytes))
        text.single("bellhop_stream_stalls_total", .counter, "Times a stream's socket was full.", sum(\.stalls))
        text.single("bellhop_stream_collapsed_total", .counter, "States replaced by newer ones.", sum(\.collapsed))
        text.single("bellhop_stream_inbox_depth", .gauge, "Messages that wait for shards.", sum(\.inboxDepth))
    }
}
