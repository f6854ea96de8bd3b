import Database
import Foundation
import MicroHTTP
import Threads
import Values

/// `GET /v1/stream`: authorizes a stream on a reactor, and hands the connection to a shard.
struct StreamRoute: Sendable {
    static let pattern = "/v1/stream"

    /// The parameters of the query.
    private struct StreamParameters {
        /// As the client wrote them, separated by commas. They are parsed only after the client is authenticated.
        var topics: String?
        var lastEventID: String?
        var ticket: String?
    }

    private typealias Redemption = Result<(caller: Caller, topics: [String]), Failure>

    let dependencies: StreamDependencies
    /// Redeemed tickets of requests that are about to run again. Each entry retains its request, so that the object's
    /// identity is not reused before the entry is taken.
    private let redemptions = Locked([ObjectIdentifier: (request: Request, outcome: Redemption)]())

    /// Handles a request of the route.
    func reply(to request: Request) -> Reply {
        do {
            let parameters = try readQuery(request)
            // The header first, because no third party can make a browser send it.
            let bearer = bearer(of: request)
            if bearer == nil, let ticket = parameters.ticket { return try openByTicket(ticket, request, parameters) }
            let carried = bearer == nil ? cookie(of: request) : nil
            if carried != nil { try requireOwnOrigin(of: request) }
            guard let token = bearer ?? carried else {
                throw Failure(.unauthenticated, "unauthenticated", "Opening a stream requires a token or a ticket.")
            }
            let verdict = try dependencies.authenticator.admit(token) { principal, rate in
                let trace = RequestTrace.of(request)
                (trace.principal, trace.rate) = (principal, rate)
            }
            switch verdict {
            case .known(let principal): return try open(principal.caller, parameters, [], for: request)
            case .pending(let start): return .again { start($0) }
            }
        } catch let failure as Failure {
            return .response(.problem(failure))
        } catch {
            dependencies.failures.note(.opening, error)
            return .response(.problem(Failure(error) ?? .unavailable("Try again.")))
        }
    }

    private var headers: HeaderFields {
        [
            // Otherwise a proxy that compresses would hold events until its buffer is full.
            ("Content-Type", "text/event-stream"), ("Cache-Control", "no-store, no-transform"),
            // Otherwise nginx would buffer events until its buffer is full.
            ("X-Accel-Buffering", "no"),
        ]
    }

    // MARK: Parameters

    private func readQuery(_ request: Request) throws -> StreamParameters {
        var parameters = StreamParameters()
        for (name, value) in request.queryItems {
            let value = value ?? ""
            switch name {
            case "topics":
                parameters.topics = parameters.topics.map { "\($0),\(value)" } ?? value
            case "lastEventId" where parameters.lastEventID == nil: parameters.lastEventID = value
            case "ticket" where parameters.ticket == nil: parameters.ticket = value
            case "lastEventId", "ticket": throw Failure.invalid("?\(name)", "must not be repeated")
            default: throw Failure.invalid("?\(name)", "is not a known parameter")
            }
        }
        // A browser that reconnects by itself sends the header; the value of the query is outdated then. An empty header
        // names no position.
        if let header = request.header("Last-Event-ID"), !header.isEmpty { parameters.lastEventID = header }
        return parameters
    }

    /// Returns the topics of the query, if it names any.
    private func topics(_ parameters: StreamParameters) throws(Failure) -> [String]? {
        guard let text = parameters.topics else { return nil }
        let named = text.split(separator: ",").lazy.map { $0.trimmingCharacters(in: .whitespaces) }
        return try StreamTopics.parse(named.filter { !$0.isEmpty }, kinds: dependencies.topicKinds) { _ in "?topics" }
    }

    /// Returns the token; empty if the header has another scheme.
    private func bearer(of request: Request) -> String? {
        request.withHeader("Authorization") { header in
            guard header != nil else { return nil }
            return BearerToken.of(header).map { String(decoding: $0, as: UTF8.self) } ?? ""
        }
    }

    /// Checks the origin of a request with the cookie. Browsers send the cookie with requests from any page, so only
    /// the own origin and the configured ones may open a stream with it. Clients that are not browsers send neither
    /// header.
    private func requireOwnOrigin(of request: Request) throws(Failure) {
        if let origin = request.header("Origin") {
            let host = request.header("Host") ?? ""
            let allowed = dependencies.settings.corsOrigins + ["https://\(host)", "http://\(host)"]
            guard allowed.contains(origin) else { throw Self.foreignOrigin }
        } else if let site = request.header("Sec-Fetch-Site"), site == "cross-site" || site == "same-site" {
            // An image or a frame, which pages can load anywhere, without an Origin.
            throw Self.foreignOrigin
        }
    }

    private static let foreignOrigin = Failure(
        .forbidden, "origin.not_allowed",
        "Pages of this origin may not open a stream with the cookie. Send a token or a ticket.")

    private func cookie(of request: Request) -> String? {
        guard let cookies = request.header("Cookie") else { return nil }
        // The cookie opens streams, and nothing else. Browsers send it with every request, so accepting it more widely
        // would allow another site to forge writes.
        let name = dependencies.settings.streamCookie
        for cookie in cookies.split(separator: ";") {
            let parts = cookie.split(separator: "=", maxSplits: 1)
            guard parts.count == 2, parts[0].trimmingCharacters(in: .whitespaces) == name else { continue }
            return parts[1].trimmingCharacters(in: CharacterSet(charactersIn: " \""))
        }
        return nil
    }

    // MARK: Tickets

    /// Opens a stream by a ticket. Redeeming a ticket writes. So the request is suspended, the ticket is taken, and the
    /// handler runs again with the result.
    private func openByTicket(_ ticket: String, _ request: Request, _ parameters: StreamParameters) throws -> Reply {
        if let redemption = redemptions.withLock({ $0.removeValue(forKey: ObjectIdentifier(request)) }) {
            let (caller, topics) = try redemption.outcome.get()
            return try open(caller, parameters, topics, for: request)
        }
        guard dependencies.tickets.isIssuedHere(ticket) else { throw Self.ticketInvalid }
        // Checked before the ticket is used up, so that a client that corrects its topics can still use it.
        _ = try topics(parameters)
        guard request.method == .get else { return head }
        return .again { resume in
            let (store, now) = (dependencies.reader.store, dependencies.now)
            do throws(StoreBusy) {
                try store.write(
                    lane: WriteLane(ticket.hashValue),
                    { try StreamTickets.redeem(ticket, at: now, in: $0) },
                    completion: { result in
                        self.note(self.outcome(of: result), for: request)
                        resume()
                    })
            } catch {
                let failure = Failure.unavailable(Self.busy, retryAfterSeconds: error.retryAfterSeconds)
                note(.failure(failure), for: request)
                resume()
            }
        }
    }

    private func outcome(of result: Result<(caller: Caller, topics: [String])?, any Error>) -> Redemption {
        switch result {
        case .success(let redeemed?): return .success(redeemed)
        case .success(nil):
            return .failure(Self.ticketInvalid)
        case .failure(let error):
            dependencies.failures.note(.ticket, error)
            return .failure(Failure(error) ?? .unavailable(Self.busy))
        }
    }

    private func note(_ outcome: Redemption, for request: Request) {
        redemptions.withLock { $0[ObjectIdentifier(request)] = (request, outcome) }
    }

    private static let busy = "The database is busy."
    private static let ticketInvalid = Failure(
        .unauthenticated, "stream.ticket_invalid", "The ticket is unknown, already used or expired.")

    // MARK: Opening

    private func lease(to caller: Caller) throws(Failure) -> StreamLease {
        let max = dependencies.settings.streamsPerUserMax
        let tenantMax = dependencies.reader.limiter.shares.streams(of: caller.tenant)
        do throws(StreamAdmission.Exhausted) {
            return try dependencies.admission.lease(to: caller.owner, max: max, tenantMax: tenantMax)
        } catch {
            throw switch error {
            case .user:
                Failure(
                    .rateLimited, "stream.too_many", "You already have \(max) open streams. Close one first.",
                    retryAfterSeconds: 10)
            case .tenant:
                Failure(
                    .rateLimited, "tenant.too_many_streams",
                    "The users of your tenant already have \(tenantMax) open streams, as many as it may have.",
                    retryAfterSeconds: 10)
            }
        }
    }

    /// The answer to a HEAD request: that of a GET, without opening a stream.
    private var head: Reply {
        .response(Response(status: 200, headers: headers, body: .pieces(PieceBody { $0(.end) })))
    }

    /// Opens a stream.
    ///
    /// - Parameter ticketTopics: The topics of the ticket, which the query overrides.
    private func open(
        _ caller: Caller, _ parameters: StreamParameters, _ ticketTopics: [String], for request: Request
    ) throws -> Reply {
        try dependencies.revocations.requireValid(caller, at: dependencies.machineNow)
        let topics = try topics(parameters) ?? ticketTopics
        try StreamTopics.requireReadable(topics, by: caller, dependencies) { _ in "?topics" }
        if let trouble = dependencies.reader.store.trouble, trouble.code == .moved { throw trouble }
        guard request.method == .get else { return head }
        let lease = caller.isService ? nil : try lease(to: caller)
        let opener = StreamOpener(caller: caller, topics: topics, lastEventID: parameters.lastEventID, lease: lease)
        return .stream(StreamOpening(headers: headers, context: opener))
    }
}
