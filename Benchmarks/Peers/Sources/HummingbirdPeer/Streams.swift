import Foundation
import Hummingbird

/// All open SSE streams. An event is encoded once and its buffer is shared, as in Bellhop.
final class Streams: Sendable {
    private typealias Continuation = AsyncStream<ByteBuffer>.Continuation

    /// Guarded by `lock`.
    private nonisolated(unsafe) var continuations: [Int: Continuation] = [:]
    /// Guarded by `lock`.
    private nonisolated(unsafe) var nextId = 0
    /// Guards `continuations` and `nextId`.
    private let lock = NSLock()

    func open() -> Response {
        let (events, continuation) = AsyncStream.makeStream(
            of: ByteBuffer.self, bufferingPolicy: .bufferingNewest(1_024))
        let id = lock.withLock {
            nextId += 1
            continuations[nextId] = continuation
            return nextId
        }
        continuation.onTermination = { [weak self] _ in self?.close(id) }
        return Response(
            status: .ok,
            headers: [.contentType: "text/event-stream", .cacheControl: "no-store"],
            body: ResponseBody { writer in
                try await writer.write(ByteBuffer(string: "retry: 1000\n\n"))
                for await event in events {
                    try await writer.write(event)
                }
                try await writer.finish(nil)
            }
        )
    }

    func publish(_ bytes: ByteBuffer, count: Int) {
        let current = lock.withLock { Array(continuations.values) }
        for _ in 0..<count {
            for continuation in current {
                continuation.yield(bytes)
            }
        }
    }

    private func close(_ id: Int) {
        _ = lock.withLock { continuations.removeValue(forKey: id) }
    }
}
