import Database
import Domain
import Values

extension AuditFeature {
    /// Administrators and backends read it; only the service writes it.
    ///
    /// The ids of an erased person are blanked. The digests stay, and with them the chain.
    static let entries = Table(
        "audit", read: ["tenant:admin", "tenant:service"], write: [],
        kept: "BELLHOP_AUDIT_KEPT_DAYS",
        person: .rows(
            by: ["sequence"],
            [.changedByScan("actor_id", .null("actor_id")), .changedByScan("target_id", .null("target_id"))],
            impersonal: [
                "actor_kind", "actor_digest", "action", "target_kind", "target_digest", "request_id", "outcome",
                "previous_hash", "hash",
            ]))
    /// The last entry of each tenant's chain.
    static let heads = Table(
        "audit_heads", read: [], write: [], person: .nothing("numbers and hashes of entries"))
    /// The last entry of each tenant that was deleted because of its age: the chain begins behind it.
    static let anchors = Table(
        "audit_anchors", read: [], write: [], person: .nothing("numbers and hashes of entries"))
    /// The numbers of counted calls in the present minute and in minutes whose entry is not written yet.
    static let counts = Table(
        "audit_counts", read: [], write: [],
        person: .rows(
            by: ["minute", "actor_kind", "actor_id", "action"], [.step("actor_id", isBounded: false)],
            isExported: false))

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

    /// Counts the calls of an erased administrator under the id of erased persons.
    static let personStep = PersonStep("audit_counts") { person, _, tx in
        let why = Unscoped.reaction("an erased person is not named any more")
        try tx.db.run(
            """
            INSERT INTO \(counts, unscoped: why) (tenant, minute, actor_kind, actor_id, action, count)
            SELECT tenant, minute, actor_kind, \(ID<User>.erased), action, count FROM \(counts, unscoped: why)
            WHERE tenant = \(tx.tenant) AND actor_id = \(person)
            ON CONFLICT (tenant, minute, actor_kind, actor_id, action) DO UPDATE SET
                count = audit_counts.count + excluded.count
            """)
        try tx.db.run(
            "DELETE FROM \(counts, unscoped: why) WHERE tenant = \(tx.tenant) AND actor_id = \(person)")
        return nil
    }

    // MARK: Upkeep

    private static let upkeep = Unscoped.bookkeeping("upkeep of the audit log")

    /// Turns the numbers of ended minutes into entries.
    static let endingMinutes = Tick(
        name: "audit-minutes", everySeconds: AuditLimits.windowsSeconds,
        due: { now in
            "SELECT tenant FROM \(counts, unscoped: upkeep) WHERE minute < \(now.seconds / AuditLimits.windowSeconds)"
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
