import Logging
import Synchronization
import Threads
import Values

/// Why streams could not be served, counted by reason, and logged once where they end.
///
/// A database that is away fails thousands of streams at once: of each reason one line is logged in ten seconds, and says
/// how many there were since the one before it.
final class StreamFailures: Sendable {
    enum Reason: String, CaseIterable {
        /// The beginning of a stream, or the keys of its user, could not be read.
        case opening
        /// What a stream missed could not be read.
        case replay
        /// A ticket could not be redeemed.
        case ticket
        /// Too much waits for a worker.
        case congestion
        /// An event of the log, or of another replica, cannot be understood.
        case event
    }

    private static let pause = Duration.seconds(10)

    private struct Unlogged {
        var count = 0
        var nextLineAt = ContinuousClock.now
    }

    private let logger: Logger
    private let counts: [Reason: Counter]
    private let unlogged = Locked([Reason: Unlogged]())

    private final class Counter: Sendable {
        let value = Atomic<Int>(0)
    }

    init(logger: Logger, metrics: MetricsRegistry) {
        self.logger = logger
        let counts = Dictionary(uniqueKeysWithValues: Reason.allCases.map { ($0, Counter()) })
        self.counts = counts
        metrics.register { text in
            text.family(
                "bellhop_stream_failures_total", .counter, "Streams, or parts of them, that could not be served.")
            for reason in Reason.allCases {
                let count = counts[reason]?.value.load(ordering: .relaxed) ?? 0
                text.sample("bellhop_stream_failures_total", [("reason", reason.rawValue)], Double(count))
            }
        }
    }

    /// - Parameter error: what stood in the way; nil where the reason says it all.
    func note(_ reason: Reason, _ error: (any Error)? = nil) {
        counts[reason]?.value.add(1, ordering: .relaxed)
        let now = ContinuousClock.now
        let count = unlogged.withLock { unlogged -> Int in
            unlogged[reason, default: Unlogged()].count += 1
            guard let found = unlogged[reason], found.nextLineAt <= now else { return 0 }
            unlogged[reason] = Unlogged(count: 0, nextLineAt: now + Self.pause)
            return found.count
        }
        guard count > 0 else { return }
        let detail = (error as? Failure)?.detail ?? error.map { "\($0)" } ?? "too much waits"
        logger.warning(
            "Streams could not be served.",
            metadata: ["reason": "\(reason.rawValue)", "count": "\(count)", "error": "\(detail)"])
    }
}
