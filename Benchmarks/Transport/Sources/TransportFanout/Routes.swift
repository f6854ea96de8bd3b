import Foundation
import MicroHTTP

/// The server is made after its routes, and they publish to its shards: they meet here.
final class ShardList: @unchecked Sendable {
    /// Guards `shards`.
    private let lock = NSLock()
    /// Guarded by `lock`.
    private var shards: [StreamShard<Fanout>] = []

    func append(_ shard: StreamShard<Fanout>) {
        lock.withLock { shards.append(shard) }
    }

    func publish(_ publications: [Publication]) {
        for shard in lock.withLock({ shards }) {
            shard.post(contentsOf: publications)
        }
    }
}

func makeServer(port: Int, shards: Int) throws -> Server<Fanout> {
    let list = ShardList()
    var configuration = ServerConfiguration()
    configuration.host = "127.0.0.1"
    configuration.port = port
    configuration.reactors = 1
    configuration.shards = shards
    configuration.streamsMax = 25_000
    return try Server(configuration: configuration, routes: routes(list)) { _, shard in
        list.append(shard)
        return Fanout(shard: shard)
    }
}

private func routes(_ list: ShardList) -> [Route] {
    [
        Route(.get, "/healthz") { _ in .response(Response(status: 200, headers: [], body: .bytes(Array("ok".utf8)))) },
        Route(.get, "/stream") { _ in
            .stream(StreamOpening(headers: [("Content-Type", "text/event-stream")], context: 0, shard: nil))
        },
        Route(.post, "/publish", bodyBytesMax: 65_536) { request in
            let bytes = SharedBytes(request.body)
            let count = number("count", of: request) ?? 1
            let publication = Publication(bytes: bytes, target: number("target", of: request))
            list.publish(Array(repeating: publication, count: count))
            return .response(Response(status: 202, headers: [], body: .none))
        },
    ]
}

private func number(_ name: String, of request: Request) -> Int? {
    request.queryItems.first { $0.name == name }?.value.flatMap { Int($0) }
}
