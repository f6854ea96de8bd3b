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
    let committed: CommittedEvents

    /// One read transaction, on the calling thread.
    func read<Result>(as caller: Caller, _ body: (Transaction) throws -> Result) throws -> Result {
        try store.read { db in
            try body(Transaction(db: db, caller: caller, now: clock.now(), workshop: workshop))
        }
    }

    /// One write transaction inside the writer's group. Call on the writer's thread, within `Store.write`.
    func write<Result>(
        as caller: Caller, in db: Connection, _ body: (Transaction) throws -> Result
    ) throws -> Result {
        try tenants.note(caller.tenant, in: db)
        let tx = Transaction(db: db, caller: caller, now: clock.now(), workshop: workshop)
        let result = try body(tx)
        let events = try tx.finish()
        if !events.isEmpty { db.afterCommit { committed.append(events) } }
        return result
    }
}

/// The events of the group that is being committed, in the order of the log, until they are published together.
///
/// `@unchecked Sendable`: only touched on the writer's thread, by actions after a commit and by `batchCommitted`.
final class CommittedEvents: @unchecked Sendable {
    private var events: [StreamEvent] = []

    func append(_ more: [StreamEvent]) { events += more }

    func take() -> [StreamEvent] {
        defer { events = [] }
        return events
    }
}
