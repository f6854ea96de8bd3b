import Values

/// A notification of a user, as it is stored, listed and sent (R-VIS-FR-1.4: an event carries the whole notification).
public struct Notification: Sendable, Hashable {
    public let id: ID<Notification>
    /// The sender's id of the event. It is unique per user, so that a repeated event creates no second notification.
    public let eventId: String?
    public let userId: ID<User>
    public let type: NotificationType
    public let category: NotificationCategory
    public let priority: Priority
    public let title: String
    public let message: String
    /// The text for a locked screen. It reveals nothing about the content.
    public let lockScreen: String
    /// A JSON object with the identifiers that a client needs to open the right screen.
    public let data: [UInt8]
    public let delivery: Delivery
    public let createdAt: Timestamp
    /// The open request that the notification asks to answer; nil once that is answered.
    public var requestId: ID<UserRequest>?
    public var state: NotificationState

    public init(
        id: ID<Notification>, eventId: String?, userId: ID<User>, type: NotificationType,
        category: NotificationCategory, priority: Priority, title: String, message: String, lockScreen: String,
        data: [UInt8], delivery: Delivery, createdAt: Timestamp,
        requestId: ID<UserRequest>? = nil, state: NotificationState
    ) {
        self.id = id
        self.eventId = eventId
        self.userId = userId
        self.type = type
        self.category = category
        self.priority = priority
        self.title = title
        self.message = message
        self.lockScreen = lockScreen
        self.data = data
        self.delivery = delivery
        self.createdAt = createdAt
        self.requestId = requestId
        self.state = state
    }

    /// Creates the notification of a draft.
    public init(_ draft: NotificationDraft, id: ID<Notification>, delivery: Delivery, createdAt: Timestamp) {
        self.init(
            id: id, eventId: draft.eventId, userId: draft.userId,
            type: draft.type, category: draft.category,
            priority: draft.priority, title: draft.title, message: draft.message, lockScreen: draft.lockScreen,
            data: JSONWriter.bytes(JSONValue.object(draft.data)), delivery: delivery, createdAt: createdAt,
            requestId: draft.requestId, state: NotificationState(seenAt: draft.isSeen ? createdAt : nil))
    }
}

extension Notification: JSONObjectWritable {
    public func write(membersTo writer: inout JSONWriter) {
        writer.member("id", id)
        writer.member("eventId", eventId)
        writer.member("userId", userId)
        writer.member("type", type)
        writer.member("category", category)
        writer.member("priority", priority)
        writer.member("title", title)
        writer.member("message", message)
        writer.member("lockScreen", lockScreen)
        writer.member("data", json: data)
        writer.member("haptic", delivery.vibrates ? priority.haptic : nil)
        writer.member("sound", delivery.sounds)
        writer.member("createdAt", createdAt)
        writer.member("seenAt", state.seenAt)
        writer.member("readAt", state.readAt)
        writer.member("archivedAt", state.archivedAt)
    }
}
