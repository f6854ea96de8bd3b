import Database
import Domain
import Values

extension NotificationsFeature {
    private static let naming = Unscoped.reaction("notifications that name an erased person end for their users")

    /// Rows of one transaction of an erasure; all of them are read.
    private static let lookedThroughAtOnce = 400

    /// A notification that may name an erased person.
    private struct Mention {
        let userId: ID<User>
        let id: ID<Notification>
        let eventId: String?
        let data: [UInt8]

        init(_ row: Row) throws {
            userId = try row.id(0)
            id = try row.id(1)
            eventId = try row.optionalText(2)
            data = try row.bytes(3)
        }

        /// Whether the event's id names the person.
        func isEventNaming(_ names: PersonNames) -> Bool { eventId.map(names.occur(inEvent:)) ?? false }
    }

    /// Removes other users' notifications whose data names an erased person, such as a request.
    static let keptStep = PersonStep("notifications.kept") { person, place, tx in
        let names = PersonNames(person)
        let (last, found) = try mentions("removed_at IS NULL", by: "id", after: place, tx) {
            $0.userId != person && (names.arePerson(in: $0.data) || $0.isEventNaming(names))
        }
        try tx.lock(found.map { .user($0.userId) })
        for mention in found { try removeStored(mention.id, of: mention.userId, within: naming, tx) }
        return last
    }

    /// Clears removed notifications that name an erased person, whose rows still recognize repeated events.
    static let removedStep = PersonStep("notifications.removed") { person, place, tx in
        let names = PersonNames(person)
        let (last, found) = try mentions(
            "removed_at IS NOT NULL AND event_id IS NOT NULL", by: "event_id", after: place, tx
        ) {
            names.arePerson(in: $0.data) || $0.isEventNaming(names)
        }
        for mention in found {
            let isRow: SQL = "event_id = \(mention.eventId) AND removed_at IS NOT NULL"
            try tx.db.run(
                mention.isEventNaming(names)
                    ? "DELETE FROM \(notifications, of: mention.userId, in: tx.tenant) WHERE \(isRow)"
                    : """
                    UPDATE \(notifications, of: mention.userId, in: tx.tenant)
                    SET title = '', message = '', lock_screen = '', data = '{}' WHERE \(isRow)
                    """)
        }
        return last
    }

    /// Returns the notifications of the next rows that a test accepts, and the place after these rows.
    private static func mentions(
        _ condition: SQL, by column: SQL, after place: String?, _ tx: Transaction, where isMeant: (Mention) -> Bool
    ) throws -> (last: String?, found: [Mention]) {
        let after = PairedPlace(reading: place)
        let rows = try tx.db.rows(
            """
            SELECT user_id, id, event_id, data, \(column) FROM \(notifications, within: tx.tenant, naming)
            WHERE \(condition) AND (user_id, \(column)) > (\(after.first), \(after.second))
            ORDER BY user_id, \(column) LIMIT \(lookedThroughAtOnce)
            """
        ) { (mention: try Mention($0), place: PairedPlace(try $0.text(0), try $0.text(4)).text) }
        let last = rows.count < lookedThroughAtOnce ? nil : rows.last?.place
        return (last, rows.map(\.mention).filter(isMeant))
    }
}
