import Database
import Domain
import Foundation
import MicroHTTP

/// `GET /v1/stream`: decides on a reactor who may open a stream, and hands the connection to a shard.
///
/// `@unchecked Sendable`: `redemptions` is only touched while `lock` is held.
final class StreamRoute: @unchecked Sendable {
    static let pattern = "/v1/stream"

    private enum Credential {
        case token(String)
        case ticket(String)
    }

    /// What the client asked for in the query.
    private struct Wishes {
        var topics: [String]?
        var lastEventID: String?
        var ticket: String?
    }

    private typealias Redemption = Result<(caller: Caller, topics: [String]), Failure>

    private let directory: StreamDirectory
    /// Guards `redemptions`.
    private let lock = NSLock()
    /// Tickets that were redeemed for requests which are about to run again. Each entry holds its request, so that the
    /// identity is not used again before it is taken.
    private var redemptions: [ObjectIdentifier: (request: Request, outcome: Redemption)] = [:]

    init(_ directory: StreamDirectory) {
        self.directory = directory
    }

    /// The route's handler.
    func reply(to request: Request) -> Reply {
        do {
            // A HEAD asks whether the address serves streams; opening one for it would answer with a body.
            guard request.method == .get else { return .response(Response(status: 200, headers: headers, body: .none)) }
            let wishes = try readQuery(request)
            guard let credential = credential(request, wishes) else {
                throw Failure(.unauthenticated, "unauthenticated", "A token or a ticket is needed to open a stream.")
            }
            switch credential {
            case .ticket(let ticket): return try openByTicket(ticket, request, wishes)
            case .token(let token):
                switch directory.surroundings.authenticate(token) {
                case .caller(let caller): return try open(request, caller, wishes, wishes.topics ?? [])
                case .refused(let failure): throw failure
                case .pending(let start): return .again { resume in start(resume) }
                }
            }
        } catch let failure as Failure {
            return .response(Response.problem(failure))
        } catch {
            return .response(
                Response.problem(Failure(.unavailable, "unavailable", "Try again.", retryAfterSeconds: 1)))
        }
    }

    private var headers: [(name: String, value: String)] {
        [
            ("Content-Type", "text/event-stream"), ("Cache-Control", "no-store"),
            // nginx would otherwise collect events until its buffer is full.
            ("X-Accel-Buffering", "no"),
        ]
    }

    // MARK: What was asked

    private func readQuery(_ request: Request) throws -> Wishes {
        var wishes = Wishes()
        for (name, value) in request.queryItems {
            let value = value ?? ""
            switch name {
            case "topics":
                let named = value.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
                wishes.topics = (wishes.topics ?? []) + named.filter { !$0.isEmpty }
            case "lastEventId" where wishes.lastEventID == nil: wishes.lastEventID = value
            case "ticket" where wishes.ticket == nil: wishes.ticket = value
            case "lastEventId", "ticket": throw Failure.invalid("?\(name)", "must not be repeated")
            default: throw Failure.invalid("?\(name)", "is not known here")
            }
        }
        if let topics = wishes.topics {
            wishes.topics = try StreamTopics.parse(topics, kinds: directory.surroundings.topicKinds) { _ in "?topics" }
        }
        // A browser that reconnects by itself sends the header; the query's value is then from before.
        if let header = request.header("Last-Event-ID") { wishes.lastEventID = header }
        return wishes
    }

    /// The header first: it is the one that no third party can make a browser send.
    private func credential(_ request: Request, _ wishes: Wishes) -> Credential? {
        if let header = request.header("Authorization") {
            let parts = header.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: true)
            guard parts.count == 2, parts[0].lowercased() == "bearer" else { return .token("") }
            return .token(String(parts[1]))
        }
        if let ticket = wishes.ticket { return .ticket(ticket) }
        guard let cookies = request.header("Cookie") else { return nil }
        let name = directory.surroundings.settings.cookieName
        for cookie in cookies.split(separator: ";") {
            let parts = cookie.split(separator: "=", maxSplits: 1)
            guard parts.count == 2, parts[0].trimmingCharacters(in: .whitespaces) == name else { continue }
            return .token(parts[1].trimmingCharacters(in: CharacterSet(charactersIn: " \"")))
        }
        return nil
    }

    // MARK: Tickets

    /// Redeeming writes, so the request is suspended, the ticket taken, and the handler run again with what it gave.
    private func openByTicket(_ ticket: String, _ request: Request, _ wishes: Wishes) throws -> Reply {
        if let redemption = lock.withLock({ redemptions.removeValue(forKey: ObjectIdentifier(request)) }) {
            let (caller, topics) = try redemption.outcome.get()
            return try open(request, caller, wishes, wishes.topics ?? topics)
        }
        return .again { [self] resume in
            let (store, now) = (directory.surroundings.store, directory.surroundings.now())
            do throws(StoreBusy) {
                try store.write(
                    lane: ticket.hashValue,
                    { try StreamsFeature.redeemTicket(ticket, at: now, in: $0) },
                    completion: { result in
                        self.note(self.outcome(of: result), for: request)
                        resume()
                    })
            } catch {
                note(.failure(Self.busy(retryAfterSeconds: error.retryAfterSeconds)), for: request)
                resume()
            }
        }
    }

    private func outcome(of result: Result<(caller: Caller, topics: [String])?, any Error>) -> Redemption {
        switch result {
        case .success(let redeemed?): .success(redeemed)
        case .success(nil):
            .failure(
                Failure(.unauthenticated, "stream.ticket_invalid", "The ticket is unknown, used or expired."))
        case .failure: .failure(Self.busy(retryAfterSeconds: 1))
        }
    }

    private func note(_ outcome: Redemption, for request: Request) {
        lock.withLock { redemptions[ObjectIdentifier(request)] = (request, outcome) }
    }

    private static func busy(retryAfterSeconds: Int) -> Failure {
        Failure(.unavailable, "unavailable", "The database is busy.", retryAfterSeconds: retryAfterSeconds)
    }

    // MARK: Opening

    private func open(_ request: Request, _ caller: Caller, _ wishes: Wishes, _ topics: [String]) throws -> Reply {
        guard caller.expiresAt > directory.surroundings.now() else {
            throw Failure(.unauthenticated, "invalid_token", "The token has expired.")
        }
        guard !directory.revocations.isRevoked(caller) else {
            throw Failure(.unauthenticated, "invalid_token", "The token was revoked.")
        }
        var lease: StreamLease?
        if !caller.isService {
            let max = directory.surroundings.settings.streamsPerUserMax
            lease = directory.admission.lease(to: .init(tenant: caller.tenant, userId: caller.userId.text), max: max)
            guard lease != nil else {
                throw Failure(
                    .rateLimited, "stream.too_many", "You have \(max) open streams; close one first.",
                    retryAfterSeconds: 10)
            }
        }
        let opener = StreamOpener(
            caller: caller, topics: topics, lastEventID: wishes.lastEventID, lease: lease)
        return .stream(StreamOpening(headers: headers, context: opener, shard: nil))
    }
}
