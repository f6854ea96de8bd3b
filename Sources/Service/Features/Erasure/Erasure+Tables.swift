import Database
import Values

extension ErasureFeature {
    /// The erasures, which backends and administrators request. The id of the person is stored, encrypted, until the
    /// erasure is done. Afterwards only the mark recognizes the person.
    static let erasures = Table(
        "erasures", read: ["tenant:service", "tenant:admin"], write: ["tenant:service", "tenant:admin"],
        person: .copies("the encrypted id, until the erasure is done"))

    static let migrations = [Migration("0001_erasures", sql: creation)]

    private static let creation: [Migration.Step] = [
        """
        CREATE TABLE erasures (
            tenant TEXT NOT NULL,
            mark TEXT NOT NULL,
            encrypted_id TEXT,
            requested_at INTEGER NOT NULL,
            step TEXT NOT NULL,
            place TEXT,
            log_end INTEGER,
            stage INTEGER NOT NULL,
            next_at INTEGER NOT NULL,
            done_at INTEGER,
            changed INTEGER NOT NULL DEFAULT 0,
            PRIMARY KEY (tenant, mark),
            CHECK (done_at IS NULL OR encrypted_id IS NULL)
        ) STRICT
        """,
        "CREATE INDEX erasures_due ON erasures (next_at) WHERE done_at IS NULL",
        "CREATE INDEX erasures_done ON erasures (tenant, done_at) WHERE done_at IS NOT NULL",
        "CREATE INDEX erasures_closing ON erasures (step) WHERE done_at IS NULL AND stage = 0",
        "CREATE INDEX erasures_open ON erasures (tenant, stage, requested_at) WHERE done_at IS NULL",
    ]

    /// A round has the erasures of all tenants.
    private static let all: SQL = "\(erasures, unscoped: .bookkeeping("erasures of all tenants share a round"))"

    /// The stages of an erasure, in the order in which they are worked on: writes that name a person wait for the end of
    /// a round.
    enum Stage: Int {
        /// The last pass and the files, within a round.
        case closing
        case first
        /// Waits for the next round.
        case waiting
    }

    /// A stored erasure.
    struct Erasure {
        let mark: String
        /// Nil once it is done.
        let encryptedId: String?
        let requestedAt: Timestamp
        var stage: Stage
        var step: String
        var place: String?
        /// The newest event when the log's turn came.
        var logEnd: Int64?
        /// The rows that were erased or changed and whose traces may be in the file.
        var changed: Int
        var nextAt: Timestamp
        let doneAt: Timestamp?

        var isOpen: Bool { doneAt == nil }

        init(_ row: Row) throws {
            mark = try row.text(0)
            encryptedId = try row.optionalText(1)
            requestedAt = try row.moment(2)
            guard let stage = Stage(rawValue: try row.integer(3)) else { throw row.unknownValue(3) }
            self.stage = stage
            step = try row.text(4)
            place = try row.optionalText(5)
            logEnd = try row.optionalInteger(6).map(Int64.init)
            changed = try row.integer(7)
            nextAt = try row.moment(8)
            doneAt = try row.optionalMoment(9)
        }
    }

    private static let columns: SQL =
        "mark, encrypted_id, requested_at, stage, step, place, log_end, changed, next_at, done_at"

    // MARK: The erasures of a tenant

    static func find(_ mark: String, _ tx: Transaction) throws -> Erasure? {
        try tx.db.row(
            "SELECT \(columns) FROM \(erasures, visibleTo: tx.scope) WHERE mark = \(mark)", Erasure.init)
    }

    /// Returns the number of erasures that are not done.
    static func countOpen(_ tx: Transaction) throws -> Int {
        try tx.db.integer("SELECT count(*) FROM \(erasures, visibleTo: tx.scope) WHERE done_at IS NULL") ?? 0
    }

    /// Stores a new erasure, in place of an earlier one. One that runs begins again.
    static func insert(_ mark: String, _ encryptedId: String, _ tx: Transaction) throws {
        try tx.db.run(
            """
            INSERT INTO \(erasures, writableBy: tx.scope)
                (tenant, mark, encrypted_id, requested_at, stage, step, next_at)
            VALUES (\(tx.tenant), \(mark), \(encryptedId), \(tx.now), \(Stage.first.rawValue), '', \(tx.now))
            ON CONFLICT (tenant, mark) DO UPDATE SET encrypted_id = excluded.encrypted_id,
                requested_at = excluded.requested_at, stage = excluded.stage, step = '', place = NULL, log_end = NULL,
                changed = CASE WHEN erasures.done_at IS NULL THEN erasures.changed ELSE 0 END,
                next_at = excluded.next_at, done_at = NULL
            """)
    }

    static func due(at now: Timestamp) -> SQL {
        """
        SELECT DISTINCT tenant FROM \(all) WHERE done_at IS NULL AND next_at <= \(now)
        """
    }

    static func findDue(_ tx: Transaction) throws -> Erasure? {
        try tx.db.row(
            """
            SELECT \(columns) FROM \(erasures, visibleTo: tx.scope)
            WHERE done_at IS NULL AND next_at <= \(tx.now)
            ORDER BY stage, CASE WHEN step = \(fileStep) THEN 1 ELSE 0 END, requested_at, mark LIMIT 1
            """, Erasure.init)
    }

    static func store(_ erasure: Erasure, _ tx: Transaction) throws {
        try tx.db.run(
            """
            UPDATE \(erasures, writableBy: tx.scope) SET stage = \(erasure.stage.rawValue), step = \(erasure.step),
                place = \(erasure.place), log_end = \(erasure.logEnd), changed = \(erasure.changed),
                next_at = \(erasure.nextAt)
            WHERE mark = \(erasure.mark)
            """)
    }

    /// Returns when the file may be rewritten.
    static func rewriteTime(_ tx: Transaction) -> Timestamp {
        tx.fileBytes.map { rewriteTime(ofBytes: $0, hour: tx.settings.erasureHour, at: tx.now) } ?? tx.now
    }

    // MARK: The erasures of a round

    private static let isOfRound: SQL = "done_at IS NULL AND stage = 0"
    private static let isAtFile: SQL = "\(isOfRound) AND step = \(fileStep)"

    /// Returns the persons that transactions must not name.
    static func closing(in db: DatabaseConnection, _ seal: PersonSeal) throws -> [Owner] {
        try db.rows("SELECT tenant, encrypted_id FROM \(all) WHERE \(isOfRound)") { row in
            let tenant: ID<Tenant> = try row.id(0)
            return try row.optionalText(1).flatMap { seal.decrypt($0, of: tenant) }
                .map { Owner(tenant: tenant, userId: $0) }
        }.compactMap(\.self)
    }

    /// Puts off the next round for the erasures of all tenants that wait for it.
    static func storePause(seconds: Int64, _ tx: Transaction) throws {
        try tx.db.run(
            """
            UPDATE \(all) SET next_at = \(tx.now.adding(seconds: seconds))
            WHERE done_at IS NULL AND stage = \(Stage.waiting.rawValue) AND next_at <= \(tx.now)
            """)
    }

    /// Begins a round with the erasures of all tenants that wait for it.
    ///
    /// - Parameter waits: Whether the round begins with the step ``closingStep``. Its place names the round.
    static func storeRound(waits: Bool, _ tx: Transaction) throws {
        let place = waits ? String(UInt64.random(in: .min ... .max), radix: 36) : nil
        try tx.db.run(
            """
            UPDATE \(all) SET stage = \(Stage.closing.rawValue),
                step = \(waits ? closingStep : ""), place = \(place), log_end = NULL, next_at = \(tx.now)
            WHERE done_at IS NULL AND stage = \(Stage.waiting.rawValue) AND next_at <= \(tx.now)
            """)
    }

    /// Whether an erasure of the round is still in its pass.
    static func hasPass(_ tx: Transaction) throws -> Bool {
        try tx.db.exists(
            """
            SELECT 1 FROM \(all) WHERE \(isOfRound) AND step <> \(fileStep) LIMIT 1
            """)
    }

    /// Lets the erasures that have reached the files wait for the others of the round.
    static func storePauseAtFile(_ tx: Transaction) throws {
        try tx.db.run(
            """
            UPDATE \(all) SET next_at = \(tx.now.adding(seconds: 1)) WHERE \(isAtFile)
            """)
    }

    static func hasChanges(in db: DatabaseConnection) throws -> Bool {
        try db.exists("SELECT 1 FROM \(all) WHERE \(isAtFile) AND changed > 0 LIMIT 1")
    }

    /// Ends the round without these erasures, which wait for another one.
    static func storeWaiting(until time: Timestamp, onlyChanged: Bool, _ tx: Transaction) throws {
        try tx.db.run(
            """
            UPDATE \(all) SET stage = \(Stage.waiting.rawValue), step = '',
                next_at = \(time)
            WHERE \(isAtFile) AND \(onlyChanged ? "changed > 0" : "TRUE" as SQL)
            """)
    }

    /// Records that the file was rewritten.
    static func storeRewritten(_ tx: Transaction) throws {
        try tx.db.run("UPDATE \(all) SET changed = 0 WHERE \(isAtFile)")
    }

    static func storeDone(_ tx: Transaction) throws {
        try tx.db.run(
            """
            UPDATE \(all) SET encrypted_id = NULL, place = NULL, done_at = \(tx.now)
            WHERE \(isAtFile)
            """)
    }

    // MARK: Upkeep

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
