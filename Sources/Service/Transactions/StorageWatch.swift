import Database
import Logging
import Threads

/// Says in the log what stands in the way of storing, and finds out by a small write when there is room again: where
/// nobody is sent to a service that is not ready, no request would.
///
/// It is a state of the whole service: a line for each request that meets it would fill what is left of a disk.
final class StorageWatch: Sendable {
    private struct State {
        /// Both by the clock's uptime.
        var loggedAt: Duration?
        var probedAt: Duration?
        /// A line says so that no other line has taken back.
        var isSaid = false
    }

    private static let linePause = Duration.seconds(60)
    private static let probePause = Duration.seconds(5)

    private let store: Store
    private let clock: Clock
    private let logger: Logger
    private let state = Locked(State())

    init(store: Store, clock: Clock, logger: Logger) {
        (self.store, self.clock, self.logger) = (store, clock, logger)
    }

    /// Comes round every second.
    func look() {
        let now = clock.uptime()
        if store.trouble?.code == .full, isDue(\.probedAt, now, after: Self.probePause) { try? store.probe() }
        guard let trouble = store.trouble else {
            let wasSaid = state.withLock { state in
                defer { state.isSaid = false }
                return state.isSaid
            }
            if wasSaid { logger.info("There is room again: what is sent is stored.") }
            return
        }
        guard isDue(\.loggedAt, now, after: Self.linePause) else { return }
        state.withLock { $0.isSaid = true }
        logger.error("Nothing can be stored.", metadata: ["reason": "\(trouble)"])
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
