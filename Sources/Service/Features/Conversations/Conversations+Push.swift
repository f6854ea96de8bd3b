import Database
import Domain
import Values

extension ConversationsFeature {
    /// Returns what a member has not read in a conversation; nil if there is nothing.
    static func unread(
        _ id: ID<Conversation>, of owner: Owner, in db: DatabaseConnection
    ) throws -> UnreadConversation? {
        let found = try db.row(
            """
            SELECT c.title, c.last_sequence - m.position - m.excluded, m.position
            FROM \(members, within: owner.tenant, sending) AS m
            JOIN \(conversations, within: owner.tenant, sending) AS c ON c.tenant = m.tenant AND c.id = m.conversation_id
            WHERE m.user_id = \(owner.userId) AND m.conversation_id = \(id)
            """
        ) { (title: try $0.optionalText(0), unread: try $0.integer(1), position: try $0.integer(2)) }
        guard let found, found.unread > 0 else { return nil }
        let newest = try db.row(
            """
            SELECT \(messageColumns) FROM \(messages, within: owner.tenant, sending)
            WHERE conversation_id = \(id) AND sequence > \(found.position)
                AND sender_id <> \(owner.userId) AND is_deleted = 0
            ORDER BY sequence DESC LIMIT 1
            """, Message.init(row:))
        return newest.map {
            UnreadConversation(userId: owner.userId, title: found.title, count: found.unread, newest: $0)
        }
    }

    private static let sending = Unscoped.bookkeeping("a message to the member's own devices or the app's own server")
}
