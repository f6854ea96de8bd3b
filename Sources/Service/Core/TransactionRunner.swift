import Database
import Domain
import Foundation
import Realtime

/// Runs transactions: for requests, for streams, and for the work that comes round.
struct TransactionRunner: Sendable {
    let store: Store
    let clock: Clock
    let workshop: Transaction.Workshop
    let tenants: Tenants

    /// One read transaction, on the calling thread.
    func read<Result>(as caller: Caller, _ body: (Transaction) throws -> Result) throws -> Result {
        try store.read { db in
            try db.enter(caller.scope)
            return try body(Transaction(db: db, caller: caller, now: clock.now(), workshop: workshop))
        }
    }

    /// One write transaction inside a writer's group. Call on the writer's thread, within `Store.write`.
    func write<Result>(
        as caller: Caller, in db: Connection, _ body: (Transaction) throws -> Result
    ) throws -> Result {
        try db.enter(caller.scope)
        try tenants.note(caller.tenant, in: db)
        let tx = Transaction(db: db, caller: caller, now: clock.now(), workshop: workshop)
        let result = try body(tx)
        try tx.finish()
        return result
    }
}
