import Database
import Rows
import Values

extension ChangesFeature {
    /// The ids of accepted changes, by which a repeated delivery is recognized.
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

    private static let bookkeeping = Unscoped.bookkeeping("ids of deliveries are asked for by the feed that sends them")

    /// Stores an id; false if it is stored already.
    static func addDelivery(_ id: String, _ tx: Transaction) throws -> Bool {
        try tx.db.run(
            """
            INSERT INTO \(deliveries, unscoped: bookkeeping) (tenant, id, created_at)
            VALUES (\(tx.tenant), \(id), \(tx.now.microseconds)) ON CONFLICT (tenant, id) DO NOTHING
            """) > 0
    }

    static func removeDelivery(_ id: String, _ tx: Transaction) throws {
        try tx.db.run(
            "DELETE FROM \(deliveries, unscoped: bookkeeping) WHERE tenant = \(tx.tenant) AND id = \(id)")
    }

    static let tidying = Tick(name: "changes-tidying", everySeconds: 5) { tx in
        let oldest = tx.now.adding(seconds: -ChangeDeduplication.deliverySeconds)
        let surplus = try tx.db.row(
            """
            SELECT created_at FROM \(deliveries, unscoped: bookkeeping) WHERE tenant = \(tx.tenant)
            ORDER BY created_at DESC LIMIT 1 OFFSET \(ChangeDeduplication.deliveriesMax)
            """
        ) { Int64(try $0.integer(0)) }
        let before = max(oldest.microseconds, surplus ?? .min)
        try tx.db.run(
            """
            DELETE FROM \(deliveries, unscoped: bookkeeping) WHERE tenant = \(tx.tenant) AND id IN (
                SELECT id FROM \(deliveries, unscoped: bookkeeping)
                WHERE tenant = \(tx.tenant) AND created_at <= \(before)
                ORDER BY created_at LIMIT \(ChangeDeduplication.prunedAtOnceMax))
            """)
    }
}

/// The bounds of what is stored of deliveries, each with what breaks without it.
enum ChangeDeduplication {
    /// How long the id of a change is stored; published in `/v1/config`. Senders try again for some hours; one that does so
    /// for days has received a failure each time.
    static let deliverySeconds: Int64 = 72 * 3600
    /// Ids that are stored for one feed, about 150 bytes each. Without it a busy feed fills the disk with them.
    static let deliveriesMax = 1_000_000
    /// Ids that are deleted at once, for which all writes wait: 50,000 take some 100 ms, and are as many as a feed of
    /// 10,000 a second brings until the next time.
    static let prunedAtOnceMax = 50_000
}
