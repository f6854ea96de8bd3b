import BellhopClient
import TestSupport

/// One open stream, read as it comes.
///
/// `@unchecked Sendable`: a test's task is the only one that asks.
final class StreamListener: @unchecked Sendable {
    struct TimedOut: Error, CustomStringConvertible {
        let description: String
    }

    var ready = ServerSentEvent(id: "", name: "", data: "")
    /// Whose stream it is, and the service that it was opened at; nil for a stream that was opened by hand.
    var opener: (service: TestService, identity: TestService.Identity)?
    /// Everything received, in order.
    private(set) var received: [ServerSentEvent] = []
    private let events: AsyncThrowingStream<ServerSentEvent, any Error>
    private var iterator: AsyncThrowingStream<ServerSentEvent, any Error>.Iterator
    private let reading: Task<Void, Never>

    init(_ stream: BellhopStream) {
        let (events, continuation) = AsyncThrowingStream<ServerSentEvent, any Error>.makeStream()
        self.events = events
        iterator = events.makeAsyncIterator()
        reading = Task {
            do {
                for try await event in stream { continuation.yield(event) }
                continuation.finish()
            } catch {
                continuation.finish(throwing: error)
            }
        }
    }

    deinit { reading.cancel() }

    func close() { reading.cancel() }

    /// The next event of a name; others are passed over and stay in `received`. The deadline only bounds a failure.
    @discardableResult
    func next(_ name: String? = nil, within limit: Duration = patience) async throws -> ServerSentEvent {
        let deadline = Task { [reading] in
            try await Task.sleep(for: limit)
            reading.cancel()
        }
        defer { deadline.cancel() }
        while let event = try await iterator.next() {
            received.append(event)
            if name == nil || event.name == name { return event }
        }
        let names = received.map(\.name)
        throw TimedOut(description: "no \(name ?? "event") came; there were \(names)")
    }

    var lastEventID: String { received.last { !$0.id.isEmpty }?.id ?? "" }
}
