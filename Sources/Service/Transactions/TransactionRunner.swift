import Database
import Domain
import Rows
import Threads
import Values

/// The requests that one transaction performs; empty for periodic work.
struct PerformedRequests {
    /// The trace of the transaction's events; nil if it is not recorded.
    var traceparent: String?
    /// The requests of privileged callers, for the audit log. Several requests are of a kind that is counted.
    var acts: [PrivilegedAct] = []
}

/// The runner of transactions for requests, streams and periodic work.
struct TransactionRunner: Sendable {
    let reader: TransactionReader
    let tenants: Tenants
    /// Numbers and stores the events of a group of transactions, and publishes them once they are committed.
    let appendEvents: GroupStep<PendingEvents>
    /// Stores the audit notes of a group of transactions.
    let appendNotes: GroupStep<AuditNotes>
    /// Refuses what names a person whose erasure is about to end.
    let gate: ErasureGate

    var store: DatabaseStore { reader.store }
    var clock: Clock { reader.clock }
    var settings: Settings { reader.settings }

    /// Runs one write transaction inside a writer's group. To be called on the writer's thread, within
    /// `DatabaseStore.write`.
    ///
    /// - Parameters:
    ///   - requests: The requests that it performs.
    ///   - isErasing: Whether it erases a person, and may name one whose erasure is about to end.
    func write<Result>(
        as caller: Caller, in db: DatabaseConnection, for requests: PerformedRequests = PerformedRequests(),
        isErasing: Bool = false, _ body: (Transaction) throws -> Result
    ) throws -> Result {
        try db.enter(caller.scope)
        try tenants.note(caller.tenant, in: db)
        let closed = isErasing ? nil : try gate.closed(to: caller, in: db)
        let tx = Transaction(db: db, caller: caller, reader: reader, traceparent: requests.traceparent)
        let accesses = requests.acts.first?.accesses(of: caller)
        let tally = reader.rows.tally()
        let (result, events) = try db.examining(by: closed.map { closed in { try closed.examine($0) } }) {
            try db.recording(into: accesses) { try db.counting(into: tally) { (try body(tx), try tx.finish()) } }
        }
        if let added = tally?.added, added != 0 {
            db.afterCommit { [rows = reader.rows] in rows.note(added: added, of: caller.tenant) }
        }
        if let closed, let events { try closed.examine(events.drafts) }
        if !isErasing { try gate.requireSame(closed, for: caller, in: db) }
        if let events { db.leave(events, for: appendEvents) }
        for var notes in PrivilegedAct.notes(of: requests.acts, accesses, tx) + tx.auditNotes {
            notes.erased = tx.erased
            db.leave(notes, for: appendNotes)
        }
        if reader.backends.hasNew(in: tx.tenant) {
            db.leave(AuditNotes(tenant: tx.tenant, at: tx.now, .seenBackends), for: appendNotes)
        }
        return result
    }
}

extension TransactionRunner {
    /// Runs a body that stores something in the name of a caller beside its transaction.
    func examining<Result>(
        as caller: Caller, in db: DatabaseConnection, _ body: () throws -> Result
    ) throws -> Result {
        let closed = try gate.closed(to: caller, in: db)
        let result = try db.examining(by: closed.map { closed in { try closed.examine($0) } }, body)
        try gate.requireSame(closed, for: caller, in: db)
        return result
    }

    /// Stores the requests counted since the last call, except requests of closed persons, which are forgotten.
    func shareRates() throws {
        try RateSharing.share(reader.limiter, clock, in: store) { [gate] db, add in
            let closed = try gate.closed(to: nil, in: db)
            let sums = try add { closed?.contains($0) ?? false }
            try gate.requireSame(closed, for: nil, in: db)
            return sums
        }
    }

    /// Stores an event for the other replicas in a transaction of its own.
    ///
    /// - Parameter completion: Receives the outcome; `StoreBusy` if the queue is full.
    func notifyReplicas(
        _ name: StaticString, of tenant: ID<Tenant>, data: [UInt8],
        completion: @escaping @Sendable (Result<Void, any Error>) -> Void
    ) {
        do throws(StoreBusy) {
            try store.write(
                lane: WriteLane(.random(in: 0...1023), group: tenant.hashValue),
                { db in try write(as: .system(tenant: tenant), in: db) { $0.notifyReplicas(name, data: data) } },
                completion: completion)
        } catch {
            completion(.failure(error))
        }
    }
}

/// The rule of who may contact whom, which the file of tables and the present memberships decide.
typealias ContactRule = @Sendable (ContactKind, _ caller: Caller, _ users: [ID<User>]) -> Bool

/// A feature's reaction to a recorded fact, inside the same transaction.
typealias Reaction = @Sendable (Transaction, Fact) throws -> Void

/// The runner of read-only transactions, and the state that all transactions share.
final class TransactionReader: Sendable {
    let store: DatabaseStore
    let clock: Clock
    let settings: Settings
    let log: LogIdentity
    let positions: TenantPositions
    let reactions: [Reaction]
    /// The tables of the service, to find those whose rows belong to users.
    let tables: [Table]
    let badgeVersions: BadgeVersions
    let limiter: RateLimiter
    let rows: StoredRows
    let backends: Backends
    /// The shares of the badges that are hidden from users, because their features are off.
    let hiddenShares: BadgeShares
    let allowsContact: ContactRule
    /// The push messages that users cause.
    let pushes = CallerPace()
    /// Wakes the senders of outboxes after a commit that has added to one.
    let senders = WakeSignal()
    /// Creates the ids of all entities, in one order.
    let ids = Locked(IDSequence())

    init(
        store: DatabaseStore, clock: Clock, settings: Settings, log: LogIdentity, positions: TenantPositions,
        reactions: [Reaction], tables: [Table], limiter: RateLimiter,
        backends: Backends = Backends(), hiddenShares: BadgeShares = [],
        allowsContact: @escaping ContactRule = { _, _, _ in true }
    ) {
        self.store = store
        (self.backends, self.hiddenShares, self.allowsContact) = (backends, hiddenShares, allowsContact)
        self.limiter = limiter
        rows = StoredRows(limiter.shares, tables)
        self.clock = clock
        self.settings = settings
        self.log = log
        self.positions = positions
        self.reactions = reactions
        self.tables = tables
        badgeVersions = BadgeVersions(isAlone: store.engine == .sqlite)
    }

    /// Runs one read transaction, on the calling thread.
    func read<Result>(as caller: Caller, _ body: (Transaction) throws -> Result) throws -> Result {
        try store.read { db in
            try db.enter(caller.scope)
            return try body(Transaction(db: db, caller: caller, reader: self))
        }
    }

    /// Passes the rows of one statement to the body, on the calling thread.
    ///
    /// - Parameter records: A query for the service's own records in the same snapshot; see `RowCursor.records`.
    func rows<Result>(
        of sql: SQL, with records: SQL, as caller: Caller, _ body: (RowCursor) throws -> Result
    ) throws -> Result {
        try store.read { db in
            try db.enter(caller.scope)
            return try db.withRows(sql, with: records, body)
        }
    }
}
