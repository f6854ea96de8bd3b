import Values

/// The types of webhooks that an app receives.
public enum WebhookType: String, CaseIterable, Sendable {
    /// A notification that its user has not seen in time.
    case unreached = "notification.unreached"
    /// A notification that was sent as unreached, or may have been, was seen or removed. A phone then removes it from
    /// its screen.
    case withdrawn = "notification.withdrawn"
    /// A conversation with messages that its member has not read in time.
    case messageUnreached = "message.unreached"
    /// A conversation that was sent as unread, or may have been, was read.
    case messageWithdrawn = "message.withdrawn"
    case bookingChanged = "booking.changed"

    /// Whether it reports something unseen, waits for its user to see it, and can be withdrawn.
    public var isUnreached: Bool { self == .unreached || self == .messageUnreached }
}

extension WebhookType: MemberValue {}

/// The reason why a webhook is not retried any more.
public enum WebhookFailureReason: String, CaseIterable, Sendable {
    /// It was not accepted within a day.
    case expired
    /// The outbox was full, and this was its oldest webhook.
    case outboxFull = "outbox.full"
}

extension WebhookFailureReason: MemberValue {}

/// The schedule of retries of a webhook that was not accepted.
public enum WebhookRetry {
    /// How long a webhook is retried. A notification of yesterday no longer justifies waking its user.
    public static let seconds: Int64 = 24 * 3600
    static let pauseMin = 5.0
    /// The longest pause. It also limits `Retry-After`: a receiver that asks for a year is retried within the day.
    public static let pauseMax = 3600.0

    /// Returns the pause after an attempt: twice the pause of the attempt before, half of it random, so that webhooks
    /// that failed together are not retried together.
    ///
    /// - Parameters:
    ///   - attempt: 1 for the first attempt.
    ///   - asked: The receiver's `Retry-After`.
    ///   - chance: A random number from 0 up to, but not including, 1.
    public static func pause(afterAttempt attempt: Int, asked: Int?, chance: Double) -> Double {
        let longest = min(pauseMax, pauseMin * Double(1 << min(max(attempt, 1) - 1, 20)))
        let own = longest / 2 + longest / 2 * chance
        return min(pauseMax, max(own, Double(asked ?? 0)))
    }
}
