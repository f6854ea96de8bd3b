import Domain
import Values

/// Conversations with exact unread counts: each message has a number, each member a read position (R-CNT-COUNTS-3).
enum ConversationsFeature {
    static let feature = Feature(
        name: "conversations", set: .chat, tables: [members, conversations, rosters, messages], migrations: migrations,
        endpoints: endpoints + messageEndpoints, ticks: [pruning], sweeps: [retention],
        personSteps: [messagesStep, membersStep], share: share, audits: [audit],
        events: [
            "message:created", "message:deleted", "conversation:read", "conversation:updated", "conversation:removed",
        ],
        locks: ["conversation"],
        constants: Feature.constants(
            "conversations",
            [
                "membersMax": ConversationLimits.membersMax,
                "conversationsOfUserMax": ConversationLimits.conversationsOfUserMax,
                "textBytesMax": ConversationLimits.textBytesMax, "rewindMax": ConversationLimits.rewindMax,
                "previewCharactersMax": ConversationLimits.previewCharactersMax,
            ]))
}

extension LockKey {
    /// The lock of a conversation with its messages and members.
    static func conversation(_ id: ID<Conversation>) -> LockKey { LockKey(kind: "conversation", id: id.text) }
}
