import Database
import Domain
import Rows
import Values
import Visibility

extension ConversationsFeature {
    /// Each member's own place in a conversation: how far somebody has read is visible to nobody else. These rows are
    /// the membership: a user with one sees the conversation, from its first message on.
    static let members = Table(
        "conversation_members", read: ["user:{user_id}", "tenant:service"], write: ["user:{user_id}", "tenant:service"])

    static let conversations = Table(
        "conversations", read: [seat("conversation:{id}"), "tenant:service"],
        write: [seat("conversation:{id}"), "tenant:service"])

    /// Who is in a conversation, for its members to see. Members add others; each leaves by themselves.
    static let rosters = Table(
        "conversation_rosters", read: [seat("conversation:{conversation_id}"), "tenant:service"],
        write: [seat("conversation:{conversation_id}"), "tenant:service"])

    /// Senders write, which needs the conversation too: its row gives the number. Backends moderate.
    static let messages = Table(
        "messages", read: [seat("conversation:{conversation_id}"), "tenant:service"],
        write: ["user:{sender_id}", "tenant:service"])

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
                // The key by which memberships are looked up.
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
                // The audience of a message, and the members who have not read a deleted one.
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
                // The flag stands in the key as well: without a column more than the table's own key, SQLite takes
                // that.
                """
                CREATE INDEX messages_deleted ON messages (tenant, conversation_id, is_deleted, sequence, sender_id)
                WHERE is_deleted = 1
                """,
            ])
    ]

    // MARK: Conversations

    /// The columns ``conversation(_:at:)`` reads, in its order.
    static func columns(of alias: String) -> SQL {
        let names = [
            "id", "kind", "title", "created_by", "created_at", "member_count", "last_sequence", "list_order",
            "last_message_id", "last_sender_id", "last_preview", "last_sent_at",
        ]
        return SQL(unchecked: names.map { "\(alias).\($0)" }.joined(separator: ", "))
    }

    /// - Parameter first: where in the row the columns begin.
    static func conversation(_ row: Row, at first: Int = 0) throws -> Conversation {
        guard let kind = Conversation.Kind(rawValue: try row.text(first + 1)) else {
            throw DatabaseError(.corrupt, "a conversation has a kind that cannot be")
        }
        var conversation = Conversation(
            id: ID(try row.text(first)), kind: kind, title: try row.optionalText(first + 2),
            createdBy: try row.optionalText(first + 3).map { ID($0) }, createdAt: try row.moment(first + 4),
            memberCount: try row.integer(first + 5), lastSequence: try row.integer(first + 6),
            order: try row.text(first + 7))
        if let id = try row.optionalText(first + 8), let sender = try row.optionalText(first + 9) {
            conversation.lastMessage = MessagePreview(
                id: ID(id), sequence: conversation.lastSequence, senderId: ID(sender),
                preview: try row.optionalText(first + 10), sentAt: try row.moment(first + 11))
        }
        return conversation
    }

    static func place(_ row: Row, at first: Int = 0) throws -> ReadPlace {
        ReadPlace(
            joined: try row.integer(first), position: try row.integer(first + 1), excluded: try row.integer(first + 2))
    }

    // MARK: Messages

    /// The columns ``message(_:)`` reads, in its order.
    static let messageColumns: SQL = "id, conversation_id, sequence, sender_id, body, sent_at, deleted_at"

    static func message(_ row: Row) throws -> Message {
        Message(
            id: ID(try row.text(0)), conversationId: ID(try row.text(1)), sequence: try row.integer(2),
            senderId: ID(try row.text(3)), text: try row.text(4), sentAt: try row.moment(5),
            deletedAt: try row.optionalMoment(6))
    }
}
