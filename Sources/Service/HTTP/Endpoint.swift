import Database
import MicroHTTP
import Values

/// One route, with its access rule and its handler.
final class Endpoint: Sendable {
    /// Where a request names the user that it concerns.
    enum Subject: Sendable {
        /// The first path parameter.
        case path
        /// The member or parameter `userId`, if there is one.
        case body, query
    }

    /// The kind of thread that answers.
    enum Effort: Sendable {
        /// The reactor's thread: takes microseconds and only reads. With a database server, a worker instead.
        case instant
        /// A worker or the writer's thread.
        case work
    }

    let method: HTTPMethod
    let pattern: String
    let access: Access
    /// What it requires of a backend: by default `read` for a GET, else `manage`; nil if it needs no caller.
    let capability: Capability?
    /// Where its requests name the user that they concern, for the audit log; nil if the rows do.
    let subject: Subject?
    /// Whether it decides about the access of the user that it concerns, who must be a person
    /// (``Transaction/requirePerson(_:)``).
    let decidesAccess: Bool
    /// Whether its requests add rows, for which the tenant must have room.
    let adds: Bool
    let query: QueryNames
    let effort: Effort
    /// Whether the audit log has the number of a backend's calls of each minute instead of an entry for each. A backend
    /// sends such calls in large numbers.
    let countsCalls: Bool
    let bodyBytesMax: Int
    /// The answer to every request, before its token and its body are looked at; nil if the endpoint is served.
    let refusal: Failure?
    let handler: @Sendable (Call) throws -> Answer

    /// The name in metrics, in stored answers and in the audit log: `PATCH /v1/bookings/{id}`.
    let name: String

    init(
        _ method: HTTPMethod, _ pattern: String, access: Access, needs capability: Capability? = nil,
        subject: Subject? = nil, decidesAccess: Bool = false, adds: Bool = false, query: QueryNames = [],
        effort: Effort = .work,
        countsCalls: Bool = false, bodyBytesMax: Int = Limits.bodyBytesMax, refusal: Failure? = nil,
        _ handler: @escaping @Sendable (Call) throws -> Answer
    ) {
        name = "\(method.rawValue) \(pattern)"
        self.method = method
        self.pattern = pattern
        self.access = access
        self.capability = access == .anyone ? nil : capability ?? (method == .get ? .read : .manage)
        self.subject = subject
        self.decidesAccess = decidesAccess
        self.adds = adds
        self.query = query
        self.effort = effort
        self.countsCalls = countsCalls
        self.bodyBytesMax = method == .get && refusal == nil ? 0 : bodyBytesMax
        self.refusal = refusal
        self.handler = handler
    }

    /// The endpoint while its set is off.
    func off(_ set: FeatureSet) -> Endpoint {
        let failure = Failure.off(set)
        return Endpoint(
            method, pattern, access: .anyone, query: .any, effort: .instant, bodyBytesMax: .max, refusal: failure
        ) { _ in throw failure }
    }

    /// Makes a handler that uses a part of the running service.
    ///
    /// - Parameter part: nil lists the route without serving it, for `bellhop routes`.
    static func serving<Part: Sendable>(
        _ part: Part?, _ handler: @escaping @Sendable (Call, Part) throws -> Answer
    ) -> @Sendable (Call) throws -> Answer {
        { call in
            guard let part else { throw Failure(.unavailable, "unavailable", "This process does not serve requests.") }
            return try handler(call, part)
        }
    }
}

/// The answer of a handler after it has read the request.
enum Answer {
    case now(Response)
    /// Answers later, from any thread, for results of other systems. No thread and no transaction waits meanwhile.
    case later(@Sendable (@escaping @Sendable (Result<Response, any Error>) -> Void) -> Void)
    /// Runs in one read transaction.
    case read(@Sendable (Transaction) throws -> Response)
    /// Answers from the rows of one read statement. With a database server, the statements of many callers are sent
    /// together.
    case query(SQL, @Sendable (RowCursor) throws -> Response)
    /// Runs in one write transaction, which takes the lock at its start; the response is sent once the data is on disk.
    /// The body may run more than once, so it must have no effects outside the transaction.
    case write(locking: LockKey? = nil, @Sendable (Transaction) throws -> Response)
    /// Sends a body of any length in pieces, after an entry in the audit log. Each piece is read in its own transaction,
    /// once the client has taken the one before.
    case pieces(Response, _ next: @Sendable (Transaction) throws -> [UInt8]?)
    /// Writes together with other requests of its kind in the same group of writes. It locks the rows it changes; the
    /// key selects the writer.
    case writeTogether(locking: LockKey, any BatchedRequest)
}
