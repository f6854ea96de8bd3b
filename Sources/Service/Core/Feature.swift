import Database
import Domain
import MicroHTTP

/// One capability of the service: its tables, routes, reactions and upkeep. A feature is one folder and one line of
/// the catalog; it knows no other feature.
struct Feature: Sendable {
    let name: String
    let tables: [Table]
    let migrations: [Migration]
    let endpoints: [Endpoint]
    let reactions: [Reaction]
    let topics: [TopicKind]
    let ticks: [Tick]
    /// What `bellhop check` asks of the feature: every way in which its rows contradict each other.
    var audits: [Audit] = []
    /// Keys by rows that open streams hold.
    var live: [LiveMembership] = []
    /// Tables of its own that streams can subscribe to, beside those that are declared.
    var watched: [WatchedTable] = []
}

/// A table of the service as subscriptions name it.
struct WatchedTable: Sendable, Hashable {
    let schema: String
    let table: String
}

/// A way to recount what is kept. Returns one line for each difference.
struct Audit: Sendable {
    let name: String
    let run: @Sendable (Connection) throws -> [String]
}

/// One route with who may call it and what answers.
struct Endpoint: Sendable {
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
    let effort: Effort
    let bodyBytesMax: Int
    let handler: @Sendable (Call) throws -> Answer

    init(
        _ method: HTTPMethod, _ pattern: String, access: Access, effort: Effort = .work,
        bodyBytesMax: Int = Limits.bodyBytesMax, _ handler: @escaping @Sendable (Call) throws -> Answer
    ) {
        self.method = method
        self.pattern = pattern
        self.access = access
        self.effort = effort
        self.bodyBytesMax = method == .get ? 0 : bodyBytesMax
        self.handler = handler
    }
}

/// What a handler answers with once it has read the request.
enum Answer {
    case now(Response)
    /// Later, from whichever thread: for what others answer. Nothing is held meanwhile.
    case later(@Sendable (@escaping @Sendable (Result<Response, any Error>) -> Void) -> Void)
    /// In one read transaction.
    case read(@Sendable (Transaction) throws -> Response)
    /// From the rows of one statement that reads: where the database is a server, many callers' travel together.
    case query(SQL, @Sendable (RowCursor) throws -> Response)
    /// In one write transaction, which holds the subject from its beginning; the answer leaves when it is on disk. The
    /// body may run more than once, of which one counts: it has no effects but those of the transaction.
    case write(on: Subject? = nil, @Sendable (Transaction) throws -> Response)
}

/// What a feature does when a fact is recorded, inside the same transaction.
struct Reaction: Sendable {
    let run: @Sendable (Transaction, any Fact) throws -> Void

    static func on<F: Fact>(
        _: F.Type, _ body: @escaping @Sendable (Transaction, F) throws -> Void
    ) -> Reaction {
        Reaction { tx, fact in
            if let fact = fact as? F { try body(tx, fact) }
        }
    }
}

/// A kind of shared topic, such as `queue:{shopId}`.
struct TopicKind: Sendable {
    let prefix: String
    /// The state that a stream is sent when it joins, as an event's name and data; nil: there is none.
    let initial: @Sendable (Transaction, _ id: String) throws -> (String, [UInt8])?
}

/// Work that comes round by itself, in a write transaction for each tenant.
struct Tick: Sendable {
    let name: String
    let everySeconds: Int
    /// One statement that looks whether there is anything to do, for any tenant: for what comes round so often that most
    /// of the time there is not. Nil: it is always done.
    let isDue: (@Sendable (Connection, _ now: Timestamp) throws -> Bool)?
    let body: @Sendable (Transaction) throws -> Void

    init(
        name: String, everySeconds: Int, isDue: (@Sendable (Connection, _ now: Timestamp) throws -> Bool)? = nil,
        body: @escaping @Sendable (Transaction) throws -> Void
    ) {
        self.name = name
        self.everySeconds = everySeconds
        self.isDue = isDue
        self.body = body
    }
}
