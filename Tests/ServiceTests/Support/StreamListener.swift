import BellhopClient
import TestSupport

/// One open stream, read as its events arrive.
///
/// `@unchecked Sendable`: only the task of the test uses it.
final class StreamListener: @unchecked Sendable {
    struct TimedOut: Error, CustomStringConvertible {
        let description: String
    }

    var ready = ServerSentEvent(id: "", name: "", data: "")
    /// The service and the identity with which the stream was opened; nil for a stream that a test opened by hand.
    var opener: (service: TestService, identity: TestService.Identity)?
    /// Whether waiting for invalidations or counts ends the windows that collect them. Tests of real windows set it
    /// to false.
    var endsWindows = true
    /// All received events, in order.
    private(set) var received: [ServerSentEvent] = []
    private let events: AsyncThrowingStream<ServerSentEvent, any Error>
    private var iterator: AsyncThrowingStream<ServerSentEvent, any Error>.Iterator
    private let reading: Task<Void, Never>
    /// Events that a window delays.
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

    /// Returns the next event with this name, or of any name. Skipped events stay in `received`.
    ///
    /// - Parameters:
    ///   - limit: The deadline only bounds a failure.
    ///   - clock: A clock that advances by a second again and again meanwhile. Without it, an event that the service
    ///     holds back for some time never comes if a replica receives its cause after the test advanced the clock.
    @discardableResult
    func next(
        _ name: String? = nil, within limit: Duration = patience, advancing clock: ManualClock? = nil
    ) async throws -> ServerSentEvent {
        let deadline = Task { [reading] in
            try await Task.sleep(for: limit)
            reading.cancel()
        }
        let windows = name.map(Self.collected.contains) == true && endsWindows ? opener?.service : nil
        let steps = Task {
            while !Task.isCancelled, clock != nil || windows != nil {
                clock?.advance(seconds: 1)
                windows?.endWindows()
                try? await Task.sleep(for: .milliseconds(10))
            }
        }
        defer { deadline.cancel() }
        do {
            let event = try await take(name)
            steps.cancel()
            await steps.value
            return event
        } catch {
            steps.cancel()
            await steps.value
            throw error
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
