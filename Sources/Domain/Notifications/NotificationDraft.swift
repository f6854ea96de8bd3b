import Values

/// A notification to be created. It has everything but the id, the timestamp and the delivery.
///
/// Other features record `Fact.notificationRequested` with a draft. The notifications feature creates the notification
/// in the same transaction.
public struct NotificationDraft: Sendable, Hashable {
    public let userId: ID<User>
    /// Makes the draft idempotent: a second draft for the same user and event id creates nothing.
    public let eventId: String?
    /// Nil means the default type of the category.
    private(set) var namedType: NotificationType?
    public let category: NotificationCategory
    public let priority: Priority
    public let title: String
    public let message: String
    public private(set) var lockScreen = NotificationDraft.lockScreenDefault
    public let data: [String: JSONValue]
    /// Whether the notification is created as seen: listed, but without lighting a badge.
    public private(set) var isSeen = false
    /// The open request that the notification asks to answer. Always nil for notifications that senders create.
    private(set) var requestId: ID<UserRequest>?

    public var type: NotificationType { namedType ?? NotificationType(for: category) }

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
        let userId: ID<User> = fields.id("userId")
        let eventId = fields.optionalID("id", NotificationEvent.self)?.text
        let category = fields.category("category")
        let type = fields.optionalType("type")
        let priority: Priority = fields.word("priority")
        let title = fields.line("title", bytesMax: NotificationDraft.titleBytesMax)
        let message = fields.string("message", bytesMax: NotificationDraft.messageBytesMax)
        let lockScreen = fields.optionalLine("lockScreen", bytesMax: NotificationDraft.titleBytesMax)
        let data = fields.openObject("data") ?? [:]
        if JSONWriter.bytes(JSONValue.object(data)).count > NotificationDraft.dataBytesMax {
            fields.reject("data", "must have at most \(NotificationDraft.dataBytesMax) bytes as JSON")
        }
        self.init(
            userId: userId, eventId: eventId, namedType: type, category: category, priority: priority, title: title,
            message: message, lockScreen: lockScreen ?? NotificationDraft.lockScreenDefault, data: data)
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
