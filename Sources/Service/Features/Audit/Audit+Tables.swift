import Database
import Domain
import Values

extension AuditFeature {
    /// Administrators and backends read it; only the service writes it.
    static let entries = Table("audit", read: ["tenant:admin", "tenant:service"], write: [])
    /// The last entry of each tenant's chain.
    static let heads = Table("audit_heads", read: [], write: [])
    /// The last entry of each tenant that was deleted because of its age: the chain begins behind it.
    static let anchors = Table("audit_anchors", read: [], write: [])
    /// The numbers of counted calls in the present minute and in minutes whose entry is not written yet.
    static let counts = Table("audit_counts", read: [], write: [])

    static let entryColumns = AuditEntry.columns()

    static let migrations = [
        Migration(
            "0001_audit",
            sql: [
                """
                CREATE TABLE audit (
                    tenant TEXT NOT NULL,
                    sequence INTEGER NOT NULL,
                    noted_at INTEGER NOT NULL,
                    actor_kind TEXT NOT NULL,
                    actor_id TEXT,
                    actor_digest TEXT NOT NULL,
                    action TEXT NOT NULL,
                    target_kind TEXT,
                    target_id TEXT,
                    target_digest TEXT,
                    request_id TEXT,
                    outcome TEXT NOT NULL,
                    count INTEGER NOT NULL,
                    previous_hash TEXT NOT NULL,
                    hash TEXT NOT NULL,
                    PRIMARY KEY (tenant, sequence)
                ) STRICT, WITHOUT ROWID
                """,
                "CREATE INDEX audit_times ON audit (tenant, noted_at, sequence)",
                "CREATE INDEX audit_actors ON audit (tenant, actor_id, sequence)",
                "CREATE INDEX audit_targets ON audit (tenant, target_id, sequence)",
                "CREATE INDEX audit_actions ON audit (tenant, action, sequence)",
                """
                CREATE TABLE audit_heads (
                    tenant TEXT NOT NULL PRIMARY KEY,
                    sequence INTEGER NOT NULL,
                    hash TEXT NOT NULL,
                    noted_at INTEGER NOT NULL
                ) STRICT, WITHOUT ROWID
                """,
                """
                CREATE TABLE audit_anchors (
                    tenant TEXT NOT NULL PRIMARY KEY,
                    sequence INTEGER NOT NULL,
                    hash TEXT NOT NULL
                ) STRICT, WITHOUT ROWID
                """,
                """
                CREATE TABLE audit_counts (
                    tenant TEXT NOT NULL,
                    minute INTEGER NOT NULL,
                    actor_kind TEXT NOT NULL,
                    actor_id TEXT NOT NULL,
                    action TEXT NOT NULL,
                    count INTEGER NOT NULL,
                    PRIMARY KEY (tenant, minute, actor_kind, actor_id, action)
                ) STRICT, WITHOUT ROWID
                """,
            ])
    ]

    // MARK: Reading

    /// The conditions of a list.
    struct Filter {
        var actor: ID<User>?
        var target: ID<User>?
        var action: String?
        var from: Timestamp?
        var to: Timestamp?
    }

    /// Returns the query for the newest entries that pass a filter. Times of a chain never go back, so a moment is one
    /// place in it, and every condition is a range of an index.
    static func listing(_ filter: Filter, before sequence: Int?, limit: Int, visibleTo scope: Scope) -> SQL {
        let conditions: [SQL?] = [
            filter.actor.map { "actor_id = \($0)" }, filter.target.map { "target_id = \($0)" },
            filter.action.map { "action = \($0)" },
            filter.from.map {
                """
                sequence >= coalesce((SELECT sequence FROM \(entries, visibleTo: scope)
                    WHERE noted_at >= \($0) ORDER BY noted_at, sequence LIMIT 1), \(Int.max))
                """
            },
            filter.to.map {
                """
                sequence <= coalesce((SELECT sequence FROM \(entries, visibleTo: scope)
                    WHERE noted_at < \($0) ORDER BY noted_at DESC, sequence DESC LIMIT 1), 0)
                """
            },
            sequence.map { "sequence < \($0)" },
        ]
        return """
            SELECT \(entryColumns) FROM \(entries, visibleTo: scope)
            WHERE \(SQL.all(conditions)) ORDER BY sequence DESC LIMIT \(limit)
            """
    }

    // MARK: Erasure

    /// Blanks the ids of a person in all entries. The digests stay, and with them the chain.
    static func forget(_ user: ID<User>, _ tx: Transaction) throws {
        let why = Unscoped.reaction("an erased person is not named any more")
        for column: SQL in ["actor_id", "target_id"] {
            try tx.db.run(
                """
                UPDATE \(entries, unscoped: why) SET \(column) = NULL
                WHERE tenant = \(tx.tenant) AND \(column) = \(user)
                """)
        }
    }

    // MARK: Upkeep

    private static let upkeep = Unscoped.bookkeeping("upkeep of the audit log")

    /// Turns the numbers of ended minutes into entries.
    static let endingMinutes = Tick(
        name: "audit-minutes", everySeconds: AuditLimits.windowsSeconds,
        due: { now in
            """
            SELECT 1 FROM \(counts, unscoped: upkeep) WHERE minute < \(now.seconds / AuditLimits.windowSeconds)
            LIMIT 1
            """
        },
        body: { tx in tx.note(AuditNotes(tenant: tx.tenant, at: tx.now, .endOfMinutes(before: tx.now))) })

    /// Deletes expired entries, the oldest first, and remembers the last deleted one, so that the rest of the chain can
    /// be verified.
    static let pruning = Tick(name: "audit-retention", everySeconds: AuditLimits.pruningSeconds) { tx in
        let oldest = tx.now.adding(seconds: -Int64(tx.settings.auditKeptDays) * 86_400)
        let expired = try tx.db.row(
            """
            SELECT min(sequence), (SELECT sequence FROM \(entries, unscoped: upkeep)
                WHERE tenant = \(tx.tenant) AND noted_at < \(oldest) ORDER BY noted_at DESC, sequence DESC LIMIT 1)
            FROM \(entries, unscoped: upkeep) WHERE tenant = \(tx.tenant)
            """
        ) { (first: try $0.optionalInteger(0), last: try $0.optionalInteger(1)) }
        guard let first = expired?.first, let last = expired?.last else { return }
        let end = min(last, first + AuditLimits.prunedAtOnceMax - 1)
        try tx.db.run(
            """
            INSERT INTO \(anchors, unscoped: upkeep) (tenant, sequence, hash)
            SELECT tenant, sequence, hash FROM \(entries, unscoped: upkeep)
            WHERE tenant = \(tx.tenant) AND sequence = \(end)
            ON CONFLICT (tenant) DO UPDATE SET sequence = excluded.sequence, hash = excluded.hash
            """)
        try tx.db.run(
            "DELETE FROM \(entries, unscoped: upkeep) WHERE tenant = \(tx.tenant) AND sequence <= \(end)")
    }
}
