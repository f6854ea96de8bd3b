import Domain
import Values

/// Conversations with unread counts that are exact at every moment: each message has a number, each member a read
/// position (CNT R-COUNTS-3).
enum ConversationsFeature {
    static let feature = Feature(
        name: "conversations", tables: [members, conversations, rosters, messages], migrations: migrations,
        endpoints: endpoints + messageEndpoints, ticks: [pruning], audits: [audit],
        events: [
            "message:created", "message:deleted", "conversation:read", "conversation:updated", "conversation:removed",
        ],
        locks: ["conversation"],
        constants: { writer, _ in
            writer.member("conversations") { writer in
                writer.member("membersMax", ConversationLimits.membersMax)
                writer.member("conversationsOfUserMax", ConversationLimits.conversationsOfUserMax)
                writer.member("textBytesMax", ConversationLimits.textBytesMax)
                writer.member("rewindMax", ConversationLimits.rewindMax)
                writer.member("previewCharactersMax", ConversationLimits.previewCharactersMax)
            }
        })
}

extension LockKey {
    /// A conversation with its messages and members.
    static func conversation(_ id: ID<Conversation>) -> LockKey { LockKey(kind: "conversation", id: id.text) }
}
