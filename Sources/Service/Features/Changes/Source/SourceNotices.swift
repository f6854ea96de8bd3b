import Logging
import Threads

/// A rate limiter for recurring log messages, which also logs how often each occurred.
final class SourceNotices: Sendable {
    private struct State {
        var shownAt: [String: ContinuousClock.Instant] = [:]
        var rejected = Tally()
        var unsigned = Tally()
    }

    /// The number of occurrences since the last message about them.
    private struct Tally {
        private var count = 0
        private var shownAt: ContinuousClock.Instant?

        /// Counts occurrences. Returns the number to log, or nil if the last message is too recent.
        mutating func add(_ number: Int) -> Int? {
            count += number
            let now = ContinuousClock.now
            if let shownAt, now - shownAt < SourceLimits.noticePause { return nil }
            shownAt = now
            defer { count = 0 }
            return count
        }
    }

    /// Different problems that are distinguished. A text that changes each time would fill the memory.
    private static let problemsMax = 32

    private let logger: Logger
    private let state = Locked(State())

    init(_ logger: Logger) { self.logger = logger }

    func info(_ message: Logger.Message, _ metadata: Logger.Metadata = [:]) { logger.info(message, metadata: metadata) }

    func error(_ message: Logger.Message, _ metadata: Logger.Metadata = [:]) {
        logger.error(message, metadata: metadata)
    }

    /// Logs a problem. A new problem is logged at once.
    func trouble(_ reason: String) {
        warn("The app's log cannot be read. Retrying.", reason)
    }

    /// Logs that rows which the app writes now are not received.
    func noteMissedRows(_ reason: String) {
        warn("Rows of the app are not being published. All streams resync when they are published again.", reason)
    }

    /// Logs that rows with memberships could not be read.
    func noteUnreadRows(_ reason: String) {
        warn("Rows that define memberships could not be read. They give no keys.", reason)
    }

    /// Logs that another Bellhop reads the slot. If both took the slot in turn, each would lose the data that the other
    /// reads.
    func noteForeignReader(of slot: String) {
        warn(
            "Another Bellhop with a different database reads this replication slot. Set sourceSlot to another name.",
            "slot \(slot)")
    }

    private func warn(_ message: Logger.Message, _ reason: String) {
        let now = ContinuousClock.now
        let isDue = state.withLock { state in
            if let last = state.shownAt[reason], now - last < SourceLimits.noticePause { return false }
            if state.shownAt.count >= Self.problemsMax { state.shownAt = [:] }
            state.shownAt[reason] = now
            return true
        }
        if isDue {
            logger.warning(message, metadata: ["reason": "\(reason)"])
        }
    }

    /// Makes the next problem count as new, because the log is being read again.
    func resetProblems() { state.withLock { $0.shownAt = [:] } }

    /// Logs that events of the app's transactions are ignored.
    func ignoresEvents(_ reason: String) {
        warn("Events from bellhop.notify and bellhop.publish are ignored.", reason)
    }

    /// Counts and logs a message that neither function wrote.
    func unsigned() {
        guard let count = state.withLock({ $0.unsigned.add(1) }) else { return }
        logger.warning(
            "Messages in the app's log were ignored: neither bellhop.notify nor bellhop.publish wrote them.",
            metadata: ["count": "\(count)"])
    }

    func rejected(_ reasons: [String]) {
        guard let first = reasons.first, let count = state.withLock({ $0.rejected.add(reasons.count) }) else { return }
        logger.warning(
            "Changes from the app's log were rejected.",
            metadata: ["count": "\(count)", "first": "\(first.prefix(500))"])
    }
}
