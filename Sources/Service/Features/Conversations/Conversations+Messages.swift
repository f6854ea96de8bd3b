import Database
import Domain
import MicroHTTP
import Rows
import Values
import Visibility

extension ConversationsFeature {
    static let messageEndpoints = [
        Endpoint(
            .get, "/v1/conversations/{id}/messages", access: .bearer, query: ["since", "limit", "cursor"],
            listMessages),
        Endpoint(.post, "/v1/conversations/{id}/messages", access: .bearer, adds: true, send),
        Endpoint(.delete, "/v1/conversations/{id}/messages/{messageId}", access: .bearer, delete),
    ]

    /// `GET …/messages`: newest first, paged back by the cursor; with `since`, oldest first after that number.
    private static func listMessages(_ call: Call) throws -> Answer {
        let page = try call.page(limitMax: ConversationLimits.pageMax)
        let since = try call.query.int("since", in: 0...(1 << 53))
        let id = try call.pathID(0, Conversation.self)
        let after = page.after.flatMap { Int($0) }
        return .read { tx in
            _ = try require(id, tx)
            let listing = messages(
                in: id, before: since == nil ? after : nil, after: since.map { after ?? $0 }, limit: page.rowsMax,
                visibleTo: tx.scope)
            return page.response(try tx.db.rows(listing, Message.init(row:))) { "\($0.sequence)" }
        }
    }

    /// `POST …/messages`: gives the message the next number, and every other member one more unread message.
    private static func send(_ call: Call) throws -> Answer {
        let id = try call.pathID(0, Conversation.self)
        let draft = try call.body(MessageDraft.init(reading:))
        return .write(locking: .conversation(id)) { tx in
            if let messageId = draft.id, let known = try find(messageId, in: id, tx) {
                return try repeated(known, tx)
            }
            let messageId = draft.id ?? tx.makeID(Message.self)
            let taken = try takeSequence(for: messageId, in: id, text: draft.text, tx).required("conversation")
            // A block may be newer than the conversation.
            if let pair = taken.pair { try tx.requireContact(.conversations, with: users(of: pair)) }
            let message = Message(
                id: messageId, conversationId: id, sequence: taken.sequence, senderId: tx.caller.userId,
                text: draft.text, sentAt: tx.now)
            try insert(message, tx)
            try excludeOwn(of: message.senderId, in: id, tx)
            let unread = try deliver(message, order: taken.order, tx)
            return try response(201, message, unread: unread, tx)
        }
    }

    /// Publishes a message to each member, with that member's own counts (R-CNT-RT-1).
    ///
    /// - Returns: The sender's unread count; nil if the sender is not a member.
    private static func deliver(_ message: Message, order: String, _ tx: Transaction) throws -> Int? {
        let places = try places(in: message.conversationId, tx)
        try tx.lock(places.map { .user($0.userId) })
        let others = places.filter { $0.userId != message.senderId }
        for (userId, _) in others { try tx.adjustBadges(of: userId, messages: 1) }
        try tx.storeCounts(of: others.map(\.userId))
        tx.record(.messageDelivered(message, to: others.map(\.userId)))
        // The common part of all events is written once, and stored once.
        let shared = SharedMembers { writer in
            writer.member("conversationId", message.conversationId)
            writer.member("message", message)
            writer.member("preview", MessagePreview.line(of: message.text))
            writer.member("order", order)
        }
        var ownUnread: Int?
        for (userId, place) in places {
            let unread = place.unread(of: message.sequence)
            if userId == message.senderId { ownUnread = unread }
            let badges = try tx.badges(of: userId)
            let own = JSONWriter.object { writer in
                writer.member("unread", unread)
                writer.member("badges", badges)
            }
            tx.publish("message:created", audience: audience(of: userId), shared: shared, data: own)
        }
        return ownUnread
    }

    /// Returns the answer for an id that was used before: the first answer, with the current counts.
    private static func repeated(_ known: Message, _ tx: Transaction) throws -> Response {
        guard known.senderId == tx.caller.userId else {
            throw Failure(.conflict, "message.id_taken", "A message of another user already has this id.")
        }
        let conversation = try require(known.conversationId, tx)
        let place = try findPlace(of: tx.caller.userId, in: known.conversationId, tx)
        return try response(200, known, unread: place?.unread(of: conversation.lastSequence), tx)
    }

    private static func response(_ status: Int, _ message: Message, unread: Int?, _ tx: Transaction) throws -> Response
    {
        let badges = try tx.badges(of: tx.caller.userId)
        return Response.json(status) { writer in
            writer.member("message", message)
            writer.member("unread", unread)
            writer.member("badges", badges)
        }
    }

    /// `DELETE …/messages/{messageId}`: senders delete their own messages, backends any. The number remains, without a
    /// text.
    private static func delete(_ call: Call) throws -> Answer {
        let (id, messageId) = try (call.pathID(0, Conversation.self), call.pathID(1, Message.self))
        return .write(locking: .conversation(id)) { tx in
            let last = try require(id, tx).lastSequence
            let known = try find(messageId, in: id, tx).required("message")
            if known.deletedAt == nil {
                guard let erased = try erase(messageId, in: id, tx) else {
                    throw Failure.forbidden(
                        "Only the sender or a backend may delete a message.", code: "message.not_yours")
                }
                try publish(deletionOf: erased, last: last, tx)
            }
            let badges = try tx.badges(of: tx.caller.userId)
            return Response.json(200) { $0.member("badges", badges) }
        }
    }

    /// Publishes a deletion. Members whose counts have changed receive the counts; the others only receive the
    /// deletion.
    static func publish(deletionOf erased: Message, last: Int, _ tx: Transaction) throws {
        let changed = try exclude(erased, tx)
        try tx.lock(changed.map { .user($0.userId) })
        for (userId, _) in changed { try tx.adjustBadges(of: userId, messages: -1) }
        try tx.storeCounts(of: changed.map(\.userId))
        for (userId, place) in changed {
            if place.unread(of: last) == 0 { tx.record(.conversationRead(erased.conversationId, by: userId)) }
            let badges = try tx.badges(of: userId)
            let data = JSONWriter.object { writer in
                write(deletionOf: erased, to: &writer)
                writer.member("unread", place.unread(of: last))
                writer.member("badges", badges)
            }
            tx.publish("message:deleted", audience: audience(of: userId), data: data)
        }
        let affected = Set(changed.map(\.userId))
        let others = try memberIds(of: erased.conversationId, tx).filter { !affected.contains($0) }
        guard !others.isEmpty else { return }
        tx.publish(
            "message:deleted", audience: others.flatMap { audience(of: $0) },
            data: JSONWriter.object { write(deletionOf: erased, to: &$0) })
    }

    private static func write(deletionOf erased: Message, to writer: inout JSONWriter) {
        writer.member("conversationId", erased.conversationId)
        writer.member("messageId", erased.id)
        writer.member("sequence", erased.sequence)
    }

    // MARK: Events

    /// Returns the audience of one member, for an event with that member's counts. Backends would receive such an event
    /// once per member.
    static func audience(of userId: ID<User>) -> [String] { [AudienceKey.make("user", userId.text)] }

    /// Publishes a conversation that is new, or whose title or members changed, in one event for all named members.
    static func publish(
        _ conversation: Conversation, to members: [ID<User>], joined: [ID<User>] = [], left: [ID<User>] = [],
        _ tx: Transaction
    ) {
        guard !members.isEmpty else { return }
        tx.publish(
            "conversation:updated", audience: members.flatMap { audience(of: $0) },
            data: JSONWriter.object { writer in
                writer.member("conversation") { conversation.write(membersTo: &$0) }
                writer.member("joined", joined)
                writer.member("left", left)
            })
    }
}
