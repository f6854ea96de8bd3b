import Database
import MicroHTTP
import Values

/// One route with who may call it and what answers.
final class Endpoint: Sendable {
    /// The gate of roles. Rows are gated by their tables' policies, never here.
    enum Access: String, Sendable {
        case anyone, bearer, service, staffOrService
        /// A backend, or a feed of table changes that proves itself by a secret (`FeedCredentials`).
        case feed
    }

    /// Where the answer is made.
    enum Effort: Sendable {
        /// On the reactor's thread: microseconds, reads only; on a worker where the database is a server.
        case instant
        /// On a worker or the writer's thread.
        case work
    }

    let method: HTTPMethod
    let pattern: String
    let access: Access
    let query: QueryNames
    let effort: Effort
    let bodyBytesMax: Int
    let handler: @Sendable (Call) throws -> Answer

    init(
        _ method: HTTPMethod, _ pattern: String, access: Access, query: QueryNames = [], effort: Effort = .work,
        bodyBytesMax: Int = Limits.bodyBytesMax, _ handler: @escaping @Sendable (Call) throws -> Answer
    ) {
        self.method = method
        self.pattern = pattern
        self.access = access
        self.query = query
        self.effort = effort
        self.bodyBytesMax = method == .get ? 0 : bodyBytesMax
        self.handler = handler
    }

    /// A handler with the part of the running service that it answers with.
    ///
    /// - Parameter part: nil lists the route without serving it, for `bellhop routes`.
    static func serving<Part: Sendable>(
        _ part: Part?, _ handler: @escaping @Sendable (Call, Part) throws -> Answer
    ) -> @Sendable (Call) throws -> Answer {
        { call in
            guard let part else { throw Failure(.unavailable, "unavailable", "This process serves no requests.") }
            return try handler(call, part)
        }
    }
}

/// What a handler answers with once it has read the request.
enum Answer {
    case now(Response)
    /// Later, from whichever thread: for what others answer. No thread and no transaction waits meanwhile.
    case later(@Sendable (@escaping @Sendable (Result<Response, any Error>) -> Void) -> Void)
    /// In one read transaction.
    case read(@Sendable (Transaction) throws -> Response)
    /// From the rows of one statement that reads: where the database is a server, many callers' travel together.
    case query(SQL, @Sendable (RowCursor) throws -> Response)
    /// In one write transaction, which takes the lock at its beginning; the answer leaves when it is on disk. The
    /// body may run more than once, of which one counts: it has no effects but those of the transaction.
    case write(locking: LockKey? = nil, @Sendable (Transaction) throws -> Response)
    /// Together with others of its kind that have met in a group of writes. It locks what it changes; the key says which
    /// writer does it.
    case writeTogether(locking: LockKey, BatchedRequest)
}
