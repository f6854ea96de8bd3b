/// What a stream owes its client about the token it was opened with: a warning, and an end.
///
/// Pure: whoever owns the clock asks with ``step(at:)``. All moments are microseconds since 1970.
public struct TokenLifetime: Sendable, Hashable {
    public enum Step: Sendable, Hashable {
        /// Tell the client that its token is about to expire, so that it can renew the stream in place.
        case warn
        /// The token has expired: tell, and close.
        case end
    }

    /// How long before the end the client is warned: enough to fetch a token over a bad mobile network, with one retry.
    public static let warningMicroseconds: Int64 = 30_000_000

    public private(set) var expiresAt: Int64
    private var isWarned: Bool

    public init(expiresAt: Int64) {
        self.expiresAt = expiresAt
        isWarned = false
    }

    /// The next moment at which ``step(at:)`` has something to say.
    public var nextStepAt: Int64 { isWarned ? expiresAt : expiresAt - TokenLifetime.warningMicroseconds }

    /// Nil until ``nextStepAt``. A token that is already past its end is not warned about.
    public mutating func step(at now: Int64) -> Step? {
        if now >= expiresAt { return .end }
        guard !isWarned, now >= nextStepAt else { return nil }
        isWarned = true
        return .warn
    }

    /// A new token takes the place of the old one, whether it lives longer or not: the newest says what holds.
    public mutating func renew(expiresAt: Int64) {
        self = TokenLifetime(expiresAt: expiresAt)
    }
}
