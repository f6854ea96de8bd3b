import Database

/// Conversations with unread counts that are exact at every moment: each message has a number, each member a read
/// position (CNT R-COUNTS-3).
enum ConversationsFeature {
    static let feature = Feature(
        name: "conversations", tables: [members, conversations, rosters, messages], migrations: migrations,
        endpoints: endpoints + messageEndpoints, reactions: [], topics: [], ticks: [forgetting], audits: [audit])
}
