import Logging
import MicroHTTP
import Values

/// The servers with all routes, each with its metrics.
enum ServiceRoutes {
    /// - Returns: The server of the API, and the one of `/metrics` if that has an address of its own.
    static func servers(
        _ dispatcher: Dispatcher, _ features: [Feature], _ streams: StreamDependencies, metrics: HTTPMetrics,
        shards: StreamShards<StreamHub>
    ) throws -> (api: Server, metrics: Server?) {
        let settings = dispatcher.runner.settings
        var configuration = configuration(settings, metrics, logger: dispatcher.logger)
        func isElsewhere(_ endpoint: Endpoint) -> Bool {
            settings.metricsListen != nil && endpoint.pattern == MetaFeature.metricsPath
        }
        let endpoints = features.flatMap(\.endpoints)
        let api = try Server(
            configuration: configuration,
            routes: routes(of: endpoints.filter { !isElsewhere($0) }, dispatcher, metrics)
                + [stream(dispatcher, streams, metrics)],
            streams: shards)
        guard let address = settings.metricsListen else { return (api, nil) }
        (configuration.host, configuration.port) = (address.host, address.port)
        (configuration.reactors, configuration.connectionsMax) = (1, Limits.metricsConnectionsMax)
        return (
            api,
            try Server(
                configuration: configuration, routes: routes(of: endpoints.filter(isElsewhere), dispatcher, metrics))
        )
    }

    private static func routes(
        of endpoints: [Endpoint], _ dispatcher: Dispatcher, _ metrics: HTTPMetrics
    ) -> [Route] {
        endpoints.map { endpoint in
            let isServed = endpoint.refusal == nil
            return dispatcher.route(
                endpoint, isServed ? metrics.endpoint(endpoint.method.rawValue, endpoint.pattern) : metrics.unrouted)
        }
    }

    private static func stream(
        _ dispatcher: Dispatcher, _ streams: StreamDependencies, _ metrics: HTTPMetrics
    ) -> Route {
        let counts = metrics.endpoint("GET", StreamRoute.pattern)
        let streamRoute = StreamRoute(dependencies: streams)
        return Route(.get, StreamRoute.pattern) { request in
            _ = RequestTrace.of(request, endpoint: counts, by: .tokenOrCookie, tracer: dispatcher.tracer)
            return streamRoute.reply(to: request)
        }
    }

    /// Returns the configuration with the hooks for every answer.
    private static func configuration(
        _ settings: Settings, _ metrics: HTTPMetrics, logger: Logger
    ) -> ServerConfiguration {
        var configuration = settings.serverConfiguration
        let decoration = ResponseDecoration(settings: settings)
        configuration.decorate = { request, response in
            decoration.decorate(request, &response)
            Exits.note(&response, to: request)
        }
        configuration.problem = { decoration.problem($0) }
        // Decided once, so that requests that are not logged cost nothing.
        let level = settings.logRequests ? Logger.Level.info : .debug
        let isLogging = level >= logger.logLevel
        configuration.completed = { request, status, bytes, nanoseconds in
            let trace = RequestTrace.of(request)
            (trace.endpoint ?? metrics.unrouted).count(status: status, bytes: bytes, nanoseconds: nanoseconds)
            if let span = trace.span { end(span, request, trace, status: status, nanoseconds: nanoseconds) }
            guard isLogging else { return }
            logger.log(
                level: status < 500 ? level : max(level, .warning), "request",
                metadata: metadata(of: request, trace, status: status, bytes: bytes, nanoseconds: nanoseconds))
        }
        return configuration
    }

    /// Ends the span of a request, with attributes named by OpenTelemetry's conventions for HTTP servers.
    private static func end(
        _ span: OpenSpan, _ request: Request, _ trace: RequestTrace, status: Int, nanoseconds: UInt64
    ) {
        let route = trace.endpoint?.route ?? "none"
        span.end(
            "\(request.method.rawValue) \(route)", .server, isFailed: status >= 500,
            duration: .nanoseconds(Int64(clamping: nanoseconds)),
            attributes: [
                "http.request.method": .text(request.method.rawValue), "http.route": .text(route),
                "http.response.status_code": .number(status), "url.scheme": .text("http"),
                "url.path": .text(request.path), "bellhop.request.id": .text(trace.storedId),
                "bellhop.tenant": .text(trace.principal?.caller.tenant.text ?? ""),
            ])
    }

    /// Returns the fields of a request's log line. They never include the query, which may contain tickets. The path of
    /// an unknown address may be anything, even a token, so only its short words are included.
    private static func metadata(
        of request: Request, _ trace: RequestTrace, status: Int, bytes: Int, nanoseconds: UInt64
    ) -> Logger.Metadata {
        var metadata = trace.metadata
        metadata["method"] = "\(request.method.rawValue)"
        metadata["status"] = .stringConvertible(status)
        metadata["bytes"] = .stringConvertible(bytes)
        metadata["milliseconds"] = .stringConvertible(Double(nanoseconds / 1000) / 1000)
        metadata["path"] = trace.endpoint != nil ? "\(request.path)" : "\(words(of: request.path))"
        if let caller = trace.principal?.caller {
            metadata["userId"] = "\(caller.userId.text)"
            metadata["tenant"] = "\(caller.tenant.text)"
        }
        return metadata
    }
}

extension ServiceRoutes {
    /// Returns the beginning of a path, with `…` for each part that is no short word of lower-case letters.
    static func words(of path: String) -> String {
        let parts = path.split(separator: "/", maxSplits: 8, omittingEmptySubsequences: false)
        let shown = parts.prefix(8).map { part in
            let isWord = part.utf8.count <= 16 && part.utf8.allSatisfy { (97...122).contains($0) }
            return isWord || part == "v1" ? String(part) : "…"
        }
        return shown.joined(separator: "/") + (parts.count > 8 ? "/…" : "")
    }
}

extension Settings {
    /// The address, and the limits of the server.
    var serverConfiguration: ServerConfiguration {
        var configuration = ServerConfiguration()
        configuration.host = host
        configuration.port = port
        configuration.reactors = reactors
        configuration.shards = shards
        configuration.pinsShards = pinShards
        configuration.connectionsMax = connectionsMax
        configuration.connectionTimeoutSeconds = connectionTimeoutSeconds
        configuration.streamsMax = streamsMax
        // The head of a request must hold the token beside other headers.
        configuration.connectionMemoryBytes += max(0, jwtBytes - Limits.tokenBytes)
        configuration.heartbeatSeconds = heartbeatSeconds
        Exits.watch(&configuration)
        return configuration
    }
}
