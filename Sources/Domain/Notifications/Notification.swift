import Values

/// A notification of a user, as it is stored, listed and sent (R-VIS-FR-1.4: an event carries the whole notification).
@dynamicMemberLookup
public struct Notification: Sendable, Hashable {
    public var id: ID<Notification> = ""
    /// The part that the sender determines. Its members are also members of the notification.
    public var draft = NotificationDraft()
    public var delivery = Delivery(sounds: false, vibrates: false)
    public var createdAt = Timestamp(microseconds: 0)
    public var state = NotificationState()

    public init() {}

    public init(_ draft: NotificationDraft, id: ID<Notification>, delivery: Delivery, createdAt: Timestamp) {
        self.id = id
        self.draft = draft
        self.delivery = delivery
        self.createdAt = createdAt
        state = NotificationState(seenAt: draft.isSeen ? createdAt : nil)
    }

    @inlinable
    public subscript<Value>(dynamicMember member: KeyPath<NotificationDraft, Value>) -> Value { draft[keyPath: member] }
}

extension Notification: Record, JSONObjectWritable {
    @inlinable
    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("id", &id)
        draft.visit(&members)
        members.derived("haptic", delivery.vibrates ? draft.priority.haptic : nil)
        members.member("sound", in: "sounds", &delivery.sounds)
        members.hidden("vibrates", &delivery.vibrates)
        members.member("createdAt", &createdAt)
        members.member("seenAt", &state.seenAt)
        members.member("readAt", &state.readAt)
        members.member("archivedAt", &state.archivedAt)
    }
}
