import MicroHTTP

/// Starts the service's transport alone (module MicroHTTP: reactors, detached streams, shards), for the comparison with
/// a bare `send` loop: no tokens, no database, no routing by audience.
func startServer(port: Int, shards: Int) throws -> Server {
    var configuration = ServerConfiguration()
    configuration.host = "127.0.0.1"
    configuration.port = port
    configuration.reactors = 1
    configuration.shards = shards
    configuration.streamsMax = 25_000
    let streams = try StreamShards<Fanout>(configuration)
    let server = try Server(configuration: configuration, routes: routes(streams), streams: streams)
    streams.start { Fanout(shard: $0) }
    try server.start()
    return server
}

private func routes(_ streams: StreamShards<Fanout>) -> [Route] {
    [
        Route(.get, "/healthz") { _ in .response(Response(status: 200, headers: [], body: .bytes(Array("ok".utf8)))) },
        Route(.get, "/stream") { _ in
            .stream(StreamOpening(headers: [("Content-Type", "text/event-stream")], context: 0))
        },
        Route(.post, "/publish", bodyBytesMax: 65_536) { request in
            let bytes = SharedBytes(request.body)
            let count = number("count", of: request) ?? 1
            let publication = Publication(bytes: bytes, target: number("target", of: request))
            streams.post(contentsOf: Array(repeating: publication, count: count))
            return .response(Response(status: 202, headers: [], body: .none))
        },
    ]
}

private func number(_ name: String, of request: Request) -> Int? {
    request.queryItems.first { $0.name == name }?.value.flatMap { Int($0) }
}
