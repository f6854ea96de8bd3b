/// The lifetime of the token that a stream was opened with: the client is warned before the end, then the stream ends.
///
/// A pure state machine: the owner of the clock calls ``step(at:)``. All moments are microseconds since 1970.
public struct TokenLifetime: Sendable, Hashable {
    public enum Step: Sendable, Hashable {
        /// Warn the client that its token is about to expire, so that it can renew the stream in place.
        case warn
        /// The token has expired: send the reason, and close.
        case end
    }

    /// How long before the end the client is warned: enough to fetch a token over a bad mobile network, with one retry.
    static let warningMicroseconds: Int64 = 30_000_000

    public private(set) var expiresAt: Int64
    private var isWarned: Bool

    public init(expiresAt: Int64) {
        self.expiresAt = expiresAt
        isWarned = false
    }

    /// The next moment at which ``step(at:)`` returns a step.
    public var nextStepAt: Int64 { isWarned ? expiresAt : expiresAt - TokenLifetime.warningMicroseconds }

    /// Nil until ``nextStepAt``. There is no warning about a token that has already expired.
    public mutating func step(at now: Int64) -> Step? {
        if now >= expiresAt { return .end }
        guard !isWarned, now >= nextStepAt else { return nil }
        isWarned = true
        return .warn
    }

    /// Replaces the old token by a new one, whether it expires later or not: the newest token is the valid one.
    public mutating func renew(expiresAt: Int64) {
        self = TokenLifetime(expiresAt: expiresAt)
    }
}
