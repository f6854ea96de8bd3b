import Domain
import MicroHTTP
import Realtime

extension StreamsFeature {
    static func endpoints(_ directory: StreamDirectory?) -> [Endpoint] {
        func serving(
            _ handler: @escaping @Sendable (Call, StreamDirectory) throws -> Answer
        ) -> @Sendable (Call) throws -> Answer {
            { call in
                guard let directory else {
                    throw Failure(.unavailable, "unavailable", "This process serves no streams.")
                }
                return try handler(call, directory)
            }
        }
        return [
            Endpoint(.post, "/v1/stream-tickets", access: .bearer, serving(createTicket)),
            Endpoint(.get, "/v1/streams/{id}/subscriptions", access: .bearer, serving(showSubscriptions)),
            Endpoint(
                .put, "/v1/streams/{id}/subscriptions", access: .bearer,
                bodyBytesMax: StreamLimits.subscriptionsBytesMax, serving(replaceSubscriptions)),
            Endpoint(.put, "/v1/streams/{id}/token", access: .bearer, serving(renew)),
            Endpoint(.post, "/v1/revocations", access: .service, serving(revoke)),
        ]
    }

    /// `POST /v1/stream-tickets`: for EventSource, which cannot send headers. The body may be empty, or name topics.
    @Sendable private static func createTicket(_ call: Call, _ directory: StreamDirectory) throws -> Answer {
        _ = try call.query([])
        var topics: [String] = []
        if !call.request.body.isEmpty {
            var fields = try call.fields()
            let named = fields.strings("topics", countMax: StreamLimits.topicsMax) ?? []
            try fields.finish()
            topics = try StreamTopics.parse(named, kinds: directory.surroundings.topicKinds) { "/topics/\($0)" }
        }
        let ticket = makeTicket()
        return .write { [topics] tx in
            let expiresAt = tx.now.adding(seconds: StreamLimits.ticketSeconds)
            try insertTicket(ticket, topics: topics, expiresAt: expiresAt, tx)
            let body = JSONWriter.object { writer in
                writer.member("ticket", ticket)
                writer.member("expiresAt", expiresAt)
            }
            return Response.json(201, body, headers: [("Cache-Control", "no-store")])
        }
    }

    /// 256 bits of the system's generator, as hex: safe in a query, and not to be guessed.
    private static func makeTicket() -> String {
        var generator = SystemRandomNumberGenerator()
        return (0..<4).map { _ in
            let word = String(generator.next() as UInt64, radix: 16)
            return String(repeating: "0", count: 16 - word.count) + word
        }.joined()
    }

    /// `GET /v1/streams/{id}/subscriptions`
    @Sendable private static func showSubscriptions(_ call: Call, _ directory: StreamDirectory) throws -> Answer {
        _ = try call.query([])
        let id = try call.pathID(0, EventStream.self).text
        let caller = call.caller
        return .later { complete in
            directory.ask(id, as: caller, .describe) { result in
                complete(result.map { response($0) }.mapError { $0 })
            }
        }
    }

    /// `PUT /v1/streams/{id}/subscriptions`: replaces topics and tables at once, without reconnecting (ENG E-7). What is
    /// not named stays as it is.
    ///
    /// The shard is asked before the states are read: they are at least as new as the topics' beginning, and no change
    /// falls between the two.
    @Sendable private static func replaceSubscriptions(_ call: Call, _ directory: StreamDirectory) throws -> Answer {
        _ = try call.query([])
        let id = try call.pathID(0, EventStream.self).text
        let wishes = try readWishes(call, directory.surroundings)
        let caller = call.caller
        return .later { complete in
            directory.replace(wishes, of: id, as: caller) { result in
                let isAdmitted = directory.surroundings.workers.submit {
                    complete(
                        Result {
                            let found = try result.get()
                            try sendStates(
                                of: found.addedTopics, topics: found.topics, to: id, as: caller, directory)
                            return response(found)
                        })
                }
                if !isAdmitted { complete(.failure(Failure.tooMany)) }
            }
        }
    }

    private static func readWishes(_ call: Call, _ surroundings: StreamSurroundings) throws -> SubscriptionWishes {
        var fields = try call.fields()
        let named = fields.strings("topics", countMax: StreamLimits.topicsMax)
        let listed = fields.values("tables", countMax: FilterLimits.subscriptionsPerStreamMax)
        let cursor = fields.optionalString("lastEventId", bytesMax: Cursor.textBytesMax)
        if !fields.has("topics"), !fields.has("tables") {
            fields.reject("", "must name topics, tables or both; what is not named stays as it is")
        }
        if cursor != nil, listed == nil { fields.reject("lastEventId", "goes with tables, whose changes were missed") }
        try fields.finish()
        var wishes = SubscriptionWishes(lastEventID: cursor)
        wishes.topics = try named.map { named in
            try StreamTopics.parse(named, kinds: surroundings.topicKinds) { "/topics/\($0)" }
        }
        wishes.tables = try listed.map { try TableSubscription.list($0, at: "/tables") }
        for (index, wanted) in (wishes.tables ?? []).enumerated()
        where surroundings.tables.catalog.find(schema: wanted.schema, table: wanted.table) == nil
            && !surroundings.watched.contains(WatchedTable(schema: wanted.schema, table: wanted.table))
        {
            throw Failure.invalid("/tables/\(index)/table", "no table \(wanted.schema).\(wanted.table) is declared")
        }
        return wishes
    }

    private static func sendStates(
        of added: [String], topics: [String], to id: String, as caller: Caller, _ directory: StreamDirectory
    ) throws {
        guard !added.isEmpty else { return }
        let reader = StreamReader(surroundings: directory.surroundings, caller: caller, topics: topics, tables: [])
        if let states = try reader.topicStates(of: added) {
            try directory.send(states, to: id, tenant: caller.tenant)
        }
    }

    private static func response(_ found: StreamDescription) -> Response {
        Response.json(
            200,
            JSONWriter.object { writer in
                writer.member("topics", [StreamTopics.personal] + found.topics)
                writer.member("tables", found.tables)
            })
    }

    /// `PUT /v1/streams/{id}/token`: an open stream lives on with a new token of the same user.
    @Sendable private static func renew(_ call: Call, _ directory: StreamDirectory) throws -> Answer {
        _ = try call.query([])
        let id = try call.pathID(0, EventStream.self).text
        var fields = try call.fields()
        let token = fields.string("token", bytesMax: 8192)
        try fields.finish()
        let renewed: Caller
        switch directory.surroundings.authenticate(token) {
        case .caller(let caller): renewed = caller
        case .refused(let failure): throw Failure.invalid("/token", failure.detail)
        case .pending(let start):
            start {}
            throw Failure(
                .unavailable, "stream.token_pending", "The token's key is being fetched.", retryAfterSeconds: 1)
        }
        let caller = call.caller
        guard renewed.tenant == caller.tenant, renewed.userId == caller.userId else {
            throw Failure.forbidden("The new token must be of the same user and tenant.")
        }
        guard !directory.revocations.isRevoked(renewed) else { throw Failure.invalid("/token", "is revoked") }
        return .later { complete in
            directory.ask(id, as: caller, .renew(renewed)) { result in
                complete(
                    result.map { _ in
                        Response.json(200, JSONWriter.object { $0.member("expiresAt", renewed.expiresAt) })
                    }.mapError { $0 })
            }
        }
    }

    /// `POST /v1/revocations`: by token, by session, or everything of a user that was issued before a moment.
    @Sendable private static func revoke(_ call: Call, _ directory: StreamDirectory) throws -> Answer {
        _ = try call.query([])
        let revocation = try readRevocation(call)
        return .write { tx in
            try insertRevocation(revocation, at: tx.now, in: tx.db)
            tx.tellReplicas(ReplicaMessages.revoked, data: revocation.json)
            tx.afterCommit {
                directory.revocations.insert(revocation)
                directory.close(revocation)
            }
            return Response.json(201, JSONWriter.object { $0.member("revokedAt", tx.now) })
        }
    }

    private static func readRevocation(_ call: Call) throws -> Revocation {
        var fields = try call.fields()
        let tenant = call.caller.tenant
        let token = fields.optionalString("tokenId")
        let session = fields.optionalString("sessionId")
        let user = fields.optionalID("userId", User.self)
        let moment = fields.optionalTimestamp("issuedBefore")
        if [token != nil, session != nil, user != nil].count(where: { $0 }) != 1 {
            fields.reject("", "must name exactly one of tokenId, sessionId, userId")
        }
        if (user != nil) != (moment != nil) { fields.reject("issuedBefore", "goes with userId, and userId with it") }
        try fields.finish()
        if let token { return .token(tenant: tenant, id: token) }
        if let session { return .session(tenant: tenant, id: session) }
        guard let user, let moment else { throw Failure.invalid("", "must name what is revoked") }
        return .user(tenant: tenant, id: user, issuedBefore: moment)
    }
}

extension Failure {
    static let tooMany = Failure(
        .unavailable, "unavailable", "Too many requests are waiting.", retryAfterSeconds: 1)
}

/// Phantom for the ids of open streams.
enum EventStream {}
