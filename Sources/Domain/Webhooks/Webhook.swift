import Values

/// What an app is sent by a webhook.
public enum WebhookType: String, CaseIterable, Sendable {
    /// A notification that its user has not seen in time.
    case unreached = "notification.unreached"
    /// One that was sent as unreached, or may have been, was seen or removed: a phone takes it off its screen.
    case withdrawn = "notification.withdrawn"
    case bookingChanged = "booking.changed"
}

extension WebhookType: JSONWritable {}

/// Why a webhook is not tried any more.
public enum WebhookDeath: String, CaseIterable, Sendable {
    /// It was not accepted within a day.
    case expired
    /// More waited than may, of which it was the oldest.
    case outboxFull = "outbox.full"
}

extension WebhookDeath: JSONWritable {}

/// When a webhook that was not accepted is sent again.
public enum WebhookRetry {
    /// How long a webhook is tried. A notification of yesterday wakes nobody any more.
    public static let seconds: Int64 = 24 * 3600
    static let pauseMin = 5.0
    /// Also of what a receiver may ask for: one that says "in a year" is asked again within the day.
    public static let pauseMax = 3600.0

    /// The pause behind an attempt: twice that of the one before, of which the half is left to chance, so that those which
    /// failed together do not come together again.
    ///
    /// - Parameters:
    ///   - attempt: 1 for the first.
    ///   - asked: the receiver's `Retry-After`.
    ///   - chance: from 0 up to 1.
    public static func pause(afterAttempt attempt: Int, asked: Int?, chance: Double) -> Double {
        let longest = min(pauseMax, pauseMin * Double(1 << min(max(attempt, 1) - 1, 20)))
        let own = longest / 2 + longest / 2 * chance
        return min(pauseMax, max(own, Double(asked ?? 0)))
    }
}
