import Database
import Domain

extension ChangesFeature {
    /// The ids of changes that were taken in, by which a second delivery is told from a first.
    static let deliveries = Table("change_deliveries", read: [], write: [])

    static let migration = Migration(
        "0001_changes",
        sql: [
            """
            CREATE TABLE change_deliveries (
                tenant TEXT NOT NULL,
                id TEXT NOT NULL,
                created_at INTEGER NOT NULL,
                PRIMARY KEY (tenant, id)
            ) STRICT
            """,
            "CREATE INDEX change_deliveries_age ON change_deliveries (tenant, created_at)",
        ])

    private static let keeping = Unscoped.bookkeeping("ids of deliveries are asked for by the feed that sends them")

    /// Notes an id; false if it is known.
    static func note(_ id: String, _ tx: Transaction) throws -> Bool {
        try tx.db.run(
            """
            INSERT INTO \(deliveries, unscoped: keeping) (tenant, id, created_at)
            VALUES (\(tx.tenant), \(id), \(tx.now.microseconds)) ON CONFLICT (tenant, id) DO NOTHING
            """) > 0
    }

    static func forget(_ id: String, _ tx: Transaction) throws {
        try tx.db.run(
            "DELETE FROM \(deliveries, unscoped: keeping) WHERE tenant = \(tx.tenant) AND id = \(id)")
    }

    static let tidying = Tick(name: "changes-tidying", everySeconds: 5) { tx in
        let oldest = tx.now.adding(seconds: -ChangeKeeping.deliverySeconds)
        let surplus = try tx.db.row(
            """
            SELECT created_at FROM \(deliveries, unscoped: keeping) WHERE tenant = \(tx.tenant)
            ORDER BY created_at DESC LIMIT 1 OFFSET \(ChangeKeeping.deliveriesMax)
            """
        ) { Int64(try $0.integer(0)) }
        let before = max(oldest.microseconds, surplus ?? .min)
        try tx.db.run(
            """
            DELETE FROM \(deliveries, unscoped: keeping) WHERE tenant = \(tx.tenant) AND id IN (
                SELECT id FROM \(deliveries, unscoped: keeping)
                WHERE tenant = \(tx.tenant) AND created_at <= \(before)
                ORDER BY created_at LIMIT \(ChangeKeeping.forgottenAtOnceMax))
            """)
    }
}

/// What is kept of deliveries, each bound with what breaks without it.
enum ChangeKeeping {
    /// Published to feeds, with its reason.
    static let deliverySeconds = ChangeConstants.duplicatesKnownSeconds
    /// Ids that are kept for one feed, about 150 bytes each. Without it a busy feed fills the disk with them.
    static let deliveriesMax = 1_000_000
    /// Everybody who writes waits while they are forgotten: 50,000 take some 100 ms, and are as many as a feed of 10,000 a
    /// second brings until the next time.
    static let forgottenAtOnceMax = 50_000
}
