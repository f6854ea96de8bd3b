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

    /// True once more arrived than the bound allows; what was taken in before is still read first.
    var hasOverflowed: Bool { receiver.hasOverflowed }

    /// When something has arrived last, by the clock; nil before the head.
    var heardAt: Int? { receiver.heardAt }

    /// The next piece. Throws `CancellationError` at once when the task is cancelled.
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
