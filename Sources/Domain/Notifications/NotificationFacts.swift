import Values

/// A feature asks for a notification; the notifications feature creates it from the draft in the same transaction.
public struct NotificationRequested: Fact {
    public let draft: NotificationDraft

    public init(draft: NotificationDraft) {
        self.draft = draft
    }
}

/// The matter of a notification is settled: its user needs no notification of it any more.
public struct NotificationSettled: Fact {
    public enum Outcome: Sendable, Hashable {
        /// The user has dealt with it: it counts as read.
        case handled
        /// It is void: it is removed.
        case withdrawn
    }

    public let userId: ID<User>
    /// The event that the notification was made of.
    public let eventId: String
    public let outcome: Outcome

    public init(userId: ID<User>, eventId: String, outcome: Outcome) {
        self.userId = userId
        self.eventId = eventId
        self.outcome = outcome
    }
}
