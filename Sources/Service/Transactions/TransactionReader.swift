import Database
import Domain

/// Transactions that only read, and what all transactions share.
final class TransactionReader: Sendable {
    let store: Store
    let clock: Clock
    let settings: Settings
    let reactions: [Reaction]
    let badgeVersions: BadgeVersions
    let ids = IdentifierSource()

    init(store: Store, clock: Clock, settings: Settings, reactions: [Reaction]) {
        self.store = store
        self.clock = clock
        self.settings = settings
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
}
