import Database
import Domain
import MicroHTTP
import Rows
import Values

/// Requests between users: created, answered or withdrawn, published to both sides, and counted in the recipient's
/// badge.
enum RequestsFeature {
    static let feature = Feature(
        name: "requests", set: .requests, tables: [requests], migrations: migrations, endpoints: endpoints,
        reaction: reaction, ticks: [pruning], personSteps: [personStep], share: share,
        events: ["request:created", "request:updated", "request:removed"],
        constants: { writer, _ in
            writer.member(
                "userRequests", ["openMax": RequestLimits.openMax, "seenAtOnceMax": RequestLimits.seenAtOnceMax])
        })

    static let reaction: Reaction = { tx, fact in
        guard case .requestNotificationsMarked(let requests, let isSeen) = fact else { return }
        var rest = requests[...]
        while !rest.isEmpty {
            let count = try storeSeen(rest.prefix(storedAtOnceMax), isSeen, tx)
            try adjust(isSeen ? -count : count, of: tx.caller.userId, tx)
            rest = rest.dropFirst(storedAtOnceMax)
        }
    }

    /// Binds of one statement.
    private static let storedAtOnceMax = 128

    static let endpoints = [
        Endpoint(
            .get, "/v1/requests", access: .bearer, query: ["direction", "status", "kind", "limit", "cursor"], list),
        Endpoint(.post, "/v1/requests", access: .bearer, adds: true, create),
        Endpoint(.patch, "/v1/requests", access: .bearer, markSeen),
        Endpoint(.get, "/v1/requests/{id}", access: .bearer, show),
        Endpoint(.patch, "/v1/requests/{id}", access: .bearer, answer),
        Endpoint(.delete, "/v1/requests/{id}", access: .bearer, withdraw),
    ]

    private enum Direction: String, CaseIterable {
        case incoming, outgoing
    }

    private static func list(_ call: Call) throws -> Answer {
        let query = call.query
        let page = try call.page(limitMax: RequestLimits.pageMax)
        let filter = Filter(
            isOutgoing: try query.word("direction", Direction.self) == .outgoing,
            status: try query.word("status", UserRequest.Status.self),
            kind: try query.word("kind", UserRequest.Kind.self))
        let listing = listing(
            of: call.caller.userId, filter, after: page.after, limit: page.rowsMax, visibleTo: call.caller.scope)
        return .query(listing) { rows in page.response(try rows.rows(UserRequest.init(row:)), by: \.id.text) }
    }

    private static func show(_ call: Call) throws -> Answer {
        let id = try call.pathID(0, UserRequest.self)
        return .read { tx in Response.json(200, try require(id, tx)) }
    }

    /// `POST /v1/requests`: 201; 200 with the open request if the same one already exists.
    private static func create(_ call: Call) throws -> Answer {
        let draft = try call.body(RequestDraft.init(reading:))
        let requester = try draft.requester(caller: call.caller.userId, isService: call.caller.isService)
        return .write { tx in
            try tx.requireContact(.requests, with: [draft.toUserId])
            try tx.lock([.user(requester), .user(draft.toUserId)])
            let request = UserRequest(
                id: tx.makeID(UserRequest.self), kind: draft.kind, fromUserId: requester, toUserId: draft.toUserId,
                fromName: draft.fromName, aboutId: draft.aboutId, createdAt: tx.now)
            if let known = try findOpen(like: request, tx) { return try response(200, known, tx) }
            guard try countOpen(of: requester, tx) < RequestLimits.openMax else {
                throw Failure(
                    .conflict, "request.too_many",
                    "A user can have at most \(RequestLimits.openMax) open requests.")
            }
            try insert(request, tx)
            try adjust(BadgeChange.share(of: request).requests, of: request.toUserId, tx)
            tx.record(.notificationRequested(RequestNotification.draft(request)))
            publish("request:created", request, tx)
            return try response(201, request, tx).located(at: "/v1/requests", request.id)
        }
    }

    /// `PATCH /v1/requests`: marks the open requests up to one as seen; their notifications may be long gone.
    private static func markSeen(_ call: Call) throws -> Answer {
        let last: ID<UserRequest> = try call.body { $0.timedID("seenUpTo") }
        return .write(locking: .user(call.caller.userId)) { tx in
            let seen = try storeSeen(upTo: last, tx)
            if !seen.isEmpty {
                try adjust(-seen.count, of: tx.caller.userId, tx)
                tx.record(.requestsSeen(seen))
            }
            return try Response.withBadges(tx) { $0.member("changed", seen.count) }
        }
    }

    /// `PATCH /v1/requests/{id}`: the recipient, or a backend, answers. The question is settled then, and the requester
    /// is notified.
    private static func answer(_ call: Call) throws -> Answer {
        let id = try call.pathID(0, UserRequest.self)
        let answer = try call.body(RequestAnswer.init(reading:))
        return .write { tx in
            var request = try locked(id, tx)
            let before = request
            try request.answer(answer, by: actor(in: request, tx), at: tx.now)
            guard request != before else { return try response(200, request, tx) }
            try storeAnswer(to: request, tx)
            try adjust(-BadgeChange.share(of: before).requests, of: request.toUserId, tx)
            tx.record(
                .notificationSettled(eventId: RequestNotification.eventId(before), of: request.toUserId, .handled))
            tx.record(.notificationRequested(RequestNotification.draft(request)))
            publish("request:updated", request, tx)
            return try response(200, request, tx)
        }
    }

    /// `DELETE /v1/requests/{id}`: withdraws the request as if it had never been made.
    private static func withdraw(_ call: Call) throws -> Answer {
        let id = try call.pathID(0, UserRequest.self)
        return .write { tx in
            let request = try locked(id, tx)
            try request.checkWithdrawal(by: actor(in: request, tx))
            try remove(request, tx)
            return try Response.withBadges(tx)
        }
    }

    // MARK: Parts

    /// Removes a request with the notification about it.
    private static func remove(_ request: UserRequest, _ tx: Transaction) throws {
        try delete(request, tx)
        try adjust(-BadgeChange.share(of: request).requests, of: request.toUserId, tx)
        let notified = request.status == .open ? request.toUserId : request.fromUserId
        tx.record(.notificationSettled(eventId: RequestNotification.eventId(request), of: notified, .withdrawn))
        publish("request:removed", request, tx)
    }

    /// Requests of one transaction of an erasure. Each changes the counts and the notifications of two users.
    private static let erasedAtOnceMax = 32

    /// Removes the requests of an erased person, also from the lists of the other users.
    static let personStep = PersonStep.repeating("requests") { person, tx in
        let found = try ["from_user_id", "to_user_id"].flatMap { (column: SQL) in
            try tx.db.rows(
                """
                SELECT \(columns) FROM \(requests, within: tx.tenant, .reaction("an erased person's requests end for both users"))
                WHERE \(column) = \(person) ORDER BY id LIMIT \(erasedAtOnceMax)
                """, UserRequest.init(row:))
        }
        try tx.lock(found.flatMap { [.user($0.fromUserId), .user($0.toUserId)] })
        for request in found { try remove(request, tx) }
        return !found.isEmpty
    }

    private static func adjust(_ change: Int, of userId: ID<User>, _ tx: Transaction) throws {
        guard change != 0 else { return }
        try tx.adjustBadges(of: userId, requests: change)
    }

    /// Returns the request, with both of its users locked. They are known only after reading it, and never change.
    private static func locked(_ id: ID<UserRequest>, _ tx: Transaction) throws -> UserRequest {
        let request = try require(id, tx)
        try tx.lock([.user(request.fromUserId), .user(request.toUserId)])
        return try require(id, tx)
    }

    /// Returns the caller's role. A backend acts as a backend even for its own request.
    private static func actor(in request: UserRequest, _ tx: Transaction) -> UserRequest.Actor {
        if tx.caller.isService { return .backend }
        return tx.caller.userId == request.fromUserId ? .requester : .recipient
    }

    /// Publishes to both users and to backends, which act on an answer.
    private static func publish(_ name: StaticString, _ request: UserRequest, _ tx: Transaction) {
        let audience = requests.read.audience { column in
            switch column {
            case "from_user_id": request.fromUserId.text
            case "to_user_id": request.toUserId.text
            default: nil
            }
        }
        tx.publish(name, audience: audience, data: JSONWriter.bytes(request))
    }

    private static func response(_ status: Int, _ request: UserRequest, _ tx: Transaction) throws -> Response {
        try Response.withBadges(tx, status: status) { $0.member("request", request) }
    }
}
