import Foundation

/// A part of a response that is read while it is still being sent.
enum Arrival: Sendable {
    case head(status: Int, headers: [String: String])
    case bytes(Data)
    case end
}

/// Why reading a response stopped early.
enum ExchangeFailure: Error, Sendable {
    case transport(String)
    /// More bytes arrived than the reader took. The connection is closed, and the lost events are replayed on
    /// resumption.
    case overflow
}

/// A bounded queue between the transport's thread and the one reader of a ``StreamingExchange``.
final class Receiver: Sendable {
    private struct State {
        var arrivals: [Arrival] = []
        var bufferedBytes = 0
        var outcome: Result<Void, any Error>?
        var reader: CheckedContinuation<Arrival, any Error>?
        var heardAt: Int?

        mutating func takeReader() -> CheckedContinuation<Arrival, any Error>? {
            defer { reader = nil }
            return reader
        }
    }

    private let bufferBytesMax: Int
    private let clock: ClientClock
    /// Continuations are resumed outside of its lock.
    private let state = Guarded(State())

    init(bufferBytesMax: Int, clock: ClientClock) {
        self.bufferBytesMax = bufferBytesMax
        self.clock = clock
    }

    func wait(_ continuation: CheckedContinuation<Arrival, any Error>) {
        let arrived: Result<Arrival, any Error>? = state.withLock { state in
            precondition(state.reader == nil, "a stream can have only one reader")
            // A cancelled reader receives nothing more, not even bytes that have already arrived.
            if !state.arrivals.isEmpty, state.outcome?.isCancellation != true {
                let arrival = state.arrivals.removeFirst()
                if case .bytes(let data) = arrival { state.bufferedBytes -= data.count }
                return .success(arrival)
            }
            if let outcome = state.outcome { return outcome.map { .end } }
            state.reader = continuation
            return nil
        }
        if let arrived { continuation.resume(with: arrived) }
    }

    var hasOverflowed: Bool {
        let outcome = state.withLock { $0.outcome }
        if case .failure(ExchangeFailure.overflow) = outcome { return true }
        return false
    }

    var heardAt: Int? { state.withLock { $0.heardAt } }

    func finish(_ result: Result<Void, any Error>) {
        let (waiting, outcome) = state.withLock { state in
            if state.outcome == nil || result.isCancellation { state.outcome = result }
            return (state.takeReader(), state.outcome ?? result)
        }
        waiting?.resume(with: outcome.map { .end })
    }

    func deliver(_ arrival: Arrival) {
        let waiting: CheckedContinuation<Arrival, any Error>? = state.withLock { state in
            guard state.outcome == nil else { return nil }
            state.heardAt = clock.now()
            if let waiting = state.takeReader() { return waiting }
            let waitingBytes = state.bufferedBytes
            if case .bytes(let data) = arrival { state.bufferedBytes += data.count }
            // The bytes up to here are complete: the reader receives them, then the failure. One piece always fits,
            // however small the bound, so that every connection makes progress.
            if waitingBytes > 0, state.bufferedBytes > bufferBytesMax {
                state.outcome = .failure(ExchangeFailure.overflow)
            } else {
                state.arrivals.append(arrival)
            }
            return nil
        }
        waiting?.resume(returning: arrival)
    }
}

extension Result where Success == Void {
    fileprivate var isCancellation: Bool {
        if case .failure(let error) = self { error is CancellationError } else { false }
    }
}
