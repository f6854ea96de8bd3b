import Database
import Logging
import MicroHTTP
import Values

/// The path of a request from the router to its handler and back: authentication, authorization, rate limit, parsing,
/// choice of the thread, and decoration of the response.
struct Dispatcher: Sendable {
    let runner: TransactionRunner
    let authenticator: Authenticator
    let feeds: FeedCredentials
    let bodies: BodyBudgets
    let workers: WorkerPool
    let cursors: PageCursors
    /// Nil without tracing.
    let tracer: Tracer?
    let logger: Logger

    /// Returns the route of an endpoint, with its metrics.
    func route(_ endpoint: Endpoint, _ metrics: EndpointMetrics) -> Route {
        if let refusal = endpoint.refusal { return route(endpoint, refusing: refusal, metrics) }
        let credentials: RequestTrace.Credentials = endpoint.access == .anyone ? .none : .token
        return Route(
            endpoint.method, endpoint.pattern, bodyBytesMax: endpoint.bodyBytesMax, admit: admission(endpoint, metrics)
        ) { request in
            let trace = RequestTrace.of(request, endpoint: metrics, by: credentials, tracer: tracer)
            do {
                return try reply(to: request, trace, endpoint)
            } catch {
                return .response(problem(error, trace))
            }
        }
    }

    /// Returns the route of an endpoint that is not served. It does not wait for a body.
    private func route(_ endpoint: Endpoint, refusing failure: Failure, _ metrics: EndpointMetrics) -> Route {
        @Sendable func problem(_ request: Request) -> Response {
            self.problem(failure, RequestTrace.of(request, endpoint: metrics, tracer: tracer))
        }
        return Route(
            endpoint.method, endpoint.pattern, bodyBytesMax: endpoint.bodyBytesMax,
            admit: { request, _ in .refused(problem(request)) }, handler: { .response(problem($0)) })
    }

    /// Returns the decision about a body, made from the head: whether the sender may call the endpoint now, and whether
    /// its budget has room.
    private func admission(_ endpoint: Endpoint, _ metrics: EndpointMetrics) -> Route.Admit? {
        guard endpoint.bodyBytesMax > 0 else { return nil }
        let credentials: RequestTrace.Credentials = endpoint.access == .anyone ? .none : .token
        return { request, bytes in
            let trace = RequestTrace.of(request, endpoint: metrics, by: credentials, tracer: tracer)
            do throws(Failure) {
                let sender = try sender(of: request, trace, endpoint)
                try Call.requirePlainBody(of: request)
                return .admitted(try bodies.reserve(bytes, for: sender))
            } catch {
                return .refused(problem(error, trace))
            }
        }
    }

    private func sender(
        of request: Request, _ trace: RequestTrace, _ endpoint: Endpoint
    ) throws(Failure) -> BodyBudgets.Sender {
        if endpoint.access == .anyone { return .unknown }
        if endpoint.access == .feed {
            if feeds.isSigned(request) { return .unknown }
            if feeds.isClaimed(by: request) { return .init(FeedCredentials.feed) }
            if let refusal = feeds.refusal(of: request) { throw refusal }
        }
        switch try admitToken(of: request, trace, endpoint, at: runner.clock.machine()) {
        case .known(let caller): return .init(caller)
        case .pending: return .unknown
        }
    }

    private func reply(
        to request: Request, _ trace: RequestTrace, _ endpoint: Endpoint
    ) throws -> Reply {
        let isLarge = request.body.count > Limits.inlineBodyBytesMax
        // A signature is a hash over the whole body, which is too slow for the reactor if the body is large.
        if endpoint.access == .feed, isLarge, feeds.isClaimed(by: request) {
            return onWorker(trace) {
                guard let feed = try feeds.caller(of: request, at: runner.clock.machine()) else {
                    throw Failure(
                        .unauthenticated, "unauthenticated", "The delivery has no valid token, secret or signature.")
                }
                trace.noteBackend()
                let call = try makeCall(request, as: feed, endpoint)
                return try answer(call, trace, endpoint)
            }
        }
        let caller: Caller
        if endpoint.access == .anyone {
            caller = Self.nobody
        } else {
            switch try admit(request, trace, endpoint, at: runner.clock.machine()) {
            case .known(let admitted): caller = admitted
            case .pending(let start): return .again { start($0) }
            }
        }
        let call = try makeCall(request, as: caller, endpoint)
        guard endpoint.effort == .work, isLarge else { return try answer(call, trace, endpoint) }
        return onWorker(trace) { try answer(call, trace, endpoint) }
    }

    /// - Throws: 422 for query items that the endpoint does not take.
    private func makeCall(
        _ request: Request, as caller: Caller, _ endpoint: Endpoint
    ) throws(Failure) -> Call {
        if caller.spansTenants, endpoint.capability == .notify || endpoint.capability == .publish {
            authenticator.warnings.noteCall(of: caller)
        }
        return Call(
            request: request, caller: caller, query: try Query(request, endpoint.query), now: runner.clock.now(),
            cursors: cursors,
            reader: runner.reader)
    }

    private func complete(_ responder: Responder, _ trace: RequestTrace, _ reply: () throws -> Reply) {
        do {
            switch try reply() {
            case .response(let response): responder.complete(response)
            case .deferred(let start): start(responder)
            case .again, .stream: preconditionFailure("a handler must return a response")
            }
        } catch {
            responder.complete(problem(error, trace))
        }
    }

    private func complete(_ responder: Responder, _ trace: RequestTrace, _ result: Result<Response, any Error>) {
        switch result {
        case .success(let response): responder.complete(response)
        case .failure(let error): responder.complete(problem(error, trace))
        }
    }

    // MARK: Authentication and rate limit

    private func admit(
        _ request: Request, _ trace: RequestTrace, _ endpoint: Endpoint, at now: Timestamp
    ) throws(Failure) -> Authenticator.Verdict<Caller> {
        if endpoint.access == .feed, let feed = try feeds.caller(of: request, at: now) {
            trace.noteBackend()
            return .known(feed)
        }
        return try admitToken(of: request, trace, endpoint, at: now)
    }

    private func admitToken(
        of request: Request, _ trace: RequestTrace, _ endpoint: Endpoint, at now: Timestamp
    ) throws(Failure) -> Authenticator.Verdict<Caller> {
        let principal: Principal
        switch try identify(request, at: now) {
        case .known(let found): principal = found
        case .pending(let start): return .pending(start)
        }
        trace.principal = principal
        // A request with a body was counted when its head arrived.
        if trace.rate == nil, let rate = principal.allowance?.take(at: runner.clock.now()) {
            trace.rate = rate
            guard rate.isAllowed else { throw .rateLimited(rate) }
        }
        try endpoint.access.require(principal.caller)
        try endpoint.capability?.require(principal.caller)
        return .known(principal.caller)
    }

    /// Verifies the request's token.
    ///
    /// - Throws: The failure for a missing or invalid token.
    private func identify(_ request: Request, at now: Timestamp) throws(Failure) -> Authenticator.Verdict<Principal> {
        try request.withHeader("Authorization") { header in
            Result { () throws(Failure) in
                guard let token = BearerToken.of(header) else {
                    throw Failure(
                        .unauthenticated, "unauthenticated",
                        "A token is required. Send it as Authorization: Bearer <JWT>.")
                }
                return try authenticator.verdict(on: token, at: now)
            }
        }.get()
    }

    /// The caller of public endpoints without a token; it has no access to any user's data.
    private static let nobody = Caller(
        tenant: "", userId: ID(""), role: "anonymous", isService: false, scope: Scope(tenant: "", keys: []))

    // MARK: Responses

    private func answer(_ call: Call, _ trace: RequestTrace, _ endpoint: Endpoint) throws -> Reply {
        let claim = endpoint.method == .get ? nil : try Idempotency.claim(of: call, route: endpoint.name)
        // A repeated request adds nothing. Whether it is one is known in its transaction.
        if endpoint.adds, claim == nil { try runner.reader.rows.requireRoom(for: call.caller.tenant) }
        let act = PrivilegedAct(call, endpoint, trace)
        func request(locking key: LockKey?) -> RequestContext {
            RequestContext(call, endpoint, trace, act: act, claim: claim, lock: key)
        }
        // Nil if the settings do not ask for reads, or the caller has no privilege.
        func audited() -> RequestContext? {
            act?.reading(as: call.caller, runner.reader, isRoleBound: endpoint.access.isRoleBound).map {
                RequestContext(call, endpoint, trace, act: $0)
            }
        }
        switch try endpoint.handler(call) {
        case .now(let response): return .response(conditional(response, call.request))
        case .later(let start):
            return .deferred { responder in start { complete(responder, trace, $0) } }
        case .read(let body):
            if let read = audited() { return reading(read, body) }
            guard isInstant(endpoint) else { return waiting(call, trace) { try read(call, body) } }
            return .response(conditional(try read(call, body), call.request))
        case .query(let sql, let body):
            if let read = audited() {
                return reading(read) { tx in try tx.db.withRows(sql) { try body($0) } }
            }
            guard runner.store.engine == .sqlite else { return querying(sql, for: call, trace, body) }
            guard isInstant(endpoint) else { return waiting(call, trace) { try rows(of: sql, call, body) } }
            return .response(conditional(try rows(of: sql, call, body), call.request))
        case .pieces(var response, let next):
            response.body = .pieces(pieces(call, trace, next))
            var act = act
            act?.readable = []
            return writing(RequestContext(call, endpoint, trace, act: act)) { [response] _ in response }
        case .write(let key, let body):
            return writing(request(locking: key), body)
        case .writeTogether(let key, let batched):
            return writingTogether(request(locking: key), batched)
        }
    }

    /// Reads in a transaction that also writes the entry of the audit log: the answer leaves after the entry is on disk.
    private func reading(
        _ request: RequestContext, _ body: @escaping @Sendable (Transaction) throws -> Response
    ) -> Reply {
        queueing(request) { _, completion throws(StoreBusy) in
            try runner.store.write(
                lane: request.lane,
                { db in
                    let call = request.call
                    let known = call.knownPosition
                    let requests = PerformedRequests(acts: [request.act].compactMap(\.self))
                    return try runner.write(as: call.caller, in: db, for: requests) { tx in
                        // Read first: statements of a writing transaction see later commits too.
                        let records = try tx.db.records(EventLog.records(after: known.head))
                        let response = try body(tx)
                        guard response.status == 200 else { return response }
                        return conditional(response.positioned(known: known, records, call), call.request)
                    }
                }, completion: completion)
        }
    }

    private func writing(
        _ request: RequestContext, _ handle: @escaping @Sendable (Transaction) throws -> Response
    ) -> Reply {
        queueing(request) { span, completion throws(StoreBusy) in
            try runner.store.write(
                lane: request.lane, { try write(request, span, in: $0, handle) }, completion: completion)
        }
    }

    private func writingTogether(_ request: RequestContext, _ batched: any BatchedRequest) -> Reply {
        queueing(request) { span, completion throws(StoreBusy) in
            // A traced write gets its own transaction: events of several requests belong to several traces.
            guard request.claim != nil || span != nil else {
                return try batched.enqueue(request, by: runner, completion: completion)
            }
            try runner.store.write(
                lane: request.lane,
                { db in try write(request, span, in: db) { try batched.answer(in: $0) } }, completion: completion)
        }
    }

    /// Suspends the connection until a queued write is done, and measures it as a part of the trace.
    private func queueing(
        _ request: RequestContext,
        _ queue: @escaping @Sendable (OpenSpan?, @escaping RequestContext.Completion) throws(StoreBusy) -> Void
    ) -> Reply {
        let trace = request.trace
        return .deferred { responder in
            do throws(StoreBusy) {
                let span = trace.span?.beginChild()
                try queue(span) { result in
                    span?.end("transaction", isFailed: (try? result.get()) == nil)
                    complete(responder, trace, result)
                }
            } catch {
                responder.complete(problem(error, trace))
            }
        }
    }

    private func read(_ call: Call, _ body: (Transaction) throws -> Response) throws -> Response {
        let known = call.knownPosition
        return try runner.reader.read(as: call.caller) { tx in
            let response = try body(tx)
            guard response.status == 200 else { return response }
            let records = try tx.db.records(EventLog.records(after: known.head))
            return response.positioned(known: known, records, call)
        }
    }

    private func rows(of sql: SQL, _ call: Call, _ body: (RowCursor) throws -> Response) throws -> Response {
        let known = call.knownPosition
        return try runner.reader.rows(of: sql, with: EventLog.records(after: known.head), as: call.caller) { rows in
            try body(rows).positioned(known: known, rows.records, call)
        }
    }

    /// Returns whether the reactor may answer; it must not wait for a database server.
    private func isInstant(_ endpoint: Endpoint) -> Bool {
        endpoint.effort == .instant && runner.store.engine == .sqlite
    }

    private func waiting(
        _ call: Call, _ trace: RequestTrace, _ read: @escaping @Sendable () throws -> Response
    ) -> Reply {
        // A request that has waited for the statement timeout is refused without starting. Otherwise, behind a locked
        // table, all waiting requests would time out one after the other.
        let latest = ContinuousClock.now + .seconds(call.settings.databaseTimeoutSeconds)
        return onWorker(trace) {
            guard ContinuousClock.now < latest else {
                throw DatabaseError(.unavailable, "the request waited too long for other requests", cause: .busy)
            }
            return .response(conditional(try read(), call.request))
        }
    }

    private func pieces(
        _ call: Call, _ trace: RequestTrace, _ next: @escaping @Sendable (Transaction) throws -> [UInt8]?
    ) -> PieceBody {
        PieceBody { deliver in
            let isAdmitted = workers.submit(of: call.caller.workOwner) {
                do {
                    deliver(try runner.reader.read(as: call.caller, next).map { .bytes($0) } ?? .end)
                } catch {
                    // Its log line is all that remains: the head has already left.
                    _ = problem(error, trace)
                    deliver(.failed)
                }
            }
            if !isAdmitted { deliver(.failed) }
        }
    }

    private func querying(
        _ sql: SQL, for call: Call, _ trace: RequestTrace, _ body: @escaping @Sendable (RowCursor) throws -> Response
    ) -> Reply {
        .deferred { responder in
            let known = call.knownPosition
            do throws(StoreBusy) {
                try runner.store.query(
                    sql, with: EventLog.records(after: known.head), as: call.caller.scope
                ) { result in
                    complete(responder, trace) {
                        let rows = try result.get()
                        let response = try body(rows).positioned(known: known, rows.records, call)
                        return .response(conditional(response, call.request))
                    }
                }
            } catch {
                responder.complete(problem(error, trace))
            }
        }
    }

    private func write(
        _ request: RequestContext, _ span: OpenSpan?, in db: DatabaseConnection,
        _ handle: (Transaction) throws -> Response
    ) throws -> Response {
        let (call, endpoint) = (request.call, request.endpoint)
        try db.lock([request.lock?.name(in: call.caller.tenant), request.claim?.lockName].compactMap(\.self))
        let requests = PerformedRequests(
            traceparent: span?.context.traceparent, acts: [request.act].compactMap(\.self))
        let subject = endpoint.decidesAccess ? call.subject(of: endpoint) : nil
        func body(_ tx: Transaction) throws -> Response {
            if let subject { try tx.requirePerson(subject) }
            return try handle(tx)
        }
        guard let claim = request.claim else { return try runner.write(as: call.caller, in: db, for: requests, body) }
        if let stored = try Idempotency.find(claim, runner.clock.age(), in: db) { return stored }
        if endpoint.adds { try runner.reader.rows.requireRoom(for: call.caller.tenant) }
        let response: Response
        do {
            // The savepoint lets a refusal undo the started work and still be stored as the answer.
            response = try db.savepoint { try runner.write(as: call.caller, in: db, for: requests, body) }
        } catch {
            // Transient errors are not stored: a retry may succeed.
            guard (error as? DatabaseError)?.isTransient != true, let failure = Failure(error),
                failure.kind != .unavailable, failure.kind != .rateLimited
            else { throw error }
            response = .problem(failure)
        }
        try runner.examining(as: call.caller, in: db) {
            try Idempotency.store(response, for: claim, at: runner.clock.now(), in: db)
        }
        return response
    }

    /// Returns a 304 for a GET if the client already has the version.
    private func conditional(_ response: Response, _ request: Request) -> Response {
        guard response.status == 200, request.method == .get || request.method == .head,
            request.hasSeen(response)
        else { return response }
        return Response(status: 304, headers: response.headers.without("Content-Type"))
    }

    private func onWorker(_ trace: RequestTrace, _ reply: @escaping @Sendable () throws -> Reply) -> Reply {
        .deferred { responder in
            let isAdmitted = workers.submit(of: trace.principal?.caller.workOwner) { complete(responder, trace, reply) }
            if !isAdmitted { responder.complete(problem(Failure.tooMany, trace)) }
        }
    }

    // MARK: Errors

    private func problem(_ error: any Error, _ trace: RequestTrace) -> Response {
        var metadata: Logger.Metadata {
            trace.metadata.merging(["reason": "\((error as? Failure)?.detail ?? "\(error)")"]) { $1 }
        }
        guard let failure = Failure(error) else {
            logger.error("A request failed.", metadata: metadata)
            return .internalProblem
        }
        // Problems that affect more than one request, such as a full disk, are logged once elsewhere.
        let isLoggedElsewhere =
            (error as? DatabaseError)?.storageTrouble != nil || failure.code == RevocationList.unknownCode
            || failure.code == ErasureGate.code
        if failure.kind == .unavailable, !isLoggedElsewhere {
            logger.warning("A request was not completed.", metadata: metadata)
        }
        return .problem(failure)
    }
}
