/// The lifetime of the token that opened a stream. The client is warned before the token expires; then the stream ends.
///
/// It is a pure state machine: the owner of the clock calls ``step(at:)``. All times are microseconds since 1970.
public struct TokenLifetime: Sendable, Hashable {
    public enum Step: Sendable, Hashable {
        /// Warn the client that its token will expire soon, so that it can renew the token on the open stream.
        case warn
        /// The token has expired: send the reason, and close the stream.
        case end
    }

    /// How long before expiry the client is warned. It is enough to fetch a token over a bad mobile network, with one
    /// retry.
    static let warningMicroseconds: Int64 = 30_000_000

    public private(set) var expiresAt: Int64
    private var isWarned: Bool

    public init(expiresAt: Int64) {
        self.expiresAt = expiresAt
        isWarned = false
    }

    /// The next moment at which ``step(at:)`` returns a step.
    public var nextStepAt: Int64 { isWarned ? expiresAt : expiresAt - TokenLifetime.warningMicroseconds }

    /// Returns the next step; nil before ``nextStepAt``. A token that has already expired causes no warning.
    public mutating func step(at now: Int64) -> Step? {
        if now >= expiresAt { return .end }
        guard !isWarned, now >= nextStepAt else { return nil }
        isWarned = true
        return .warn
    }

    /// Replaces the token by a new one, whether or not it expires later. The newest token is the valid one.
    public mutating func renew(expiresAt: Int64) {
        self = TokenLifetime(expiresAt: expiresAt)
    }
}
