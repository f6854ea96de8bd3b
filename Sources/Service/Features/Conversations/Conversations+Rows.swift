import Database
import Domain
import Values
import Visibility

extension ConversationsFeature {
    private static let countingUnread = Unscoped.reaction("a message changes the counts of all members")
    private static let counting = Unscoped.bookkeeping("messages are only counted, not returned")

    /// Returns a query of the caller's conversations, the one with the newest message first.
    ///
    /// The query starts from the caller's own read places. The opposite order would read every conversation of the
    /// tenant.
    static func listing(
        of userId: ID<User>, onlyUnread: Bool, after: String?, limit: Int, visibleTo scope: Scope
    ) -> SQL {
        let unread: SQL = onlyUnread ? "AND c.last_sequence > m.position + m.excluded" : ""
        let bound: SQL = if let after { "AND c.list_order < \(after)" } else { "" }
        return """
            SELECT \(columns), m.joined, m.position, m.excluded
            FROM \(members, visibleTo: scope) AS m
            JOIN \(conversations, visibleTo: scope) AS c ON c.id = m.conversation_id
            WHERE m.user_id = \(userId) \(unread) \(bound) ORDER BY c.list_order DESC LIMIT \(limit)
            """
    }

    static func view(_ row: Row) throws -> ConversationView {
        ConversationView(try conversation(row), place: try place(row, at: 12))
    }

    /// Returns a query of the caller's conversations with unread messages. Its rows change only when the badge does.
    static func unread(of caller: Caller) -> SQL {
        """
        SELECT c.id, c.last_sequence - m.position - m.excluded
        FROM \(members, visibleTo: caller.scope) AS m
        JOIN \(conversations, visibleTo: caller.scope) AS c ON c.id = m.conversation_id
        WHERE m.user_id = \(caller.userId) AND c.last_sequence > m.position + m.excluded ORDER BY c.id
        """
    }

    /// Returns a conversation.
    ///
    /// - Throws: 404 for a conversation that does not exist, and equally if the caller is not a member of it.
    static func require(_ id: ID<Conversation>, _ tx: Transaction) throws -> Conversation {
        try find(id, tx).required("conversation")
    }

    static func find(_ id: ID<Conversation>, _ tx: Transaction) throws -> Conversation? {
        try tx.db.row(
            "SELECT \(columns) FROM \(conversations, visibleTo: tx.scope) AS c WHERE id = \(id)", conversation)
    }

    static func isTaken(_ id: ID<Conversation>, _ tx: Transaction) throws -> Bool {
        try tx.db.exists(
            """
            SELECT 1 FROM \(conversations, within: tx.tenant, .bookkeeping("a free id must be free for all users")) AS c
            WHERE c.id = \(id)
            """)
    }

    /// Returns the conversation of a pair, even if one or both have left it.
    static func find(pair: String, _ tx: Transaction) throws -> Conversation? {
        try tx.db.row(
            """
            SELECT \(columns)
            FROM \(conversations, within: tx.tenant, .reaction("starting a direct conversation again returns to it")) AS c
            WHERE c.pair = \(pair)
            """, conversation)
    }

    /// Returns both users of a pair.
    static func users(of pair: String) -> [ID<User>] { (pairs.columnValues(of: pair) ?? []).map { ID($0) } }

    private static let pairs: AudienceTemplate = "pair:{first}:{second}"

    /// Inserts a conversation. Its creator must already be a member, because only members may write it.
    static func insert(_ conversation: Conversation, pair: String?, _ tx: Transaction) throws {
        try tx.db.run(
            """
            INSERT INTO \(conversations, writableBy: tx.scope)
                (tenant, pair, \(Conversation.columns()))
            VALUES (\(tx.tenant), \(pair), \(conversation.values))
            """)
    }

    // MARK: Members

    /// Returns all members of a conversation. Call it with the conversation locked.
    static func memberIds(of id: ID<Conversation>, _ tx: Transaction) throws -> [ID<User>] {
        try tx.db.rows(
            "SELECT user_id FROM \(rosters, visibleTo: tx.scope) WHERE conversation_id = \(id) ORDER BY user_id"
        ) { try $0.id(0) }
    }

    /// Returns the read places of all members of a conversation.
    static func places(in id: ID<Conversation>, _ tx: Transaction) throws -> [(userId: ID<User>, place: ReadPlace)] {
        try tx.db.rows(
            """
            SELECT user_id, joined, position, excluded FROM \(members, within: tx.tenant, countingUnread)
            WHERE conversation_id = \(id) ORDER BY user_id
            """
        ) { (try $0.id(0), try place($0, at: 1)) }
    }

    static func findPlace(of userId: ID<User>, in id: ID<Conversation>, _ tx: Transaction) throws -> ReadPlace? {
        try tx.db.row(
            """
            SELECT joined, position, excluded FROM \(members, visibleTo: tx.scope)
            WHERE user_id = \(userId) AND conversation_id = \(id)
            """
        ) { try place($0, at: 0) }
    }

    static func store(_ place: ReadPlace, of userId: ID<User>, in id: ID<Conversation>, _ tx: Transaction) throws {
        try tx.db.run(
            """
            UPDATE \(members, writableBy: tx.scope) SET position = \(place.position), excluded = \(place.excluded)
            WHERE user_id = \(userId) AND conversation_id = \(id)
            """)
    }

    /// Gives a user a read place after the last message.
    static func seat(_ userId: ID<User>, in id: ID<Conversation>, last: Int, _ tx: Transaction) throws {
        let count = try tx.db.integer(
            """
            SELECT COUNT(*) FROM \(members, of: userId, in: tx.tenant)
            """)
        guard count ?? 0 < ConversationLimits.conversationsOfUserMax else {
            throw Failure(
                .conflict, "conversation.too_many",
                "A user can be in at most \(ConversationLimits.conversationsOfUserMax) conversations.")
        }
        let place = ReadPlace(joining: last)
        try tx.db.run(
            """
            INSERT INTO \(members, of: userId, in: tx.tenant)
                (tenant, user_id, conversation_id, joined, position, excluded)
            VALUES (\(tx.tenant), \(userId), \(id), \(place.joined), \(place.position), \(place.excluded))
            """)
        tx.db.noteInsertion(into: members, of: userId.text)
        tx.noteReached(userId)
    }

    /// Adds a user to the list of members, unless the user is already in it.
    static func insertIntoRoster(_ userId: ID<User>, of id: ID<Conversation>, _ tx: Transaction) throws {
        try tx.db.run(
            """
            INSERT INTO \(rosters, writableBy: tx.scope) (tenant, conversation_id, user_id, joined_at)
            VALUES (\(tx.tenant), \(id), \(userId), \(tx.now))
            ON CONFLICT (tenant, conversation_id, user_id) DO NOTHING
            """)
    }

    /// Stores the number of members. A conversation without members is deleted after a while.
    static func storeMemberCount(of conversation: Conversation, _ tx: Transaction) throws {
        let abandonedAt = conversation.memberCount == 0 ? tx.now.microseconds : nil
        try tx.db.run(
            """
            UPDATE \(conversations, writableBy: tx.scope) SET member_count = \(conversation.memberCount),
                abandoned_at = \(abandonedAt)
            WHERE id = \(conversation.id)
            """)
    }

    /// Deletes a member's place.
    ///
    /// - Returns: The deleted place; nil if the caller may not delete it, or it does not exist.
    static func deletePlace(of userId: ID<User>, in id: ID<Conversation>, _ tx: Transaction) throws -> ReadPlace? {
        let place = try tx.db.row(
            """
            DELETE FROM \(members, writableBy: tx.scope) WHERE user_id = \(userId) AND conversation_id = \(id)
            RETURNING joined, position, excluded
            """
        ) { try Self.place($0, at: 0) }
        guard let place else { return nil }
        try tx.db.run(
            """
            DELETE FROM \(rosters, within: tx.tenant, .reaction("a former member is removed from the list"))
            WHERE conversation_id = \(id) AND user_id = \(userId)
            """)
        return place
    }

    // MARK: Messages

    /// Gives the conversation's next number to a message, which becomes its newest.
    ///
    /// - Returns: Nil if the caller may not write in the conversation. The pair is that of a direct conversation.
    static func takeSequence(
        for id: ID<Message>, in conversationId: ID<Conversation>, text: String, _ tx: Transaction
    ) throws -> (sequence: Int, order: String, pair: String?)? {
        let order = tx.makeID(Conversation.self).text
        return try tx.db.row(
            """
            UPDATE \(conversations, writableBy: tx.scope) SET last_sequence = last_sequence + 1, list_order = \(order),
                last_message_id = \(id), last_sender_id = \(tx.caller.userId),
                last_preview = \(MessagePreview.line(of: text)), last_sent_at = \(tx.now)
            WHERE id = \(conversationId) RETURNING last_sequence, pair
            """
        ) { (try $0.integer(0), order, try $0.optionalText(1)) }
    }

    static func insert(_ message: Message, _ tx: Transaction) throws {
        try tx.db.run(
            """
            INSERT INTO \(messages, writableBy: tx.scope)
                (tenant, \(messageColumns))
            VALUES (\(tx.tenant), \(message.values))
            """)
    }

    static func find(_ id: ID<Message>, in conversationId: ID<Conversation>, _ tx: Transaction) throws -> Message? {
        try tx.db.row(
            """
            SELECT \(messageColumns) FROM \(messages, visibleTo: tx.scope)
            WHERE conversation_id = \(conversationId) AND id = \(id)
            """, Message.init(row:))
    }

    /// Returns a query of a conversation's messages: newest first before a number, or oldest first after one.
    static func messages(
        in id: ID<Conversation>, before: Int?, after: Int?, limit: Int, visibleTo scope: Scope
    ) -> SQL {
        let bound: SQL =
            if let after { "AND sequence > \(after)" } else if let before { "AND sequence < \(before)" } else { "" }
        return """
            SELECT \(messageColumns) FROM \(messages, visibleTo: scope) WHERE conversation_id = \(id) \(bound)
            ORDER BY sequence \(after == nil ? "DESC" : "ASC" as SQL) LIMIT \(limit)
            """
    }

    /// Erases a message's text; its number remains.
    ///
    /// - Returns: Nil if the caller may not, or the message is already deleted.
    static func erase(_ id: ID<Message>, in conversationId: ID<Conversation>, _ tx: Transaction) throws -> Message? {
        let erased = try tx.db.row(
            """
            UPDATE \(messages, writableBy: tx.scope) SET body = '', is_deleted = 1,
                deleted_at = \(tx.now)
            WHERE conversation_id = \(conversationId) AND id = \(id) AND is_deleted = 0
            RETURNING \(messageColumns)
            """, Message.init(row:))
        guard let erased else { return nil }
        try tx.db.run(
            """
            UPDATE \(conversations, writableBy: tx.scope) SET last_preview = NULL
            WHERE id = \(conversationId) AND last_sequence = \(erased.sequence)
            """)
        return erased
    }

    /// Counts a deleted message as excluded for each member that had not read it, except its sender.
    ///
    /// - Returns: The members whose unread count has changed, with their new places.
    static func exclude(_ erased: Message, _ tx: Transaction) throws -> [(userId: ID<User>, place: ReadPlace)] {
        try tx.db.rows(
            """
            UPDATE \(members, within: tx.tenant, countingUnread) SET excluded = excluded + 1
            WHERE conversation_id = \(erased.conversationId)
                AND position < \(erased.sequence) AND user_id <> \(erased.senderId)
            RETURNING user_id, joined, position, excluded
            """
        ) { (userId: try $0.id(0), place: try place($0, at: 1)) }.sorted { $0.userId < $1.userId }
    }

    /// Counts the newest message as excluded for its sender.
    static func excludeOwn(of userId: ID<User>, in id: ID<Conversation>, _ tx: Transaction) throws {
        try tx.db.run(
            """
            UPDATE \(members, of: userId, in: tx.tenant) SET excluded = excluded + 1
            WHERE conversation_id = \(id)
            """)
    }

    /// Returns a query of how many messages of a range are a reader's own, or deleted. It counts in two indexes, and
    /// reads no message.
    static func countExcluded(
        in run: ClosedRange<Int>, of userId: ID<User>, in id: ID<Conversation>, tenant: ID<Tenant>
    ) -> SQL {
        """
        SELECT (SELECT COUNT(*) FROM \(messages, within: tenant, counting)
                WHERE conversation_id = \(id) AND sender_id = \(userId)
                    AND sequence BETWEEN \(run.lowerBound) AND \(run.upperBound))
            + (SELECT COUNT(*) FROM \(messages, within: tenant, counting)
                WHERE conversation_id = \(id) AND is_deleted = 1
                    AND sequence BETWEEN \(run.lowerBound) AND \(run.upperBound) AND sender_id <> \(userId))
        """
    }
}
