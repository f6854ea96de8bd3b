import Logging
import MicroHTTP
import Values

/// The server with all routes, each with its metrics.
enum Routing {
    static func server(
        _ configuration: ServerConfiguration, _ dispatcher: Dispatcher, _ features: [Feature],
        _ streams: StreamDependencies, _ metrics: HTTPMetrics, _ shards: StreamShards<StreamHub>, logger: Logger
    ) throws -> Server {
        try Server(
            configuration: decorated(configuration, dispatcher.runner.settings, metrics, logger: logger),
            routes: routes(of: features, dispatcher, streams, metrics), streams: shards)
    }

    private static func routes(
        of features: [Feature], _ dispatcher: Dispatcher, _ streams: StreamDependencies, _ metrics: HTTPMetrics
    ) -> [Route] {
        let routes = features.flatMap(\.endpoints).map { endpoint in
            dispatcher.route(endpoint, metrics.endpoint(endpoint.method.rawValue, endpoint.pattern))
        }
        let counts = metrics.endpoint("GET", StreamRoute.pattern)
        let streamRoute = StreamRoute(dependencies: streams)
        let stream = Route(.get, StreamRoute.pattern) { request in
            _ = RequestTrace.of(request, endpoint: counts, by: .tokenOrCookie)
            return streamRoute.reply(to: request)
        }
        return routes + [stream]
    }

    /// The configuration with what is done to every answer.
    private static func decorated(
        _ configuration: ServerConfiguration, _ settings: Settings, _ metrics: HTTPMetrics, logger: Logger
    ) -> ServerConfiguration {
        var configuration = configuration
        let decoration = ResponseDecoration(settings: settings)
        configuration.decorate = { decoration.decorate($0, &$1) }
        configuration.problem = { decoration.problem($0) }
        let isLogging = settings.logRequests
        configuration.completed = { request, status, bytes, nanoseconds in
            let trace = RequestTrace.of(request)
            (trace.endpoint ?? metrics.unrouted).count(status: status, bytes: bytes, nanoseconds: nanoseconds)
            guard isLogging else { return }
            logger.info(
                "request",
                metadata: [
                    "requestId": "\(trace.id)", "method": "\(request.method.rawValue)", "path": "\(request.path)",
                    "status": "\(status)", "bytes": "\(bytes)", "microseconds": "\(nanoseconds / 1000)",
                    "userId": "\(trace.principal?.caller.userId.text ?? "-")",
                    "tenant": "\(trace.principal?.caller.tenant.text ?? "-")",
                ])
        }
        return configuration
    }
}

extension Settings {
    /// How the server listens, and how many it serves.
    var serverConfiguration: ServerConfiguration {
        var configuration = ServerConfiguration()
        configuration.host = host
        configuration.port = port
        configuration.reactors = reactors
        configuration.shards = shards
        configuration.pinsShards = pinsShards
        configuration.connectionsMax = connectionsMax
        configuration.connectionTimeoutSeconds = connectionTimeoutSeconds
        configuration.streamsMax = streamsMax
        configuration.heartbeatSeconds = heartbeatSeconds
        return configuration
    }
}
