import Database
import Domain

/// Runs transactions: for requests, for streams, and for the work that comes round.
struct TransactionRunner: Sendable {
    let reader: TransactionReader
    let tenants: Tenants
    /// Numbers and stores the events of a group of transactions, and publishes them once they are committed.
    let appendEvents: GroupStep<PendingEvents>

    var store: Store { reader.store }
    var clock: Clock { reader.clock }
    var settings: Settings { reader.settings }

    /// One read transaction, on the calling thread.
    func read<Result>(as caller: Caller, _ body: (Transaction) throws -> Result) throws -> Result {
        try reader.read(as: caller, body)
    }

    /// One write transaction inside a writer's group. Call on the writer's thread, within `Store.write`.
    func write<Result>(
        as caller: Caller, in db: Connection, _ body: (Transaction) throws -> Result
    ) throws -> Result {
        try db.enter(caller.scope)
        try tenants.note(caller.tenant, in: db)
        let tx = Transaction(db: db, caller: caller, reader: reader)
        let result = try body(tx)
        if let events = try tx.finish() { db.leave(events, for: appendEvents) }
        return result
    }
}
