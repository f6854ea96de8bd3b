import Database
import Domain
import Values

extension ConversationsFeature {
    private static let expiring = Unscoped.bookkeeping("messages of all conversations expire")

    /// Messages of one conversation that one transaction deletes.
    private static let expiredAtOnceMax = 500

    /// Deletes messages that are older than the setting. The numbers of the others stay.
    static let retention = Sweep.deleting(
        "messages.retention", afterDays: { $0.messagesKeptDays },
        of: WalkedTable(conversations, by: "id", expiring),
        oldest: { tenant in
            """
            SELECT m.sent_at FROM \(messages, within: tenant, expiring) AS m
            WHERE m.conversation_id = walked.id ORDER BY m.sequence LIMIT 1
            """
        }
    ) { try deleteMessages(before: $0, in: $1, $2) }

    private static func deleteMessages(
        before end: Timestamp, in id: ID<Conversation>, _ tx: Transaction
    ) throws {
        try tx.lock(.conversation(id))
        let oldest = try tx.db.rows(
            """
            SELECT sequence, sent_at FROM \(messages, within: tx.tenant, expiring)
            WHERE conversation_id = \(id) ORDER BY sequence LIMIT \(expiredAtOnceMax)
            """
        ) { (sequence: try $0.integer(0), sentAt: try $0.moment(1)) }
        guard let conversation = try find(id, tx),
            let newest = oldest.prefix(while: { $0.sentAt < end }).last?.sequence
        else { return }
        try skipUnread(through: newest, in: conversation, tx)
        try tx.db.run(
            """
            DELETE FROM \(messages, within: tx.tenant, expiring)
            WHERE conversation_id = \(id) AND sequence <= \(newest)
            """)
        guard newest == conversation.lastSequence else { return }
        try tx.db.run(
            """
            UPDATE \(conversations, within: tx.tenant, expiring)
            SET last_message_id = NULL, last_sender_id = NULL, last_preview = NULL, last_sent_at = NULL
            WHERE id = \(id)
            """)
    }

    /// Moves the members that have not read the messages behind them, so that the counts stay exact.
    private static func skipUnread(through sequence: Int, in conversation: Conversation, _ tx: Transaction) throws {
        let (id, last) = (conversation.id, conversation.lastSequence)
        let behind = try places(in: id, tx).filter { $0.place.position < sequence }
        try tx.lock(behind.map { .user($0.userId) })
        let moved = try behind.map { userId, place in
            (userId: userId, place: try move(place, of: userId, to: sequence, in: conversation, tx))
        }
        try tx.storeCounts(of: moved.map(\.userId))
        for (userId, place) in moved {
            let state = readState(place, of: id, last: last, try tx.badges(of: userId))
            publish(readState: state, of: userId, in: id, tx)
        }
    }
}
