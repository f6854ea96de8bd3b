import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One response, read piece by piece. Releasing it closes the connection.
final class StreamingExchange: Sendable {
    private let receiver: Receiver
    private let transfer: StreamTransfer

    init(_ request: URLRequest, bufferBytesMax: Int, clock: ClientClock = .system) {
        receiver = Receiver(bufferBytesMax: bufferBytesMax, clock: clock)
        transfer = StreamTransfer(request, receiver)
    }

    deinit {
        transfer.cancel()
    }

    /// Whether more bytes arrived than the bound allows; bytes accepted before are still read first.
    var hasOverflowed: Bool { receiver.hasOverflowed }

    /// The time of the last arrival, by the clock; nil before the head.
    var heardAt: Int? { receiver.heardAt }

    /// Returns the next piece. Throws `CancellationError` at once if the task is cancelled.
    func next() async throws -> Arrival {
        let receiver = receiver
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                receiver.wait(continuation)
            }
        } onCancel: {
            receiver.finish(.failure(CancellationError()))
        }
    }
}
