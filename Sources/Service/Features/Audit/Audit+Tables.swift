import Database
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
            .impersonal([
                "actor_kind", "actor_digest", "action", "target_kind", "target_digest", "request_id", "outcome",
                "cut_hash", "previous_hash", "hash",
            ])))
    /// The last entry of each tenant's chain.
    static let heads = Table(
        "audit_heads", read: [], write: [], person: .nothing("numbers and hashes of entries"))
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
                // The place at which a shortened chain begins (`cut_…`) stands in an entry of the chain.
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
                    cut_through INTEGER,
                    cut_at INTEGER,
                    cut_days INTEGER,
                    cut_hash TEXT,
                    PRIMARY KEY (tenant, sequence)
                ) STRICT, WITHOUT ROWID
                """,
                "CREATE INDEX audit_times ON audit (tenant, noted_at, sequence)",
                // Persons are found by their digests, which stay when they are erased.
                "CREATE INDEX audit_actor_digests ON audit (tenant, actor_digest, sequence)",
                "CREATE INDEX audit_target_digests ON audit (tenant, target_digest, sequence)",
                "CREATE INDEX audit_actions ON audit (tenant, action, sequence)",
                """
                CREATE TABLE audit_heads (
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
    struct Filter: Sendable {
        /// The digest of the caller.
        var actor: String?
        /// The digest of the user whose data was concerned.
        var target: String?
        var action: String?
        var from: Timestamp?
        var to: Timestamp?
    }

    /// The position in a list from which its next page continues.
    struct PageCursor: Sendable {
        let at: Timestamp
        let sequence: Int

        init(of entry: AuditEntry) { (at, sequence) = (entry.at, entry.sequence) }

        init?(reading text: String) {
            let numbers = text.split(separator: ".").compactMap { Int64($0) }
            guard numbers.count == 2 else { return nil }
            (at, sequence) = (Timestamp(microseconds: numbers[0]), Int(numbers[1]))
        }

        var text: String { "\(at.microseconds).\(sequence)" }
    }

    /// Returns the query for the newest entries that pass a filter, in the order of the chain.
    ///
    /// Times may go back in a chain: clocks of replicas differ, and clocks are set. So a list between two times is in the
    /// order of the times, which is a range of an index.
    static func listing(_ filter: Filter, behind last: PageCursor?, limit: Int, visibleTo scope: Scope) -> SQL {
        let isByTime = filter.from != nil || filter.to != nil
        let conditions: [SQL?] = [
            filter.actor.map { "actor_digest = \($0)" }, filter.target.map { "target_digest = \($0)" },
            filter.action.map { "action = \($0)" },
            filter.from.map { "noted_at >= \($0)" }, filter.to.map { "noted_at < \($0)" },
            last.map { last in
                isByTime
                    ? "(noted_at, sequence) < (\(last.at), \(last.sequence))" : "sequence < \(last.sequence)"
            },
        ]
        let order: SQL = isByTime ? "noted_at DESC, sequence DESC" : "sequence DESC"
        return """
            SELECT \(entryColumns) FROM \(entries, visibleTo: scope)
            WHERE \(SQL.all(conditions)) ORDER BY \(order) LIMIT \(limit)
            """
    }

    // MARK: Erasure

    /// Ends the minutes of an erased caller. Their entries keep the caller's digest, so the acts can still be found.
    static let personStep = PersonStep.repeating("audit_counts") { person, tx in
        let why = Unscoped.reaction("an erased person is not named any more")
        let hasCounts = try tx.db.exists(
            "SELECT 1 FROM \(counts, within: tx.tenant, why) WHERE actor_id = \(person)")
        if hasCounts { tx.note(AuditNotes(tenant: tx.tenant, at: tx.now, .endOfCounts(of: person))) }
        return hasCounts
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

    /// Deletes expired entries, the oldest first, and notes it in an entry, so that the rest of the chain can be verified.
    static let pruning = Tick.forgetting(name: "audit-retention", everySeconds: AuditLimits.pruningSeconds) { age, tx in
        let days = tx.settings.auditKeptDays
        let oldest = age.end(ofDays: days)
        let isDue = try tx.db.exists(
            """
            SELECT 1 FROM \(entries, within: tx.tenant, upkeep)
            WHERE noted_at < \(oldest.adding(seconds: -AuditLimits.cutSeconds))
            """)
        guard isDue, let (cut, count) = try expired(before: oldest, days, age, tx) else { return }
        try tx.db.run(
            "DELETE FROM \(entries, within: tx.tenant, upkeep) WHERE sequence <= \(cut.through)")
        tx.note(AuditNotes(tenant: tx.tenant, at: tx.now, .retention(cut, count)))
    }

    /// Finds the first entries of the chain that are too old, up to one that is not. An entry that was written while a
    /// clock was ahead does not keep the others.
    private static func expired(
        before oldest: Timestamp, _ days: Int, _ age: AgeTime, _ tx: Transaction
    ) throws -> (AuditCut, count: Int)? {
        let latest = age.now.adding(seconds: AuditLimits.clockSkewSeconds)
        let first = try tx.db.rows(
            """
            SELECT sequence, hash, noted_at FROM \(entries, within: tx.tenant, upkeep)
            ORDER BY sequence LIMIT \(AuditLimits.prunedAtOnceMax)
            """
        ) { AuditCut(through: try $0.integer(0), hash: try $0.text(1), at: try $0.moment(2), keptDays: days) }
        let found = first.prefix { $0.at < oldest || $0.at > latest }
        guard let last = found.lastIndex(where: { $0.at < oldest }) else { return nil }
        var cut = found[last]
        cut.at = found[...last].map(\.at).filter { $0 < oldest }.max() ?? cut.at
        return (cut, last + 1)
    }
}
