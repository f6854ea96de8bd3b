import Database

@testable import Service

/// A model of conversations that keeps every message and every read position, and no counts. It recounts each number
/// that the service stores, on each query.
///
/// It predicts the status and the counts of each answer, and every row that the service stores.
struct ConversationModel {
    struct Message {
        let id: String
        let sender: String
        var isDeleted = false
    }

    struct Place {
        /// The number of the last message when the member joined.
        let joined: Int
        var position: Int
    }

    struct Room {
        /// Message n is at index n − 1.
        var messages: [Message] = []
        var places: [String: Place] = [:]

        func index(of messageId: String) -> Int? { messages.firstIndex { $0.id == messageId } }

        /// Counts the unread messages one by one: messages of others after the position that are not deleted.
        func unread(of user: String) -> Int? {
            places[user].map { place in
                messages[place.position...].reduce(0) { $0 + ($1.sender != user && !$1.isDeleted ? 1 : 0) }
            }
        }

        fileprivate func rows(of id: String) -> [String] {
            let last = messages.last
            let isShown = last.map { !$0.isDeleted } ?? false
            var rows = [
                Self.row(
                    "conversation", id, last?.id ?? "", last?.sender ?? "", messages.count, places.count,
                    places.isEmpty ? 1 : 0, isShown ? 1 : 0)
            ]
            for (user, place) in places {
                let excluded = messages.count - place.position - (unread(of: user) ?? 0)
                rows.append(Self.row("place", id, user, "", place.joined, place.position, excluded, 0))
                rows.append(Self.row("roster", id, user, "", 0, 0, 0, 0))
            }
            for (index, message) in messages.enumerated() {
                let isDeleted = message.isDeleted ? 1 : 0
                rows.append(Self.row("message", id, message.id, message.sender, index + 1, isDeleted, isDeleted, 0))
            }
            return rows
        }

        fileprivate static func row(
            _ kind: String, _ first: String, _ second: String, _ third: String, _ numbers: Int...
        ) -> String {
            "\(kind) \(first) \(second) \(third) " + numbers.map { "\($0)" }.joined(separator: " ")
        }
    }

    private(set) var rooms: [String: Room]
    /// How often the count of each user has changed, and its current value.
    private var counts: [String: (messages: Int, version: Int)] = [:]

    init(_ ids: [String], members: [String]) {
        let places = members.map { ($0, Place(joined: 0, position: 0)) }
        rooms = Dictionary(
            uniqueKeysWithValues: ids.map { ($0, Room(places: Dictionary(uniqueKeysWithValues: places))) })
    }

    func room(_ id: String) -> Room { rooms[id] ?? Room() }

    func messages(of user: String) -> Int { rooms.values.reduce(0) { $0 + ($1.unread(of: user) ?? 0) } }

    func version(of user: String) -> Int { counts[user]?.version ?? 0 }

    /// Applies one operation, which is one transaction. Each user whose count changes gets one new version.
    mutating func change(_ id: String, _ body: (inout Room) -> Void) {
        var room = room(id)
        let users = Set(room.places.keys)
        body(&room)
        rooms[id] = room
        for user in users.union(room.places.keys) {
            let (now, known) = (messages(of: user), counts[user])
            if now != known?.messages ?? 0 { counts[user] = (now, (known?.version ?? 0) + 1) }
        }
    }

    // MARK: Rows

    /// Every row that must exist, without timestamps and the order of lists.
    var rows: Set<String> {
        var rows = Set(rooms.flatMap { $1.rows(of: $0) })
        for (user, count) in counts {
            rows.insert(Room.row("badge", user, "", "", count.messages, 0, 0, count.version))
        }
        return rows
    }

    /// Returns every stored row with one statement.
    static func storedRows(in db: DatabaseConnection) throws -> [String] {
        let all = Unscoped.audit("a recount reads the rows of all users")
        return try db.rows(
            """
            SELECT 'conversation', id, COALESCE(last_message_id, ''), COALESCE(last_sender_id, ''), last_sequence,
                member_count, CASE WHEN abandoned_at IS NULL THEN 0 ELSE 1 END,
                CASE WHEN last_preview IS NULL THEN 0 ELSE 1 END
            FROM \(ConversationsFeature.conversations, unscoped: all)
            UNION ALL SELECT 'place', conversation_id, user_id, '', joined, position, excluded, 0
            FROM \(ConversationsFeature.members, unscoped: all)
            UNION ALL SELECT 'roster', conversation_id, user_id, '', 0, 0, 0, 0
            FROM \(ConversationsFeature.rosters, unscoped: all)
            UNION ALL SELECT 'message', conversation_id, id, sender_id, sequence, is_deleted,
                CASE WHEN body = '' THEN 1 ELSE 0 END, 0
            FROM \(ConversationsFeature.messages, unscoped: all)
            UNION ALL SELECT 'badge', user_id, '', '', messages, requests, bell, version
            FROM \(BadgeLedger.badges, unscoped: all)
            """
        ) { row in
            Room.row(
                try row.text(0), try row.text(1), try row.text(2), try row.text(3), try row.integer(4),
                try row.integer(5), try row.integer(6), try row.integer(7))
        }
    }

    /// Returns the differences between the stored rows and the model; an empty list means no drift.
    func drift(in db: DatabaseConnection) throws -> [String] {
        let (stored, wanted) = (try Self.storedRows(in: db), rows)
        let found = Set(stored)
        guard found != wanted || stored.count != wanted.count else { return [] }
        return found.subtracting(wanted).sorted().map { "is there: \($0)" }
            + wanted.subtracting(found).sorted().map { "is missing: \($0)" }
            + (stored.count == found.count ? [] : ["\(stored.count - found.count) rows are there twice"])
    }
}
