import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What arrives on a response that is read while it is still being sent.
enum Arrival: Sendable {
    case head(status: Int, headers: [String: String])
    case bytes(Data)
    case end
}

/// Why reading a response stopped early.
enum ExchangeFailure: Error, Sendable {
    case transport(String)
    case silence
    /// More arrived than the reader took. The connection is given up, not the events: they are replayed on resumption.
    case overflow
}

/// One response, read piece by piece. Releasing it closes the connection.
final class StreamingExchange: Sendable {
    private let receiver: Receiver
    private let session: URLSession

    init(_ request: URLRequest, bufferBytesMax: Int) {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = nil
        configuration.httpCookieStorage = nil
        receiver = Receiver(bufferBytesMax: bufferBytesMax)
        session = URLSession(configuration: configuration, delegate: receiver, delegateQueue: nil)
        session.dataTask(with: request).resume()
    }

    deinit {
        session.invalidateAndCancel()
    }

    /// True once more arrived than the bound allows; what was taken in before is still read first.
    var hasOverflowed: Bool { receiver.hasOverflowed }

    /// The next piece. Throws ``ExchangeFailure/silence`` where none comes within the time, and `CancellationError`
    /// at once when the task is cancelled.
    func next(within timeout: Duration) async throws -> Arrival {
        let receiver = receiver
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                receiver.wait(continuation, within: timeout)
            }
        } onCancel: {
            receiver.finish(.failure(CancellationError()))
        }
    }
}

/// The URLSession delegate behind a ``StreamingExchange``: a bounded queue between the session's thread and one reader.
///
/// `@unchecked Sendable`: every mutable property is guarded by `lock`.
private final class Receiver: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    private let bufferBytesMax: Int
    /// Guards everything below. Continuations are resumed after it is released.
    private let lock = NSLock()
    private var arrivals: [Arrival] = []
    private var bufferedBytes = 0
    private var outcome: Result<Void, any Error>?
    private var reader: CheckedContinuation<Arrival, any Error>?
    private var readerDeadline = ContinuousClock.now
    /// One timer at most is under way, however many pieces arrive: it looks at the deadline of its moment.
    private var isTimerUnderWay = false

    init(bufferBytesMax: Int) {
        self.bufferBytesMax = bufferBytesMax
    }

    func wait(_ continuation: CheckedContinuation<Arrival, any Error>, within timeout: Duration) {
        lock.lock()
        precondition(reader == nil, "a streaming exchange has one reader")
        if !arrivals.isEmpty, !isCancelled {
            let arrival = arrivals.removeFirst()
            if case .bytes(let data) = arrival { bufferedBytes -= data.count }
            lock.unlock()
            return continuation.resume(returning: arrival)
        }
        if let outcome {
            lock.unlock()
            return continuation.resume(with: outcome.map { .end })
        }
        reader = continuation
        readerDeadline = .now + timeout
        let startsTimer = !isTimerUnderWay
        isTimerUnderWay = true
        lock.unlock()
        if startsTimer { startTimer(after: timeout) }
    }

    var hasOverflowed: Bool {
        lock.lock()
        defer { lock.unlock() }
        if case .failure(ExchangeFailure.overflow) = outcome { return true }
        return false
    }

    /// Cancelled readers get nothing more, not even what has arrived.
    private var isCancelled: Bool {
        if case .failure(let error) = outcome { error is CancellationError } else { false }
    }

    private func startTimer(after timeout: Duration) {
        let milliseconds =
            Int(timeout.components.seconds * 1000) + Int(timeout.components.attoseconds / 1_000_000_000_000_000)
        DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(max(1, milliseconds))) { [weak self] in
            self?.timerFired()
        }
    }

    private func timerFired() {
        lock.lock()
        isTimerUnderWay = false
        guard reader != nil else { return lock.unlock() }
        let remaining = readerDeadline - .now
        guard remaining <= .zero else {
            isTimerUnderWay = true
            lock.unlock()
            return startTimer(after: remaining)
        }
        lock.unlock()
        finish(.failure(ExchangeFailure.silence))
    }

    func finish(_ result: Result<Void, any Error>) {
        lock.lock()
        if outcome == nil || result.isCancellation { outcome = result }
        let waiting = reader
        reader = nil
        let final = outcome ?? result
        lock.unlock()
        waiting?.resume(with: final.map { .end })
    }

    private func deliver(_ arrival: Arrival) {
        lock.lock()
        guard outcome == nil else { return lock.unlock() }
        if let waiting = reader {
            reader = nil
            lock.unlock()
            return waiting.resume(returning: arrival)
        }
        let waitingBytes = bufferedBytes
        if case .bytes(let data) = arrival { bufferedBytes += data.count }
        // What was taken in is whole up to here: the reader gets it, then the failure. One piece always fits, however
        // small the bound, so that every connection brings the reader further.
        if waitingBytes > 0, bufferedBytes > bufferBytesMax {
            outcome = .failure(ExchangeFailure.overflow)
        } else {
            arrivals.append(arrival)
        }
        lock.unlock()
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        if let response = response as? HTTPURLResponse {
            deliver(.head(status: response.statusCode, headers: ServiceAnswer.headers(of: response)))
        }
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        deliver(.bytes(data))
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        finish(error.map { .failure(ExchangeFailure.transport($0.localizedDescription)) } ?? .success(()))
        session.finishTasksAndInvalidate()
    }
}

extension Result where Success == Void {
    fileprivate var isCancellation: Bool {
        if case .failure(let error) = self { error is CancellationError } else { false }
    }
}
