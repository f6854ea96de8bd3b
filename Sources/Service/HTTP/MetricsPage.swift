import MicroHTTP
import Threads
import Values

/// The answer with all metrics, for `GET /metrics`.
///
/// Its text has a line for each counter of each route, so that it takes milliseconds to make, and no token is needed to
/// ask for it. It is therefore made at most once in `age`, and all requests meanwhile receive the same text. Its thread
/// makes nothing else: neither does a reactor stop for it, nor does it wait for workers that wait for a database.
final class MetricsPage: Sendable {
    typealias Completion = @Sendable (Result<Response, any Error>) -> Void

    private struct State {
        var answer: Response?
        /// When the making of `answer`, or of the text that is being made, began.
        var begun: Duration?
        var isMaking = false
        /// The requests that receive the text that is being made.
        var waiting: [Completion] = []
        /// The requests that came so late that the text that is being made is too old for them.
        var late: [Completion] = []
    }

    private let registry: MetricsRegistry
    private let age: Duration
    private let clock: Clock
    private let thread = WorkerPool(name: "metrics", threads: 1, queueMax: 1)
    private let state = Locked(State())

    /// - Parameter age: How long ago the making of a text may have begun. Zero makes a new one for each question.
    init(_ registry: MetricsRegistry, age: Duration, clock: Clock) {
        (self.registry, self.age, self.clock) = (registry, age, clock)
    }

    /// Delivers a text, at once or on the thread that makes it.
    func answer(_ completion: @escaping Completion) {
        let now = clock.uptime()
        let known: Response? = state.withLock { state in
            let isFresh = state.begun.map { now - $0 < age } ?? false
            if !state.isMaking, isFresh, let answer = state.answer { return answer }
            if state.isMaking, !isFresh { state.late.append(completion) } else { state.waiting.append(completion) }
            return nil
        }
        if let known { return completion(.success(known)) }
        makeIfAsked()
    }

    /// Completes the text that is being made. Call it when no more requests arrive.
    func stop() { thread.shutdown() }

    private func makeIfAsked() {
        let now = clock.uptime()
        let isNeeded = state.withLock { state in
            guard !state.isMaking else { return false }
            (state.waiting, state.late) = (state.waiting + state.late, [])
            guard !state.waiting.isEmpty else { return false }
            (state.isMaking, state.begun) = (true, now)
            return true
        }
        guard isNeeded, !thread.submit({ [self] in make() }) else { return }
        deliver(.failure(Failure.tooMany))
    }

    private func make() {
        deliver(
            .success(
                Response(
                    status: 200, headers: [("Content-Type", "text/plain; version=0.0.4; charset=utf-8")],
                    body: .bytes(Array(registry.page().utf8)))))
        makeIfAsked()
    }

    private func deliver(_ answer: Result<Response, any Error>) {
        let asking = state.withLock { state in
            (state.isMaking, state.answer) = (false, try? answer.get())
            defer { state.waiting = [] }
            return state.waiting
        }
        for completion in asking { completion(answer) }
    }
}
