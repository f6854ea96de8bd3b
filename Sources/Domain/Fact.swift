import Values

/// Something that happened inside a transaction and to which other features react before the transaction commits.
///
/// Features work together through facts: they depend on facts, and never on one another.
public enum Fact: Sendable {
    /// A booking was changed, or made: then there is no previous one.
    case bookingChanged(Booking, previous: Booking?)
    /// A shop was made or changed.
    case shopChanged(ID<Shop>)
    /// Data that a shop's queue is computed from was changed.
    case shopQueueTouched(ID<Shop>)
    /// A user's preferences were changed; the notifications feature stores what it needs of them.
    case preferencesChanged(Preferences, of: ID<User>)
    /// A feature asks for a notification; the notifications feature creates it from the draft.
    case notificationRequested(NotificationDraft)
    /// Notifications were stored, each with its user's preferences of that moment; those of repeated events are not among
    /// them.
    case notificationsCreated([(notification: Notification, preferences: Preferences)])
    /// Notifications that their user had not seen were seen, or removed.
    case notificationsNoticed([Notification], isRemoved: Bool)
    /// The caller has seen the notifications that ask for these requests, or says not to have; the requests feature
    /// stores it.
    case requestsNoticed([ID<UserRequest>], isSeen: Bool)
    /// The caller has seen these requests; the notifications feature marks what asks for them.
    case requestsSeen([ID<UserRequest>])
    /// The matter of the notification that was made of an event is settled: its user needs none of it any more.
    case notificationSettled(eventId: String, of: ID<User>, NotificationOutcome)
}

/// What became of a notification's matter.
public enum NotificationOutcome: Sendable {
    /// The user has dealt with it: it counts as read.
    case handled
    /// It is void: it is removed.
    case withdrawn
}
