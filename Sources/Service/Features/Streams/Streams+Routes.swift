import MicroHTTP
import Realtime
import Rows
import Values

extension StreamsFeature {
    static func endpoints(_ parts: Parts?) -> [Endpoint] {
        [
            Endpoint(.post, "/v1/stream-tickets", access: .bearer, needs: .read, Endpoint.serving(parts, createTicket)),
            Endpoint(.get, "/v1/streams/{id}", access: .bearer, Endpoint.serving(parts, showStream)),
            Endpoint(
                .get, "/v1/streams/{id}/subscriptions", access: .bearer, Endpoint.serving(parts, showSubscriptions)),
            Endpoint(
                .put, "/v1/streams/{id}/subscriptions", access: .bearer, needs: .read,
                bodyBytesMax: StreamLimits.subscriptionsBytesMax, Endpoint.serving(parts, replaceSubscriptions)),
            Endpoint(.put, "/v1/streams/{id}/token", access: .bearer, needs: .read, Endpoint.serving(parts, renew)),
            Endpoint(
                .post, "/v1/revocations", access: .service, subject: .body, decidesAccess: true,
                Endpoint.serving(parts, revoke)),
            Endpoint(
                .delete, "/v1/revocations", access: .service, subject: .query,
                query: ["tokenId", "sessionId", "userId"], Endpoint.serving(parts, lift)),
        ]
    }

    /// `POST /v1/stream-tickets`: for EventSource, which cannot send headers. The body may be empty, or name topics.
    @Sendable private static func createTicket(_ call: Call, _ parts: Parts) throws -> Answer {
        // The stream of a ticket lasts as long as its token, so one of a removed key would never end.
        guard !call.caller.hasServiceKey else {
            throw Failure.forbidden("A service key opens streams itself: send it as Authorization: Bearer.")
        }
        let named = try call.optionalBody { $0.strings("topics", countMax: StreamLimits.topicsMax) } ?? []
        let topics = try StreamTopics.parse(named, kinds: parts.dependencies.topicKinds) { "/topics/\($0)" }
        try StreamTopics.requireReadable(topics, by: call.caller, parts.dependencies) {
            StreamTopics.place(of: $0, in: named)
        }
        let ticket = parts.dependencies.tickets.makeTicket()
        return .write { tx in
            let expiresAt = tx.now.adding(seconds: StreamLimits.ticketSeconds)
            try StreamTickets.insert(ticket, topics: topics, expiresAt: expiresAt, tx)
            return Response.json(201, headers: [("Cache-Control", "no-store")]) { writer in
                writer.member("ticket", ticket)
                writer.member("expiresAt", expiresAt)
            }
        }
    }

    /// `GET /v1/streams/{id}`: the stream's subscriptions, and its delivery figures (R-ENG-E-9).
    @Sendable private static func showStream(_ call: Call, _ parts: Parts) throws -> Answer {
        let id = try call.pathID(0, EventStream.self).text
        return ask(id, as: call.caller, .describe, through: parts) { found in
            Response.json(200) { writer in
                writer.member("id", id)
                writeSubscriptions(of: found, to: &writer)
                writer.member("events", found.figures.events)
                writer.member("bytes", found.figures.bytes)
                writer.member("waitingBytes", found.waitingBytes)
            }
        }
    }

    /// `GET /v1/streams/{id}/subscriptions`
    @Sendable private static func showSubscriptions(_ call: Call, _ parts: Parts) throws -> Answer {
        ask(try call.pathID(0, EventStream.self).text, as: call.caller, .describe, through: parts, response)
    }

    /// Sends a request to a stream, on whichever replica it is, and returns the response that `show` makes of the
    /// answer.
    private static func ask(
        _ id: String, as caller: Caller, _ question: StreamRequest.Kind, through parts: Parts,
        _ show: @escaping @Sendable (StreamDescription) -> Response
    ) -> Answer {
        .later { complete in
            parts.requests.ask(id, as: caller, question) { result in complete(result.map(show).mapError { $0 }) }
        }
    }

    /// `PUT /v1/streams/{id}/subscriptions`: replaces topics and tables at once, without reconnecting (R-ENG-E-7). A
    /// member that is left out stays unchanged.
    ///
    /// The shard is updated before the states are read. So the states are at least as new as the beginning of the
    /// topics, and no change is lost between the two. The answer does not depend on the states: once the subscriptions
    /// are replaced, the request has succeeded. If the states cannot be read, the stream is asked to resync.
    @Sendable private static func replaceSubscriptions(_ call: Call, _ parts: Parts) throws -> Answer {
        let id = try call.pathID(0, EventStream.self).text
        let draft = try readDraft(call, parts.dependencies)
        let caller = call.caller
        return .later { complete in
            parts.requests.ask(id, as: caller, .replace(draft)) { result in
                let answer = result.map(response).mapError { $0 as any Error }
                guard case .success(let found) = result, !found.addedTopics.isEmpty else { return complete(answer) }
                let isAdmitted = parts.dependencies.workers.submit(of: caller.workOwner) {
                    sendStates(of: found, to: id, as: caller, parts)
                    complete(answer)
                }
                if !isAdmitted {
                    parts.dependencies.failures.note(.congestion)
                    resync(id, caller.tenant, parts)
                    complete(answer)
                }
            }
        }
    }

    private static func readDraft(_ call: Call, _ dependencies: StreamDependencies) throws -> SubscriptionDraft {
        var fields = try call.fields(valuesMax: StreamLimits.subscriptionsValuesMax)
        let named = fields.strings("topics", countMax: StreamLimits.topicsMax)
        let listed = fields.values("tables", countMax: FilterLimits.subscriptionsPerStreamMax)
        let cursor = fields.optionalString("lastEventId", bytesMax: Cursor.textBytesMax)
        if !fields.has("topics"), !fields.has("tables") {
            fields.reject("", "must contain topics, tables or both; an omitted field keeps its subscriptions")
        }
        if cursor != nil, listed == nil {
            fields.reject("lastEventId", "requires tables: it replays their missed changes")
        }
        try fields.finish()
        try chargeFilters(of: listed ?? [], call)
        var draft = SubscriptionDraft(lastEventID: cursor)
        draft.topics = try named.map { named in
            try StreamTopics.parse(named, kinds: dependencies.topicKinds) { "/topics/\($0)" }
        }
        try StreamTopics.requireReadable(draft.topics ?? [], by: call.caller, dependencies) {
            StreamTopics.place(of: $0, in: named ?? [])
        }
        draft.tables = try listed.map {
            try TableSubscription.list(
                $0, at: "/tables", columns: dependencies.tables.columns, isDeclared: dependencies.tables.contains)
        }
        try dependencies.tables.requireOn(draft.tables ?? [])
        return draft
    }

    /// Counts long filters as further requests, before they are read.
    private static func chargeFilters(of tables: [JSONValue], _ call: Call) throws {
        let bytes = tables.reduce(0) { sum, table in
            guard case .object(let members) = table, case .string(let filter)? = members["filter"] else { return sum }
            return sum + filter.utf8.count
        }
        let requests = bytes / Limits.filterBytesPerRequest
        guard requests > 0,
            let rate = call.reader.limiter.allowance(of: call.caller, at: call.now)?.take(requests, at: call.now)
        else { return }
        if !rate.isAllowed {
            throw Failure.rateLimited(
                rate, " These filters of \(bytes) bytes count as \(requests) additional requests.")
        }
    }

    private static func sendStates(of stream: StreamDescription, to id: String, as caller: Caller, _ parts: Parts) {
        let reader = StreamReader(
            dependencies: parts.dependencies, ids: parts.dependencies.ids, caller: caller, topics: stream.topics,
            tables: [])
        do {
            guard let states = try reader.topicStates(of: stream.addedTopics) else { return }
            parts.requests.send(states, to: id, tenant: caller.tenant)
        } catch {
            parts.dependencies.failures.note(.event, error)
            resync(id, caller.tenant, parts)
        }
    }

    private static func resync(_ id: String, _ tenant: ID<Tenant>, _ parts: Parts) {
        parts.requests.send(SharedBytes(StreamNotice.resync(.overflow, at: nil)), to: id, tenant: tenant)
    }

    @Sendable private static func response(_ found: StreamDescription) -> Response {
        Response.json(200) { writeSubscriptions(of: found, to: &$0) }
    }

    private static func writeSubscriptions(of found: StreamDescription, to writer: inout JSONWriter) {
        writer.member("topics", [StreamTopics.personal] + found.topics)
        writer.member("tables", found.tables)
    }

    /// `PUT /v1/streams/{id}/token`: continues an open stream with a new token of the same user.
    @Sendable private static func renew(_ call: Call, _ parts: Parts) throws -> Answer {
        let id = try call.pathID(0, EventStream.self).text
        let token = try call.body { $0.string("token", bytesMax: Limits.tokenBytesMax) }
        let renewed = try Authenticator.caller(
            ofBody: { () throws(Failure) in try parts.dependencies.authenticator.admit(token) },
            pendingCode: "stream.token_pending")
        let caller = call.caller
        guard renewed.tenant == caller.tenant, renewed.userId == caller.userId else {
            throw Failure.forbidden("The new token must have the same user and tenant.")
        }
        guard !parts.dependencies.revocations.isRevoked(renewed) else { throw Failure.invalid("/token", "is revoked") }
        return ask(id, as: caller, .renew(renewed), through: parts) { _ in
            Response.json(200) { writer in
                writer.member("expiresAt", renewed.expiresAt)
                writer.member("identity", renewed.identity)
            }
        }
    }

    /// `POST /v1/revocations`: by token, by session, or all tokens of a user that were issued before a moment.
    @Sendable private static func revoke(_ call: Call, _ parts: Parts) throws -> Answer {
        let revocation = try readRevocation(call)
        return .write { tx in
            try insertRevocation(revocation, at: tx.now, in: tx.db)
            parts.router.revoke(revocation, in: tx)
            return Response.json(201) { $0.member("revokedAt", tx.now) }
        }
    }

    /// `DELETE /v1/revocations?userId=…`: accepts the tokens again that a revocation of this token, session or user has
    /// refused. An erasure cannot be lifted.
    @Sendable private static func lift(_ call: Call, _ parts: Parts) throws -> Answer {
        let named: [(Revocation.Kind, String?)] = [
            (.token, try call.query.string("tokenId")), (.session, try call.query.string("sessionId")),
            (.user, try call.query.id("userId", User.self)?.text),
        ]
        let found = named.compactMap { kind, subject in
            subject.map { Revocation(tenant: call.caller.tenant, kind: kind, subject: $0) }
        }
        guard found.count == 1, let revocation = found.first else {
            throw Failure.invalid("?tokenId", "exactly one of tokenId, sessionId and userId is required")
        }
        return .write { tx in
            guard try deleteRevocation(revocation, in: tx.db) else { throw Failure.notFound("revocation") }
            tx.notifyReplicas(Revocation.lifted, data: revocation.json)
            tx.afterCommit { parts.router.lift(revocation) }
            return .noContent
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
            fields.reject("", "must contain exactly one of tokenId, sessionId and userId")
        }
        if (user != nil) != (moment != nil) { fields.reject("issuedBefore", "and userId must be sent together") }
        try fields.finish()
        if let token { return Revocation(tenant: tenant, kind: .token, subject: token) }
        if let session { return Revocation(tenant: tenant, kind: .session, subject: session) }
        guard let user, let moment else { throw Failure.invalid("", "must contain tokenId, sessionId or userId") }
        return Revocation(tenant: tenant, kind: .user, subject: user.text, issuedBefore: moment)
    }
}

/// A phantom type for the ids of open streams.
enum EventStream {}
