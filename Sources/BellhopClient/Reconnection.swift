/// When a lost stream is tried again, as pure arithmetic (`CUT N-1`, `VIS Q2`).
///
/// The waits are 1, 2, 4, 8, 16, 30, 30 … seconds, each moved by up to a fifth so that a thousand clients of one
/// restarted server do not come back in the same instant; a connection starts the count again.
public struct Reconnection: Sendable, Hashable {
    /// The limits of a ``Reconnection``.
    public struct Policy: Sendable, Hashable {
        /// Tries that may fail in a row before the stream gives up.
        public var triesMax: Int
        /// The first wait, until the stream's `retry:` names another.
        public var firstDelayMilliseconds: Int
        public var delayMillisecondsMax: Int

        public init(triesMax: Int = 10, firstDelayMilliseconds: Int = 1000, delayMillisecondsMax: Int = 30_000) {
            self.triesMax = triesMax
            self.firstDelayMilliseconds = firstDelayMilliseconds
            self.delayMillisecondsMax = delayMillisecondsMax
        }
    }

    public let policy: Policy
    /// Tries that failed since the last connection.
    public private(set) var failures = 0
    /// The stream's own `retry:`, which takes the place of the first delay.
    public var retryMilliseconds: Int?

    public init(_ policy: Policy = Policy()) {
        self.policy = policy
    }

    public mutating func connected() {
        failures = 0
    }

    /// The wait before the next try, in milliseconds; nil where there were as many tries as the policy allows.
    ///
    /// - Parameters:
    ///   - serverMilliseconds: what the server asked for (`Retry-After`, or `retryAfterMs` of `stream:closing`): a
    ///     lower bound, because coming earlier would only be refused again.
    ///   - jitter: between 0 and 1.
    public mutating func delayAfterFailure(serverMilliseconds: Int?, jitter: Double) -> Int? {
        failures += 1
        guard failures <= policy.triesMax else { return nil }
        let doublings = min(failures - 1, 20)
        let first = min(retryMilliseconds ?? policy.firstDelayMilliseconds, policy.delayMillisecondsMax)
        let base = min(first << doublings, policy.delayMillisecondsMax)
        let moved = Double(base) * (0.8 + 0.4 * min(max(jitter, 0), 1))
        let own = min(Int(moved), policy.delayMillisecondsMax)
        return max(own, min(serverMilliseconds ?? 0, Reconnection.serverDelayMillisecondsMax))
    }

    /// An hour: a server that asks for more is misconfigured, and a client that obeyed would look dead.
    public static let serverDelayMillisecondsMax = 3_600_000
}
