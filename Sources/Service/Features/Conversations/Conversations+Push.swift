import Database
import Domain
import Values

extension ConversationsFeature {
    /// Returns the content of an alert about the newest message of a conversation; nil if the member has read it.
    static func pushText(
        _ id: ID<Conversation>, _ owner: Owner, _ db: DatabaseConnection
    ) throws -> PushText? {
        let found = try db.row(
            """
            SELECT c.title, c.last_preview, c.last_sequence - m.position - m.excluded
            FROM \(members, unscoped: pushing) AS m
            JOIN \(conversations, unscoped: pushing) AS c ON c.tenant = m.tenant AND c.id = m.conversation_id
            WHERE m.tenant = \(owner.tenant) AND m.user_id = \(owner.userId) AND m.conversation_id = \(id)
            """
        ) { (title: try $0.optionalText(0), preview: try $0.optionalText(1), unread: try $0.integer(2)) }
        guard let found, found.unread > 0 else { return nil }
        return PushText(
            generic: (title: found.unread == 1 ? "New message" : "\(found.unread) new messages", body: ""),
            full: (title: found.title ?? "New message", body: found.preview ?? ""), priority: .high,
            data: JSONWriter.object { writer in
                writer.member("type", "message")
                writer.member("conversationId", id)
                writer.member("unread", found.unread)
            })
    }

    private static let pushing = Unscoped.bookkeeping("a message to the member's own devices")
}
