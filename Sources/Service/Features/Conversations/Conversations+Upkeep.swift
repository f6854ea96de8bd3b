import Database
import Domain
import Values

extension ConversationsFeature {
    // MARK: Pruning

    /// Deletes conversations without members after their retention, their messages first.
    static let pruning = Tick.forgetting(
        name: "conversations.forgetting", everySeconds: 60,
        due: { age in
            Tenants.all(
                where: """
                    EXISTS (SELECT 1 FROM \(conversations, unscoped: bookkeeping) AS c WHERE c.tenant = t.tenant
                        AND c.abandoned_at IS NOT NULL AND c.abandoned_at < \(abandonedBefore(age)))
                    """)
        }
    ) { age, tx in
        for id in try abandoned(age, tx) {
            // A backend may add a member meanwhile.
            try tx.lock(.conversation(id))
            guard try abandoned(age, tx).contains(id) else { continue }
            guard try deleteMessages(of: id, tx) else { continue }
            try tx.db.run(
                "DELETE FROM \(conversations, within: tx.tenant, bookkeeping) WHERE id = \(id)")
        }
    }

    private static let bookkeeping = Unscoped.bookkeeping("a conversation without members belongs to no user")
    /// Rows of one step, for which all writes wait: some milliseconds.
    private static let prunedAtOnceMax = 4

    static func abandonedConversations(tenant: ID<Tenant>, before: Timestamp) -> SQL {
        """
        SELECT id FROM \(conversations, within: tenant, bookkeeping)
        WHERE abandoned_at IS NOT NULL AND abandoned_at < \(before)
        ORDER BY abandoned_at LIMIT \(prunedAtOnceMax)
        """
    }

    private static func abandoned(_ age: AgeTime, _ tx: Transaction) throws -> [ID<Conversation>] {
        try tx.db.rows(abandonedConversations(tenant: tx.tenant, before: abandonedBefore(age))) { try $0.id(0) }
    }

    private static func abandonedBefore(_ age: AgeTime) -> Timestamp {
        age.end(ofSeconds: ConversationLimits.abandonedRetentionSeconds)
    }

    /// Deletes messages of a conversation.
    ///
    /// - Returns: Whether all are deleted.
    private static func deleteMessages(of id: ID<Conversation>, _ tx: Transaction) throws -> Bool {
        let removed = try tx.db.run(
            """
            DELETE FROM \(messages, within: tx.tenant, bookkeeping)
            WHERE conversation_id = \(id) AND sequence IN (
                SELECT sequence FROM \(messages, within: tx.tenant, bookkeeping)
                WHERE conversation_id = \(id)
                ORDER BY sequence LIMIT \(Limits.prunedAtOnceMax))
            """)
        return removed < Limits.prunedAtOnceMax
    }

    // MARK: Recounting

    private static let recounting = Unscoped.audit("a recount reads the rows of all tenants")
    private static let allConversations: SQL = "\(conversations, unscoped: recounting)"
    private static let allMembers: SQL = "\(members, unscoped: recounting)"
    private static let allRosters: SQL = "\(rosters, unscoped: recounting)"
    private static let allMessages: SQL = "\(messages, unscoped: recounting)"

    /// Compares the stored numbers of conversations with a recount.
    static let audit = Audit(name: "conversations") { db in
        try sequenceGaps(in: db) + memberDifferences(in: db) + unreadDifferences(in: db)
    }

    /// Checks that numbers have no gaps up to the last. The first messages of a conversation are deleted when they
    /// expire, and gradually when it ends. If the last one has expired, the conversation has no last message.
    private static func sequenceGaps(in db: DatabaseConnection) throws -> [String] {
        let expired: SQL = "CASE WHEN c.last_message_id IS NULL THEN c.last_sequence ELSE 0 END"
        let last: SQL = "COALESCE(MAX(m.sequence), \(expired))"
        let first: SQL = "COALESCE(MIN(m.sequence), \(expired) + 1)"
        return try db.rows(
            """
            SELECT c.tenant, c.id, c.last_sequence, COUNT(m.sequence), \(last), \(first)
            FROM \(allConversations) AS c
            LEFT JOIN \(allMessages) AS m ON m.tenant = c.tenant AND m.conversation_id = c.id
            GROUP BY c.tenant, c.id, c.last_sequence, c.last_message_id
            HAVING \(last) <> c.last_sequence OR COUNT(m.sequence) <> c.last_sequence - \(first) + 1
            """
        ) { row in
            """
            \(try row.text(0))/\(try row.text(1)): the last number is \(try row.integer(2)), of \(try row.integer(3)) \
            messages from \(try row.integer(5)) to \(try row.integer(4))
            """
        }
    }

    /// Checks that the places, the list of members and their number agree.
    private static func memberDifferences(in db: DatabaseConnection) throws -> [String] {
        try db.rows(
            """
            SELECT c.tenant, c.id, c.member_count,
                (SELECT COUNT(*) FROM \(allMembers) AS m
                    WHERE m.tenant = c.tenant AND m.conversation_id = c.id) AS places,
                (SELECT COUNT(*) FROM \(allRosters) AS r
                    WHERE r.tenant = c.tenant AND r.conversation_id = c.id) AS listed,
                (SELECT COUNT(*) FROM \(allRosters) AS r
                    JOIN \(allMembers) AS m
                    ON m.tenant = r.tenant AND m.user_id = r.user_id AND m.conversation_id = r.conversation_id
                    WHERE r.tenant = c.tenant AND r.conversation_id = c.id) AS agreed
            FROM \(allConversations) AS c
            """
        ) { row in
            let counts = try (2...5).map { try row.integer($0) }
            guard Set(counts).count > 1 else { return nil }
            return "\(try row.text(0))/\(try row.text(1)): the members are counted, placed, listed, both: \(counts)"
        }.compactMap { $0 }
    }

    /// Checks that each place agrees with the unread messages.
    private static func unreadDifferences(in db: DatabaseConnection) throws -> [String] {
        var differences: [String] = []
        try countUnread(in: db) { owner, conversation, stored, counted in
            guard stored != counted else { return }
            differences.append("\(owner.tenant)/\(owner.userId): \(stored) unread in \(conversation) are \(counted)")
        }
        return differences
    }

    static let share = CountedShare(share: .messages) { db in
        var sums: [Owner: Int] = [:]
        try countUnread(in: db) { owner, _, _, counted in sums[owner, default: 0] += counted }
        return sums
    }

    /// Counts the unread messages of each place one by one.
    private static func countUnread(
        in db: DatabaseConnection,
        _ body: (_ owner: Owner, _ conversation: String, _ stored: Int, _ counted: Int) -> Void
    ) throws {
        try db.forEach(
            """
            SELECT p.tenant, p.user_id, p.conversation_id, c.last_sequence - p.position - p.excluded,
                (SELECT COUNT(*) FROM \(allMessages) AS m
                    WHERE m.tenant = p.tenant AND m.conversation_id = p.conversation_id AND m.sequence > p.position
                        AND m.sender_id <> p.user_id AND m.deleted_at IS NULL)
            FROM \(allMembers) AS p
            JOIN \(allConversations) AS c ON c.tenant = p.tenant AND c.id = p.conversation_id
            """
        ) { row in
            let owner = Owner(tenant: try row.id(0), userId: try row.id(1))
            body(owner, try row.text(2), try row.integer(3), try row.integer(4))
            return true
        }
    }
}
