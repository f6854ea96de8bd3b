import Database
import Domain
import Values
import Visibility

extension ConversationsFeature {
    private static let leaving = Unscoped.reaction("an erased person's messages and memberships end for all members")

    /// Messages of one transaction. Each may change the counts of 256 members.
    private static let erasedAtOnceMax = 16

    /// Deletes the person's messages as the person could, and removes the sender from all of them.
    ///
    /// It visits every conversation of the tenant, because the person may have left some. An index finds the person's
    /// messages in each.
    static let messagesStep = PersonStep("conversations.messages") { person, place, tx in
        let step: (found: ID<Conversation>?, last: String)? = try tx.look(
            after: place, of: PersonStep.lookedUpAtOnce, in: WalkedTable(conversations, by: "id", leaving),
            where: """
                EXISTS (SELECT 1 FROM \(messages, within: tx.tenant, leaving) AS m
                    WHERE m.conversation_id = walked.id AND m.sender_id = \(person))
                """)
        guard let step else { return nil }
        if let found = step.found {
            try eraseMessages(of: person, in: found, tx)
            return place ?? ""
        }
        try forgetPairs(of: person, after: place ?? "", through: step.last, tx)
        return step.last
    }

    private static func eraseMessages(of person: ID<User>, in id: ID<Conversation>, _ tx: Transaction) throws {
        try tx.lock(.conversation(id))
        guard let last = try find(id, tx)?.lastSequence else { return }
        let own = try tx.db.rows(
            """
            SELECT \(messageColumns) FROM \(messages, within: tx.tenant, leaving)
            WHERE conversation_id = \(id) AND sender_id = \(person)
            ORDER BY sequence LIMIT \(erasedAtOnceMax)
            """, Message.init(row:))
        for message in own where message.deletedAt == nil {
            if let erased = try erase(message.id, in: id, tx) { try publish(deletionOf: erased, last: last, tx) }
        }
        try tx.db.run(
            """
            UPDATE \(messages, within: tx.tenant, leaving) SET sender_id = \(ID<User>.erased)
            WHERE conversation_id = \(id) AND sender_id = \(person)
                AND sequence <= \(own.last?.sequence ?? 0)
            """)
    }

    /// Clears the names of the pairs of direct conversations with the person.
    private static func forgetPairs(
        of person: ID<User>, after first: String, through last: String, _ tx: Transaction
    ) throws {
        let (start, end) = ("\(AudienceKey.make("pair", person.text)):", ":\(AudienceKey.make(person.text))")
        try tx.db.run(
            """
            UPDATE \(conversations, within: tx.tenant, leaving) SET pair = NULL
            WHERE id > \(first) AND id <= \(last) AND pair IS NOT NULL
                AND (substr(pair, 1, \(start.utf8.count)) = \(start)
                    OR substr(pair, length(pair) + 1 - \(end.utf8.count)) = \(end))
            """)
    }

    /// Conversations of one transaction. Each names the person to its 256 members.
    private static let leftAtOnceMax = 8

    static let membersStep = PersonStep.repeating("conversations.members") { person, tx in
        let ids: [ID<Conversation>] = try tx.db.rows(
            """
            SELECT conversation_id FROM \(members, of: person, in: tx.tenant)
            ORDER BY conversation_id LIMIT \(leftAtOnceMax)
            """
        ) { try $0.id(0) }
        try tx.lock(ids.map { .conversation($0) })
        for id in ids {
            let members = try memberIds(of: id, tx)
            if var conversation = try find(id, tx), members.contains(person) {
                _ = try remove(person, from: &conversation, members, tx)
            } else {
                _ = try deletePlace(of: person, in: id, tx)
            }
        }
        return !ids.isEmpty
    }
}
