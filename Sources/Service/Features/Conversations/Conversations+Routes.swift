import Database
import Domain
import MicroHTTP
import Rows
import Values
import Visibility

extension ConversationsFeature {
    static let endpoints = [
        Endpoint(.get, "/v1/conversations", access: .bearer, query: ["unread", "limit", "cursor"], listConversations),
        Endpoint(.post, "/v1/conversations", access: .bearer, adds: true, create),
        Endpoint(.get, "/v1/conversations/{id}", access: .bearer, show),
        Endpoint(.patch, "/v1/conversations/{id}", access: .bearer, change),
        Endpoint(.put, "/v1/conversations/{id}/members/{userId}", access: .bearer, adds: true, join),
        Endpoint(.delete, "/v1/conversations/{id}/members/{userId}", access: .bearer, leave),
        Endpoint(.put, "/v1/conversations/{id}/read-position", access: .bearer, read),
    ]

    private static func listConversations(_ call: Call) throws -> Answer {
        let page = try call.page(limitMax: ConversationLimits.pageMax)
        let listing = listing(
            of: call.caller.userId, onlyUnread: try call.query.bool("unread") ?? false, after: page.after,
            limit: page.rowsMax, visibleTo: call.caller.scope)
        return .query(listing) { rows in page.response(try rows.rows(view), by: \.conversation.order) }
    }

    private static func show(_ call: Call) throws -> Answer {
        let id = try call.pathID(0, Conversation.self)
        return .read { tx in try response(200, try require(id, tx), tx) }
    }

    // MARK: Creating and changing

    /// `POST /v1/conversations`: 201; 200 with the existing conversation if the id was used before, or the pair already
    /// has one.
    private static func create(_ call: Call) throws -> Answer {
        let draft = try call.body(ConversationDraft.init(reading:))
        let creator = call.caller.isService ? nil : call.caller.userId
        try draft.requireOwnID(of: creator)
        let members = try draft.members(with: creator)
        let pair = draft.kind == .direct ? AudienceKey.make("pair", members[0].text, members[1].text) : nil
        // The lock is the pair's name, because the id of its conversation is not known yet.
        let key = (draft.id?.text ?? pair).map { LockKey.conversation(ID($0)) }
        return .write(locking: key) { tx in
            if let id = draft.id, try isTaken(id, tx) {
                guard let known = try find(id, tx) else {
                    throw Failure(.conflict, "conversation.id_taken", "Another conversation already has this id.")
                }
                return try response(200, known, tx)
            }
            try tx.requireContact(.conversations, with: members)
            if let pair, let known = try reopen(pair, for: members, tx) { return known }
            let id = draft.id ?? tx.makeID(Conversation.self)
            let conversation = Conversation(
                id: id, kind: draft.kind, title: draft.title, createdBy: creator, createdAt: tx.now,
                memberCount: members.count, order: tx.makeID(Conversation.self).text)
            try tx.lock(members.map { .user($0) })
            for member in members { try seat(member, in: id, last: 0, tx) }
            try insert(conversation, pair: pair, tx)
            for member in members { try insertIntoRoster(member, of: id, tx) }
            publish(conversation, to: members, joined: members, tx)
            return try response(201, conversation, tx).located(at: "/v1/conversations", id)
        }
    }

    /// Returns the conversation of a pair, after adding both of them again.
    private static func reopen(_ pair: String, for members: [ID<User>], _ tx: Transaction) throws -> Response? {
        guard let id = try find(pair: pair, tx)?.id else { return nil }
        try tx.lock(.conversation(id))
        try tx.lock(members.map { .user($0) })
        guard var conversation = try find(pair: pair, tx) else { return nil }
        let there = Set(try places(in: id, tx).map(\.userId))
        let missing = members.filter { !there.contains($0) }
        guard !missing.isEmpty else { return try response(200, conversation, tx) }
        for member in missing { try seat(member, in: id, last: conversation.lastSequence, tx) }
        for member in missing { try insertIntoRoster(member, of: id, tx) }
        conversation.memberCount += missing.count
        try storeMemberCount(of: conversation, tx)
        publish(conversation, to: members, joined: missing, tx)
        return try response(200, conversation, tx)
    }

    private static func change(_ call: Call) throws -> Answer {
        let id = try call.pathID(0, Conversation.self)
        let change = try call.body(ConversationChange.init(reading:))
        return .write(locking: .conversation(id)) { tx in
            var conversation = try require(id, tx)
            try requireGroup(conversation)
            guard conversation.title != change.title else { return try response(200, conversation, tx) }
            conversation.title = change.title
            try tx.db.run("UPDATE \(conversations, writableBy: tx.scope) SET title = \(change.title) WHERE id = \(id)")
            publish(conversation, to: try memberIds(of: id, tx), tx)
            return try response(200, conversation, tx)
        }
    }

    // MARK: Members

    /// `PUT …/members/{userId}`: members and backends add a user. Earlier messages do not count as unread for the new
    /// member.
    private static func join(_ call: Call) throws -> Answer {
        let (id, userId) = try (call.pathID(0, Conversation.self), call.pathUser(1))
        return .write(locking: .conversation(id)) { tx in
            var conversation = try require(id, tx)
            let members = try memberIds(of: id, tx)
            guard !members.contains(userId) else { return try response(200, conversation, tx) }
            try requireGroup(conversation)
            guard conversation.memberCount < ConversationLimits.membersMax else {
                throw Failure(
                    .conflict, "conversation.full",
                    "A conversation can have at most \(ConversationLimits.membersMax) members.")
            }
            try tx.requireContact(.conversations, with: [userId])
            try tx.lock(.user(userId))
            // Written with the caller's right, before the new member has one.
            try insertIntoRoster(userId, of: id, tx)
            conversation.memberCount += 1
            try storeMemberCount(of: conversation, tx)
            try seat(userId, in: id, last: conversation.lastSequence, tx)
            publish(conversation, to: (members + [userId]).sorted(), joined: [userId], tx)
            return try response(200, conversation, tx)
        }
    }

    /// `DELETE …/members/{userId}`: members leave by themselves; backends remove any member. The unread messages are
    /// subtracted from the badge.
    private static func leave(_ call: Call) throws -> Answer {
        let (id, userId) = try (call.pathID(0, Conversation.self), call.pathUser(1))
        return .write(locking: .conversation(id)) { tx in
            var conversation = try require(id, tx)
            let members = try memberIds(of: id, tx)
            guard members.contains(userId) else { throw Failure.notFound("member") }
            guard let unread = try remove(userId, from: &conversation, members, tx) else {
                throw Failure.forbidden(
                    "A member may only remove themselves; only a backend may remove other members.",
                    code: "conversation.not_yours")
            }
            let own = try tx.badges(of: tx.caller.userId)
            // The counts of another user are available only if this transaction has changed them.
            let badges = userId == tx.caller.userId ? own : unread == 0 ? nil : try tx.badges(of: userId)
            tx.publish(
                "conversation:removed", audience: audience(of: userId),
                data: JSONWriter.object { writer in
                    writer.member("conversationId", id)
                    if let badges { writer.member("badges", badges) }
                })
            return Response.json(200) { $0.member("badges", own) }
        }
    }

    /// Removes a member, and publishes that to the others.
    ///
    /// - Returns: The number of messages that were unread; nil if the caller may not remove the member.
    static func remove(
        _ userId: ID<User>, from conversation: inout Conversation, _ members: [ID<User>], _ tx: Transaction
    ) throws -> Int? {
        try tx.lock(.user(userId))
        // Written while the caller still has the right.
        conversation.memberCount -= 1
        try storeMemberCount(of: conversation, tx)
        guard let place = try deletePlace(of: userId, in: conversation.id, tx) else { return nil }
        let unread = place.unread(of: conversation.lastSequence)
        try tx.adjustBadges(of: userId, messages: -unread)
        tx.record(.conversationRead(conversation.id, by: userId))
        publish(conversation, to: members.filter { $0 != userId }, left: [userId], tx)
        return unread
    }

    private static func requireGroup(_ conversation: Conversation) throws(Failure) {
        guard conversation.kind == .group else {
            throw Failure(.conflict, "conversation.direct", "The members of a direct conversation cannot change.")
        }
    }

    // MARK: Reading

    /// `PUT …/read-position`: moves the caller's position, and returns the unread counts (R-CNT-RT-2, R-CNT-RECON-3).
    private static func read(_ call: Call) throws -> Answer {
        let id = try call.pathID(0, Conversation.self)
        let change = try call.body(ReadPositionChange.init(reading:))
        return .write(locking: .conversation(id)) { tx in
            let conversation = try require(id, tx)
            let last = conversation.lastSequence
            let userId = tx.caller.userId
            let before = try findPlace(of: userId, in: id, tx).required("membership")
            let target = try before.target(of: change, last: last)
            let place = try move(before, of: userId, to: target, in: conversation, tx)
            let state = readState(place, of: id, last: last, try tx.badges(of: userId))
            if place != before { publish(readState: state, of: userId, in: id, tx) }
            return Response.json(200, state)
        }
    }

    /// Moves a member's read position, and changes the counts. To be called with the conversation and the member locked.
    static func move(
        _ before: ReadPlace, of userId: ID<User>, to target: Int, in conversation: Conversation, _ tx: Transaction
    ) throws -> ReadPlace {
        let (id, last) = (conversation.id, conversation.lastSequence)
        var place = before
        try place.move(to: target, last: last) { run in
            try tx.db.integer(countExcluded(in: run, of: userId, in: id, tenant: tx.tenant)) ?? 0
        }
        guard place != before else { return place }
        try store(place, of: userId, in: id, tx)
        try tx.adjustBadges(of: userId, messages: place.unread(of: last) - before.unread(of: last))
        if place.unread(of: last) == 0 { tx.record(.conversationRead(id, by: userId)) }
        return place
    }

    static func readState(_ place: ReadPlace, of id: ID<Conversation>, last: Int, _ badges: SentBadges) -> [UInt8] {
        JSONWriter.object { writer in
            writer.member("conversationId", id)
            writer.member("readPosition", place.position)
            writer.member("unread", place.unread(of: last))
            writer.member("badges", badges)
        }
    }

    /// Publishes a member's read position. The event carries a state: of several moves, the last is enough.
    static func publish(readState: [UInt8], of userId: ID<User>, in id: ID<Conversation>, _ tx: Transaction) {
        tx.publish(
            "conversation:read", audience: audience(of: userId),
            collapse: "read:" + AudienceKey.make(id.text, userId.text), data: readState)
    }

    private static func response(_ status: Int, _ conversation: Conversation, _ tx: Transaction) throws -> Response {
        let view = ConversationView(
            conversation, place: try findPlace(of: tx.caller.userId, in: conversation.id, tx),
            members: try memberIds(of: conversation.id, tx))
        return Response.json(status, view)
    }
}
