import Values

/// Something that happened inside a transaction. Other features react to it before the transaction commits.
///
/// Features cooperate through facts: they depend on facts, never on one another.
public enum Fact: Sendable {
    /// A booking was created (no previous booking) or changed.
    case bookingChanged(Booking, previous: Booking?)
    /// A shop was created or changed.
    case shopChanged(ID<Shop>)
    /// Data from which a shop's queue is computed was changed.
    case shopQueueTouched(ID<Shop>)
    /// A user's preferences were changed. The notifications feature stores the parts that it needs.
    case preferencesChanged(Preferences, of: ID<User>)
    /// A feature requests a notification. The notifications feature creates it from the draft.
    case notificationRequested(NotificationDraft)
    /// Notifications were stored, each with its user's preferences at that moment. Notifications of repeated events are
    /// left out.
    case notificationsCreated([(notification: Notification, preferences: Preferences)])
    /// Unseen notifications of a user were seen or removed.
    case notificationsCleared([Notification], isRemoved: Bool)
    /// A message was stored, and is unread for these members.
    case messageDelivered(Message, to: [ID<User>])
    /// A member has no unread messages in a conversation any more.
    case conversationRead(ID<Conversation>, by: ID<User>)
    /// The counts of these users changed.
    case badgesChanged(of: [ID<User>])
    /// The caller marked the notifications that ask for these requests as seen or unseen. The requests feature stores
    /// it.
    case requestNotificationsMarked([ID<UserRequest>], isSeen: Bool)
    /// The caller has seen these requests. The notifications feature marks the notifications that ask for them.
    case requestsSeen([ID<UserRequest>])
    /// A person is being erased: the person's tokens are refused from now on. The mark recognizes them without the id.
    case personLeft(ID<User>, mark: String)
    /// The subject of an event's notification is settled, so the user no longer needs the notification.
    case notificationSettled(eventId: String, of: ID<User>, NotificationOutcome)
}

/// The outcome of a notification's subject.
public enum NotificationOutcome: Sendable {
    /// The user has dealt with it, so the notification counts as read.
    case handled
    /// It is void, so the notification is removed.
    case withdrawn
}
