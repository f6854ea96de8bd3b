import Values

/// The state of a notification: whether its user has seen, read and archived it, each with a timestamp.
///
/// A read notification is always seen, and so is an archived one. Therefore "unseen" alone decides the badges, and a
/// client may send only the strongest state that it knows.
public struct NotificationState: Sendable, Hashable {
    public var seenAt: Timestamp?
    public var readAt: Timestamp?
    public var archivedAt: Timestamp?

    public init(seenAt: Timestamp? = nil, readAt: Timestamp? = nil, archivedAt: Timestamp? = nil) {
        self.seenAt = seenAt
        self.readAt = readAt
        self.archivedAt = archivedAt
    }

    public var isSeen: Bool { seenAt != nil }
    public var isRead: Bool { readAt != nil }
    public var isArchived: Bool { archivedAt != nil }

    /// Applies a change. A state that is already set keeps its first timestamp, so that repeating a change is harmless.
    public func applying(_ change: NotificationStateChange, at now: Timestamp) -> NotificationState {
        func next(_ current: Timestamp?, _ wanted: Bool?) -> Timestamp? {
            guard let wanted else { return current }
            return wanted ? current ?? now : nil
        }
        return NotificationState(
            seenAt: next(seenAt, change.seen), readAt: next(readAt, change.read),
            archivedAt: next(archivedAt, change.archived))
    }
}

/// A change of a notification's state: `{"seen": true}`, `{"read": true}`, `{"archived": true}`, or the opposites.
///
/// The change is in normal form. Read or archived implies seen. Undoing seen undoes the other two, and lights the badge
/// again. Undoing read leaves the notification seen ("mark as unread" marks it in the list without a badge). Undoing
/// archived brings it back to the list.
public struct NotificationStateChange: Sendable, Hashable {
    public let seen: Bool?
    public let read: Bool?
    public let archived: Bool?

    /// Creates a change; nil if it is empty or contradictory: unseen, and yet read or archived.
    public init?(seen: Bool? = nil, read: Bool? = nil, archived: Bool? = nil) {
        switch seen {
        case false:
            guard read != true, archived != true else { return nil }
            (self.seen, self.read, self.archived) = (false, false, false)
        default:
            guard seen != nil || read != nil || archived != nil else { return nil }
            self.seen = seen == true || read == true || archived == true ? true : nil
            self.read = read
            self.archived = archived
        }
    }

    /// Reads the three members; nil after a mistake, which is added to the reader's mistakes.
    public init?(reading fields: inout Fields) {
        let seen = fields.optionalBool("seen")
        let read = fields.optionalBool("read")
        let archived = fields.optionalBool("archived")
        if let change = NotificationStateChange(seen: seen, read: read, archived: archived) {
            self = change
            return
        }
        if seen == false {
            fields.reject("seen", "cannot be false if read or archived is true")
        } else if ["seen", "read", "archived"].allSatisfy({ fields.value($0) == nil }) {
            fields.reject("seen", "is missing: set at least one of seen, read and archived to true or false")
        }
        return nil
    }
}

extension NotificationStateChange: JSONObjectWritable {
    public func write(membersTo writer: inout JSONWriter) {
        if let seen { writer.member("seen", seen) }
        if let read { writer.member("read", read) }
        if let archived { writer.member("archived", archived) }
    }
}
