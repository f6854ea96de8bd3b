import Database
import Domain
import Threads
import Values

/// Runs transactions: for requests, for streams, and for the work that comes round.
struct TransactionRunner: Sendable {
    let reader: TransactionReader
    let tenants: Tenants
    /// Numbers and stores the events of a group of transactions, and publishes them once they are committed.
    let appendEvents: GroupStep<PendingEvents>

    var store: Store { reader.store }
    var clock: Clock { reader.clock }
    var settings: Settings { reader.settings }

    /// One write transaction inside a writer's group. Call on the writer's thread, within `Store.write`.
    ///
    /// - Parameter traceparent: the trace that its events are of; nil where it is not recorded.
    func write<Result>(
        as caller: Caller, in db: Connection, traceparent: String? = nil, _ body: (Transaction) throws -> Result
    ) throws -> Result {
        try db.enter(caller.scope)
        try tenants.note(caller.tenant, in: db)
        let tx = Transaction(db: db, caller: caller, reader: reader, traceparent: traceparent)
        let result = try body(tx)
        if let events = try tx.finish() { db.leave(events, for: appendEvents) }
        return result
    }
}

/// What a feature does when a fact is recorded, inside the same transaction.
typealias Reaction = @Sendable (Transaction, Fact) throws -> Void

/// Transactions that only read, and what all transactions share.
final class TransactionReader: Sendable {
    let store: Store
    let clock: Clock
    let settings: Settings
    let log: LogIdentity
    let reactions: [Reaction]
    let badgeVersions: BadgeVersions
    let limiter: RateLimiter
    /// Makes the ids of all entities, in one order.
    let ids = Locked(IDSequence())

    init(
        store: Store, clock: Clock, settings: Settings, log: LogIdentity, reactions: [Reaction], limiter: RateLimiter
    ) {
        self.store = store
        self.limiter = limiter
        self.clock = clock
        self.settings = settings
        self.log = log
        self.reactions = reactions
        badgeVersions = BadgeVersions(isAlone: store.engine == .sqlite)
    }

    /// One read transaction, on the calling thread.
    func read<Result>(as caller: Caller, _ body: (Transaction) throws -> Result) throws -> Result {
        try store.read { db in
            try db.enter(caller.scope)
            return try body(Transaction(db: db, caller: caller, reader: self))
        }
    }

    /// The rows of one statement, on the calling thread.
    func rows<Result>(of sql: SQL, as caller: Caller, _ body: (RowCursor) throws -> Result) throws -> Result {
        try store.read { db in
            try db.enter(caller.scope)
            return try db.withRows(sql, at: EventLog.position, body)
        }
    }
}
