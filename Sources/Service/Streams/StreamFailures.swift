import Database
import Logging
import Threads
import Values

/// The counts of streams that could not be served, by reason, with rate-limited logging.
///
/// A database that is away fails thousands of streams at once. For each reason, one line is logged per ten seconds,
/// with the number since the previous one.
final class StreamFailures: Sendable {
    enum Reason: String, CaseIterable {
        /// The beginning of a stream, or the keys of its user, could not be read.
        case opening
        /// The events that a stream missed could not be read.
        case replay
        /// A ticket could not be redeemed.
        case ticket
        /// The queue of the workers is full.
        case congestion
        /// The wide scopes of all streams have no room for another.
        case keys
        /// An event of the log, or of another replica, is malformed.
        case event
        /// A request of another replica reached its stream after the requester had stopped waiting.
        case late
    }

    private static let pause = Duration.seconds(10)

    private struct Tally {
        var total = 0
        var unlogged = 0
        var nextLogAt = ContinuousClock.now
    }

    private let logger: Logger
    private let tallies = Locked([Reason: Tally]())
    private let omittedLineAt = Locked(ContinuousClock.now)

    init(logger: Logger, metrics: MetricsRegistry) {
        self.logger = logger
        metrics.register { [tallies] text in
            let totals = tallies.withLock { $0.mapValues(\.total) }
            text.family(
                "bellhop_stream_failures_total", .counter, "Streams or parts of streams that failed.",
                by: "reason", samples: Reason.allCases.map { ($0.rawValue, totals[$0] ?? 0) })
        }
    }

    /// Records that a caller's memberships grant more keys than fit a scope; logged once per ten seconds.
    func noteOmittedKeys(_ caller: Caller) {
        let now = ContinuousClock.now
        let isDue = omittedLineAt.withLock { lineAt in
            guard lineAt <= now else { return false }
            lineAt = now + Self.pause
            return true
        }
        guard isDue else { return }
        logger.warning(
            "A scope reached its limit, so some keys of memberships were left out.",
            metadata: [
                "tenant": "\(caller.tenant)", "user": "\(caller.userId.text)", "keys": "\(caller.scope.keys.count)",
                "omitted": "\(caller.omittedKeys)",
            ])
    }

    /// Records a failure.
    ///
    /// - Parameter error: The cause; nil if the reason is sufficient.
    func note(_ reason: Reason, _ error: (any Error)? = nil) {
        let now = ContinuousClock.now
        // Problems that StorageWatch reports are only counted.
        let isLogged = (error as? DatabaseError)?.storageTrouble == nil
        let count = tallies.withLock { tallies -> Int in
            var tally = tallies[reason] ?? Tally()
            defer { tallies[reason] = tally }
            tally.total += 1
            tally.unlogged += 1
            guard isLogged, tally.nextLogAt <= now else { return 0 }
            let count = tally.unlogged
            (tally.unlogged, tally.nextLogAt) = (0, now + Self.pause)
            return count
        }
        guard count > 0 else { return }
        let detail = (error as? Failure)?.detail ?? error.map { "\($0)" } ?? "the backlog is full"
        logger.warning(
            "Streams failed.",
            metadata: ["reason": "\(reason.rawValue)", "count": "\(count)", "error": "\(detail)"])
    }
}
