import MicroHTTP

/// A message to the shards: bytes for every stream, or for the stream that was opened as number `target`.
struct Publication: Sendable {
    let bytes: SharedBytes
    let target: Int?
}

/// A minimal shard program: a list of its streams; every publication is sent to each of them.
final class Fanout: StreamProgram {
    typealias Message = Publication

    private let shard: StreamShard<Fanout>
    private var streams: [StreamHandle] = []
    private var positions: [StreamHandle: Int] = [:]

    init(shard: StreamShard<Fanout>) {
        self.shard = shard
    }

    func streamOpened(_ stream: StreamHandle, context: any Sendable) {
        positions[stream] = streams.count
        streams.append(stream)
    }

    func received(_ message: Publication) {
        if let target = message.target {
            if target < streams.count { shard.send(message.bytes, to: streams[target]) }
            return
        }
        for stream in streams {
            shard.send(message.bytes, to: stream)
        }
    }

    func streamClosed(_ stream: StreamHandle, reason: StreamCloseReason) {
        guard let position = positions.removeValue(forKey: stream) else { return }
        let last = streams.removeLast()
        guard last != stream else { return }
        streams[position] = last
        positions[last] = position
    }

    func streamOverflowed(_ stream: StreamHandle) -> OverflowAction { .close }

    func ticked(_ now: UInt64) {}

    func shardWillStop() {}
}
