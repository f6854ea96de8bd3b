import Database
import Logging
import Threads

/// Logs problems of the storage, and checks with a small write whether they are over. A service that is not ready
/// receives no requests that could find out.
///
/// The problem is a state of the whole service. A log line for each affected request would fill the rest of the disk.
final class StorageWatch: Sendable {
    private struct State {
        /// Times by the clock's uptime.
        var loggedAt: Duration?
        var probedAt: Duration?
        /// The problem that was logged while its end was not.
        var logged: DatabaseError.Code?
        /// Whether a write that changes nothing is on its way.
        var isTrying = false
    }

    private static let linePause = Duration.seconds(60)
    private static let probePause = Duration.seconds(5)

    private let store: DatabaseStore
    private let clock: Clock
    private let logger: Logger
    private let state = Locked(State())

    init(store: DatabaseStore, clock: Clock, logger: Logger) {
        (self.store, self.clock, self.logger) = (store, clock, logger)
    }

    /// Called every second.
    func check() {
        let now = clock.uptime()
        if store.trouble?.code == .full, isDue(\.probedAt, now, after: Self.probePause) { try? store.probe() }
        if store.isInDoubt { tryToWrite() }
        guard let trouble = store.trouble else {
            let logged = state.withLock { state in
                defer { state.logged = nil }
                return state.logged
            }
            switch logged {
            case nil: break
            case .full: logger.info("There is free space again: writes succeed.")
            default: logger.info("Writes succeed again.")
            }
            return
        }
        guard isDue(\.loggedAt, now, after: Self.linePause) else { return }
        state.withLock { $0.logged = trouble.code }
        logger.error("Writes are failing.", metadata: ["reason": "\(trouble)"])
    }

    /// Writes without waiting, because a write may wait for a lock for as long as a statement may take.
    private func tryToWrite() {
        let isFirst = state.withLock { state in
            defer { state.isTrying = true }
            return !state.isTrying
        }
        guard isFirst else { return }
        do throws(StoreBusy) {
            try store.write(
                { try EventLog.touch(in: $0) },
                completion: { [weak self] (outcome: Result<Void, any Error>) in self?.endTrial(outcome) })
        } catch {
            // The writes in the queue show it as well.
            state.withLock { $0.isTrying = false }
        }
    }

    private func endTrial(_ outcome: Result<Void, any Error>) {
        if case .failure = outcome { store.noteFailedTrial() }
        state.withLock { $0.isTrying = false }
    }

    private func isDue(
        _ last: WritableKeyPath<State, Duration?>, _ now: Duration, after pause: Duration
    ) -> Bool {
        state.withLock { state in
            if let last = state[keyPath: last], now < last + pause { return false }
            state[keyPath: last] = now
            return true
        }
    }
}
