/// Something that happened inside a transaction and that other features react to, before the transaction ends.
///
/// Facts are how features meet: each knows the facts, none knows another feature.
public protocol Fact: Sendable {}

/// Some feature wants its user notified; the notifications feature makes the draft real in the same transaction.
public struct NotificationRequested: Fact {
    public let draft: NotificationDraft

    public init(draft: NotificationDraft) {
        self.draft = draft
    }
}

/// What a notification was about is done: its user need not be told of it any more.
public struct NotificationSettled: Fact {
    public enum Outcome: Sendable, Hashable {
        /// The user has dealt with it: it counts as read.
        case handled
        /// It is void: it is taken away.
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
