import Database
import Domain
import MicroHTTP
import Visibility

extension ConversationsFeature {
    static let messageEndpoints = [
        Endpoint(.get, "/v1/conversations/{id}/messages", access: .bearer, listMessages),
        Endpoint(.post, "/v1/conversations/{id}/messages", access: .bearer, send),
        Endpoint(.delete, "/v1/conversations/{id}/messages/{messageId}", access: .bearer, delete),
    ]

    /// `GET …/messages`: the newest first, back by the cursor; with `since`, the oldest first from behind that number.
    private static func listMessages(_ call: Call) throws -> Answer {
        let query = try call.query(["since", "limit", "cursor"])
        let page = try query.page(limitMax: ConversationLimits.pageMax)
        let since = try query.int("since", in: 0...(1 << 53))
        let id = try call.pathID(0, Conversation.self)
        let after = page.after.flatMap { Int($0) }
        return .read { tx in
            _ = try require(id, tx)
            let listing = messages(
                in: id, before: since == nil ? after : nil, after: since.map { after ?? $0 }, limit: page.limit + 1,
                visibleTo: tx.scope)
            let found = try tx.db.rows(listing, message)
            let items = Array(found.prefix(page.limit))
            return Response.page(
                items, next: found.count > page.limit ? items.last.map { "\($0.sequence)" } : nil, call)
        }
    }

    /// `POST …/messages`: the message gets the next number, and every other member one more unread.
    private static func send(_ call: Call) throws -> Answer {
        _ = try call.query([])
        let id = try call.pathID(0, Conversation.self)
        var fields = try call.fields()
        let draft = MessageDraft(reading: &fields)
        try fields.finish()
        return .write(on: .conversation(id)) { tx in
            if let messageId = draft.id, let known = try findMessage(messageId, in: id, tx) {
                return try repeated(known, tx)
            }
            let messageId = draft.id ?? tx.makeID(Message.self)
            guard let taken = try takeSequence(for: messageId, in: id, text: draft.text, tx) else {
                throw Failure.notFound("conversation")
            }
            let message = Message(
                id: messageId, conversationId: id, sequence: taken.sequence, senderId: tx.caller.userId,
                text: draft.text, sentAt: tx.now)
            try insert(message, tx)
            try excludeOwn(of: message.senderId, in: id, tx)
            let unread = try deliver(message, order: taken.order, tx)
            return try response(201, message, unread: unread, tx)
        }
    }

    /// Tells each member of a message, with that member's own counts (CNT R-RT-1).
    ///
    /// - Returns: the sender's unread count; nil: the sender is no member.
    private static func deliver(_ message: Message, order: String, _ tx: Transaction) throws -> Int? {
        let places = try places(in: message.conversationId, tx)
        try tx.hold(places.map { .user($0.userId) })
        let others = places.filter { $0.userId != message.senderId }
        for (userId, _) in others { try tx.adjustBadges(of: userId, messages: 1) }
        try tx.storeCounts(of: others.map(\.userId))
        // What all are told alike is written once.
        let (written, preview) = (JSONWriter.bytes(message), JSONWriter.bytes(MessagePreview.line(of: message.text)))
        var ownUnread: Int?
        for (userId, place) in places {
            let unread = place.unread(of: message.sequence)
            if userId == message.senderId { ownUnread = unread }
            let badges = try tx.badges(of: userId)
            let data = JSONWriter.object { writer in
                writer.member("conversationId", message.conversationId)
                writer.member("message", json: written)
                writer.member("preview", json: preview)
                writer.member("order", order)
                writer.member("unread", unread)
                writer.member("badges", badges)
            }
            tx.emit("message:created", audience: audience(of: userId), data: data)
        }
        return ownUnread
    }

    /// The id was used before: the answer is that of the first time, with today's counts.
    private static func repeated(_ known: Message, _ tx: Transaction) throws -> Response {
        guard known.senderId == tx.caller.userId else {
            throw Failure(.conflict, "message.id_taken", "Somebody else's message has this id.")
        }
        let conversation = try require(known.conversationId, tx)
        let place = try findPlace(of: tx.caller.userId, in: known.conversationId, tx)
        return try response(200, known, unread: place?.unread(of: conversation.lastSequence), tx)
    }

    private static func response(
        _ status: Int, _ message: Message, unread: Int?, _ tx: Transaction
    ) throws -> Response {
        let badges = try tx.badges(of: tx.caller.userId)
        return Response.json(
            status,
            JSONWriter.object { writer in
                writer.member("message", message)
                writer.member("unread", unread)
                writer.member("badges", badges)
            })
    }

    /// `DELETE …/messages/{messageId}`: senders take back their own, backends any. The number stays, without a text.
    private static func delete(_ call: Call) throws -> Answer {
        _ = try call.query([])
        let (id, messageId) = try (call.pathID(0, Conversation.self), call.pathID(1, Message.self))
        return .write(on: .conversation(id)) { tx in
            let last = try require(id, tx).lastSequence
            guard let known = try findMessage(messageId, in: id, tx) else { throw Failure.notFound("message") }
            if known.deletedAt == nil {
                guard let erased = try erase(messageId, in: id, tx) else {
                    throw Failure.forbidden(
                        "Only its sender, or a backend, deletes a message.", code: "message.not_yours")
                }
                try tell(deletionOf: erased, last: last, tx)
            }
            let badges = try tx.badges(of: tx.caller.userId)
            return Response.json(200, JSONWriter.object { $0.member("badges", badges) })
        }
    }

    /// Those whose counts have changed are told them; the others, that the message is gone.
    private static func tell(deletionOf erased: Message, last: Int, _ tx: Transaction) throws {
        let changed = try exclude(erased, tx)
        try tx.hold(changed.map { .user($0.userId) })
        for (userId, _) in changed { try tx.adjustBadges(of: userId, messages: -1) }
        try tx.storeCounts(of: changed.map(\.userId))
        for (userId, place) in changed {
            let badges = try tx.badges(of: userId)
            let data = JSONWriter.object { writer in
                write(deletionOf: erased, to: &writer)
                writer.member("unread", place.unread(of: last))
                writer.member("badges", badges)
            }
            tx.emit("message:deleted", audience: audience(of: userId), data: data)
        }
        let affected = Set(changed.map(\.userId))
        let others = try memberIds(of: erased.conversationId, tx).filter { !affected.contains($0) }
        guard !others.isEmpty else { return }
        tx.emit(
            "message:deleted", audience: others.flatMap { audience(of: $0) },
            data: JSONWriter.object { write(deletionOf: erased, to: &$0) })
    }

    private static func write(deletionOf erased: Message, to writer: inout JSONWriter) {
        writer.member("conversationId", erased.conversationId)
        writer.member("messageId", erased.id)
        writer.member("sequence", erased.sequence)
    }

    // MARK: Telling

    /// Members are told each by their own key, with their own counts; backends would be told everything many times.
    static func audience(of userId: ID<User>) -> [String] { [AudienceKey.make("user", userId.text)] }

    /// One event for all who are named: a conversation is new, has another title, or other members.
    static func tell(
        _ conversation: Conversation, to members: [ID<User>], joined: [ID<User>] = [], left: [ID<User>] = [],
        _ tx: Transaction
    ) {
        guard !members.isEmpty else { return }
        tx.emit(
            "conversation:updated", audience: members.flatMap { audience(of: $0) },
            data: JSONWriter.object { writer in
                writer.member("conversation") { conversation.write(membersTo: &$0) }
                writer.member("joined", joined)
                writer.member("left", left)
            })
    }

    /// The counts of somebody who may not be the caller: known if this transaction has changed them.
    static func badges(of userId: ID<User>, unchanged: Bool, _ tx: Transaction) throws -> Badges? {
        unchanged && userId != tx.caller.userId ? nil : try tx.badges(of: userId)
    }
}
