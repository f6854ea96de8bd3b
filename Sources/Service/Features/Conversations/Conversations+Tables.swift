import Database
import Domain
import Values
import Visibility

extension ConversationsFeature {
    /// Each member's own place in a conversation, visible to that member and to backends, but to no other user. These
    /// rows grant keys: a user with one sees the whole conversation, from its first message.
    static let members = Table(
        "conversation_members", read: ["user:{user_id}", "tenant:service"],
        write: ["user:{user_id}", "tenant:service"],
        person: .rows(by: ["user_id", "conversation_id"], [.step("user_id")]))

    static let conversations = Table(
        "conversations", read: [seat("conversation:{id}"), "tenant:service"],
        write: [seat("conversation:{id}"), "tenant:service"],
        person: .rows(
            by: ["id"],
            [
                .changedByScan("created_by", .pseudonym("created_by")),
                .changedByScan("last_sender_id", .pseudonym("last_sender_id"), .null("last_preview")),
            ],
            // The pair names both users; the messages' step clears it.
            .hidden(["pair"]), .impersonal(["kind", "title", "list_order", "last_message_id"])))

    /// The members of a conversation, visible to its members and to backends. Members add others; each member leaves on
    /// their own, and backends remove any.
    static let rosters = Table(
        "conversation_rosters", read: [seat("conversation:{conversation_id}"), "tenant:service"],
        write: [seat("conversation:{conversation_id}"), "tenant:service"],
        person: .rows(by: ["conversation_id", "user_id"], [.step("user_id", isBounded: false)]))

    /// Senders write messages, which also requires the conversation, whose row provides the number. Backends moderate.
    static let messages = Table(
        "messages", read: [seat("conversation:{conversation_id}"), "tenant:service"],
        write: ["user:{sender_id}", "tenant:service"],
        kept: "BELLHOP_MESSAGES_KEPT_DAYS, if set",
        person: .rows(
            by: ["conversation_id", "sequence"], [.step("sender_id", isBounded: false)], .impersonal(["id"])))

    private static func seat(_ template: AudienceTemplate) -> PolicyEntry {
        .granted(template, by: members, member: "user_id", of: "conversation_id")
    }

    static let migrations = [
        Migration(
            "0001_conversations",
            sql: [
                """
                CREATE TABLE conversations (
                    tenant TEXT NOT NULL,
                    id TEXT NOT NULL,
                    kind TEXT NOT NULL,
                    pair TEXT,
                    title TEXT,
                    created_by TEXT,
                    created_at INTEGER NOT NULL,
                    member_count INTEGER NOT NULL CHECK (member_count BETWEEN 0 AND 256),
                    last_sequence INTEGER NOT NULL,
                    list_order TEXT NOT NULL,
                    last_message_id TEXT,
                    last_sender_id TEXT,
                    last_preview TEXT,
                    last_sent_at INTEGER,
                    abandoned_at INTEGER,
                    PRIMARY KEY (tenant, id)
                ) STRICT
                """,
                "CREATE UNIQUE INDEX conversations_pairs ON conversations (tenant, pair) WHERE pair IS NOT NULL",
                """
                CREATE INDEX conversations_abandoned ON conversations (tenant, abandoned_at)
                WHERE abandoned_at IS NOT NULL
                """,
                // The key for lookups of grants.
                """
                CREATE TABLE conversation_members (
                    tenant TEXT NOT NULL,
                    user_id TEXT NOT NULL,
                    conversation_id TEXT NOT NULL,
                    joined INTEGER NOT NULL,
                    position INTEGER NOT NULL,
                    excluded INTEGER NOT NULL CHECK (excluded >= 0),
                    PRIMARY KEY (tenant, user_id, conversation_id),
                    CHECK (joined >= 0 AND joined <= position)
                ) STRICT, WITHOUT ROWID
                """,
                // The audience of a message, and the members for which a deleted message was unread.
                """
                CREATE INDEX conversation_members_behind
                ON conversation_members (tenant, conversation_id, position, user_id)
                """,
                """
                CREATE TABLE conversation_rosters (
                    tenant TEXT NOT NULL,
                    conversation_id TEXT NOT NULL,
                    user_id TEXT NOT NULL,
                    joined_at INTEGER NOT NULL,
                    PRIMARY KEY (tenant, conversation_id, user_id)
                ) STRICT, WITHOUT ROWID
                """,
                """
                CREATE TABLE messages (
                    tenant TEXT NOT NULL,
                    conversation_id TEXT NOT NULL,
                    sequence INTEGER NOT NULL,
                    id TEXT NOT NULL,
                    sender_id TEXT NOT NULL,
                    body TEXT NOT NULL,
                    sent_at INTEGER NOT NULL,
                    deleted_at INTEGER,
                    is_deleted INTEGER NOT NULL DEFAULT 0,
                    PRIMARY KEY (tenant, conversation_id, sequence),
                    CHECK ((is_deleted = 1) = (deleted_at IS NOT NULL))
                ) STRICT, WITHOUT ROWID
                """,
                "CREATE UNIQUE INDEX messages_ids ON messages (tenant, conversation_id, id)",
                // The messages of one sender in a range, and the deleted ones.
                "CREATE INDEX messages_own ON messages (tenant, conversation_id, sender_id, sequence)",
                // The flag is part of the key. Otherwise SQLite would use the table's own key, which has the same
                // columns.
                """
                CREATE INDEX messages_deleted ON messages (tenant, conversation_id, is_deleted, sequence, sender_id)
                WHERE is_deleted = 1
                """,
            ])
    ]

    /// The columns that ``conversation(_:)`` reads, in order.
    static let columns: SQL = """
        \(Conversation.columns(of: "c")), c.last_message_id, c.last_sender_id, c.last_preview, c.last_sent_at
        """

    static func conversation(_ row: Row) throws -> Conversation {
        var conversation = try Conversation(row: row)
        if let id: ID<Message> = try row.optionalID(8), let senderId: ID<User> = try row.optionalID(9) {
            conversation.lastMessage = MessagePreview(
                id: id, sequence: conversation.lastSequence, senderId: senderId, preview: try row.optionalText(10),
                sentAt: try row.moment(11))
        }
        return conversation
    }

    /// Reads a place.
    ///
    /// - Parameter first: The index of the first of the columns `joined, position, excluded`.
    static func place(_ row: Row, at first: Int) throws -> ReadPlace {
        ReadPlace(
            joined: try row.integer(first), position: try row.integer(first + 1), excluded: try row.integer(first + 2))
    }

    static let messageColumns = Message.columns()
}
