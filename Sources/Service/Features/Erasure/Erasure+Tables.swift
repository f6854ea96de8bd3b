import Database
import Values

extension ErasureFeature {
    /// The erasures, which backends and administrators request. The id of the person is stored until the erasure is
    /// done. Afterwards only the mark recognizes the person.
    static let erasures = Table(
        "erasures", read: ["tenant:service", "tenant:admin"], write: ["tenant:service", "tenant:admin"],
        person: .copies("the id, until the erasure is done"))

    static let migration = Migration(
        "0001_erasures",
        sql: [
            """
            CREATE TABLE erasures (
                tenant TEXT NOT NULL,
                mark TEXT NOT NULL,
                user_id TEXT,
                requested_at INTEGER NOT NULL,
                step TEXT NOT NULL,
                place TEXT,
                log_end INTEGER,
                passes INTEGER NOT NULL,
                next_at INTEGER NOT NULL,
                done_at INTEGER,
                PRIMARY KEY (tenant, mark),
                CHECK (done_at IS NULL OR user_id IS NULL)
            ) STRICT
            """,
            "CREATE INDEX erasures_due ON erasures (next_at) WHERE done_at IS NULL",
            "CREATE INDEX erasures_done ON erasures (tenant, done_at) WHERE done_at IS NOT NULL",
        ])

    private static let bookkeeping = Unscoped.bookkeeping("erasures of all persons continue")

    /// A stored erasure.
    struct Erasure {
        let mark: String
        /// Nil once all rows are erased.
        let userId: ID<User>?
        let requestedAt: Timestamp
        var step: String
        var place: String?
        /// The newest event when the log's turn came.
        var logEnd: Int64?
        var passes: Int
        var nextAt: Timestamp
        let doneAt: Timestamp?

        init(_ row: Row) throws {
            mark = try row.text(0)
            userId = try row.optionalID(1)
            requestedAt = try row.moment(2)
            step = try row.text(3)
            place = try row.optionalText(4)
            logEnd = try row.optionalInteger(5).map(Int64.init)
            passes = try row.integer(6)
            nextAt = try row.moment(7)
            doneAt = try row.optionalMoment(8)
        }
    }

    private static let columns: SQL =
        "mark, user_id, requested_at, step, place, log_end, passes, next_at, done_at"

    static func find(_ mark: String, _ tx: Transaction) throws -> Erasure? {
        try tx.db.row(
            "SELECT \(columns) FROM \(erasures, visibleTo: tx.scope) WHERE mark = \(mark)", Erasure.init)
    }

    /// Stores a new erasure, in place of an earlier one that is done.
    static func insert(_ mark: String, of userId: ID<User>, _ tx: Transaction) throws {
        try tx.db.run(
            """
            INSERT INTO \(erasures, writableBy: tx.scope)
                (tenant, mark, user_id, requested_at, step, passes, next_at)
            VALUES (\(tx.tenant), \(mark), \(userId), \(tx.now), '', 0, \(tx.now))
            ON CONFLICT (tenant, mark) DO UPDATE SET user_id = excluded.user_id, requested_at = excluded.requested_at,
                step = '', place = NULL, log_end = NULL, passes = 0, next_at = excluded.next_at, done_at = NULL
            """)
    }

    static func due(at now: Timestamp) -> SQL {
        """
        SELECT DISTINCT tenant FROM \(erasures, unscoped: bookkeeping) WHERE done_at IS NULL AND next_at <= \(now)
        """
    }

    static func findDue(_ tx: Transaction) throws -> Erasure? {
        try tx.db.row(
            """
            SELECT \(columns) FROM \(erasures, visibleTo: tx.scope)
            WHERE done_at IS NULL AND next_at <= \(tx.now) ORDER BY requested_at, mark LIMIT 1
            """, Erasure.init)
    }

    static func store(_ erasure: Erasure, _ tx: Transaction) throws {
        let userId = [rewriteStep, checkpointStep].contains(erasure.step) ? nil : erasure.userId
        try tx.db.run(
            """
            UPDATE \(erasures, writableBy: tx.scope) SET user_id = \(userId), step = \(erasure.step),
                place = \(erasure.place), log_end = \(erasure.logEnd), passes = \(erasure.passes),
                next_at = \(erasure.nextAt)
            WHERE mark = \(erasure.mark)
            """)
    }

    /// Records that the file was rewritten, for all erasures that waited for it.
    static func storeRewritten(_ tx: Transaction) throws {
        try tx.db.run(
            """
            UPDATE \(erasures, unscoped: bookkeeping) SET step = \(checkpointStep), next_at = \(tx.now)
            WHERE step = \(rewriteStep) AND done_at IS NULL
            """)
    }

    static func storeDone(_ mark: String, _ tx: Transaction) throws {
        try tx.db.run(
            """
            UPDATE \(erasures, writableBy: tx.scope) SET done_at = \(tx.now)
            WHERE mark = \(mark) AND step = \(checkpointStep) AND done_at IS NULL
            """)
    }

    /// Deletes finished erasures once no token of the person can be valid.
    static let pruning = Tick.forgetting(name: "erasures.forgetting", everySeconds: 3600) { age, tx in
        let days = max(Limits.tokenDays, tx.settings.serviceTokenDays)
        try tx.db.run(
            """
            DELETE FROM \(erasures, writableBy: tx.scope)
            WHERE done_at IS NOT NULL AND done_at < \(age.end(ofDays: days))
            """)
    }
}
