import Database
import Logging
import Threads

/// Logs problems of the storage, and checks with a small write whether there is room again. A service that is not ready
/// receives no requests that could find out.
///
/// The problem is a state of the whole service. A log line for each affected request would fill the rest of the disk.
final class StorageWatch: Sendable {
    private struct State {
        /// Times by the clock's uptime.
        var loggedAt: Duration?
        var probedAt: Duration?
        /// Whether a problem was logged and its end was not.
        var isLogged = false
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
        guard let trouble = store.trouble else {
            let wasLogged = state.withLock { state in
                defer { state.isLogged = false }
                return state.isLogged
            }
            if wasLogged { logger.info("There is free space again: writes succeed.") }
            return
        }
        guard isDue(\.loggedAt, now, after: Self.linePause) else { return }
        state.withLock { $0.isLogged = true }
        logger.error("Writes are failing.", metadata: ["reason": "\(trouble)"])
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
