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

    /// The name of the channel that sends webhooks.
    public static let channel = "webhook"

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
