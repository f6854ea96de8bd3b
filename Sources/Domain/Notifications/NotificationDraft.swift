import Values

/// A notification to be created. It has everything but the id, the timestamp and the delivery.
///
/// Other features record `Fact.notificationRequested` with a draft. The notifications feature creates the notification
/// in the same transaction.
public struct NotificationDraft: Sendable, Hashable {
    public var userId: ID<User> = ""
    /// The sender's id of the event. It is unique per user, so that a repeated event creates no second notification.
    public var eventId: String?
    public var type = NotificationType.system
    public var category = NotificationCategory.system
    public var priority = Priority.normal
    public var title = ""
    public var message = ""
    /// The text for a locked screen. It reveals nothing about the content.
    public var lockScreen = NotificationDraft.lockScreenDefault
    /// A JSON object with the identifiers that a client needs to open the right screen.
    public var data = EncodedJSON.emptyObject
    /// Whether the notification is created as seen: listed, but without lighting a badge.
    public var isSeen = false
    /// The open request that the notification asks to answer; nil once that is answered. Always nil for notifications
    /// that senders create.
    public var requestId: ID<UserRequest>?

    @inlinable
    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("eventId", &eventId)
        members.member("userId", &userId)
        members.member("type", &type)
        members.member("category", &category)
        members.member("priority", &priority)
        members.member("title", &title)
        members.member("message", &message)
        members.member("lockScreen", &lockScreen)
        members.member("data", &data)
        members.hidden("requestId", &requestId)
    }

    /// The default text for locked screens, which other people can read. It reveals nothing about the content.
    public static let lockScreenDefault = "You have a new update"

    /// One line on a phone, which cuts off longer titles.
    static let titleBytesMax = 200
    /// A few sentences. An event carries the whole text to every device.
    static let messageBytesMax = 2000
    /// Room for identifiers of a screen to open, not for documents. Every notification of a list has its data.
    static let dataBytesMax = 4096
}

extension NotificationDraft {
    /// Reads the body of `POST /v1/notifications`:
    /// `{userId, id?, type?, category, priority, title, message, lockScreen?, data?}`. The optional id has the meaning
    /// of an event's id.
    public init(reading fields: inout Fields) {
        userId = fields.id("userId")
        eventId = fields.optionalID("id", NotificationEvent.self)?.text
        category = fields.category("category")
        type = fields.optionalType("type") ?? NotificationType(for: category)
        priority = fields.word("priority")
        title = fields.line("title", bytesMax: Self.titleBytesMax)
        message = fields.string("message", bytesMax: Self.messageBytesMax)
        if let line = fields.optionalLine("lockScreen", bytesMax: Self.titleBytesMax) { lockScreen = line }
        if let object = fields.openObject("data") { data = EncodedJSON(.object(object)) }
        if data.bytes.count > Self.dataBytesMax {
            fields.reject("data", "must have at most \(Self.dataBytesMax) bytes as JSON")
        }
    }
}

extension Fields {
    fileprivate mutating func category(_ name: String) -> NotificationCategory {
        let text = string(name, bytesMax: NotificationCategory.bytesMax)
        guard !text.isEmpty else { return .system }
        guard let category = NotificationCategory(rawValue: text) else {
            reject(name, "must consist of lower-case letters, digits, - and _, and start with a letter")
            return .system
        }
        return category
    }

    fileprivate mutating func optionalType(_ name: String) -> NotificationType? {
        guard let text = optionalString(name, bytesMax: NotificationCategory.bytesMax) else { return nil }
        guard let type = NotificationType(rawValue: text) else {
            reject(name, "must consist of capital letters, digits, - and _, and start with a letter")
            return nil
        }
        return type
    }
}
