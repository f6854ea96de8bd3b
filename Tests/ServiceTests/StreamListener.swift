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
    /// Whether waiting for stale keys or counts ends the windows that collect them. A test about real windows says no.
    var endsWindows = true
    /// Everything received, in order.
    private(set) var received: [ServerSentEvent] = []
    private let events: AsyncThrowingStream<ServerSentEvent, any Error>
    private var iterator: AsyncThrowingStream<ServerSentEvent, any Error>.Iterator
    private let reading: Task<Void, Never>
    /// Events that a window holds back.
    private static let collected: Set = ["query:invalidate", "engagement_update"]

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
        let windows = name.map(Self.collected.contains) == true && endsWindows ? endWindows() : nil
        defer { deadline.cancel() }
        do {
            let event = try await take(name)
            windows?.cancel()
            await windows?.value
            return event
        } catch {
            windows?.cancel()
            await windows?.value
            throw error
        }
    }

    /// Ends the windows of the service until it is cancelled: a replica may receive a change later than its writer.
    private func endWindows() -> Task<Void, Never>? {
        opener.map { opener in
            Task {
                while !Task.isCancelled {
                    opener.service.endWindows()
                    try? await Task.sleep(for: .milliseconds(10))
                }
            }
        }
    }

    private func take(_ name: String?) async throws -> ServerSentEvent {
        while let event = try await iterator.next() {
            received.append(event)
            if name == nil || event.name == name { return event }
        }
        let names = received.map(\.name)
        throw TimedOut(description: "no \(name ?? "event") came; there were \(names)")
    }

    var lastEventID: String { received.last { !$0.id.isEmpty }?.id ?? "" }
}
