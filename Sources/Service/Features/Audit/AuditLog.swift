import Cryptography
import Database
import Threads
import Values

/// The writer of the audit log: the last step of a group of transactions turns their notes into entries, in the same
/// commit.
///
/// The lock of a tenant's chain is taken only here, after all other locks of the group and before the counter of the
/// event log. So the chain has one order on all replicas, and no two groups wait for each other.
final class AuditLog: Sendable {
    private let secrets = Locked([ID<Tenant>: AuthenticationKey]())
    private let backends: Backends
    private let gate: ErasureGate

    init(backends: Backends, gate: ErasureGate) { (self.backends, self.gate) = (backends, gate) }

    /// The last entry of a tenant's chain.
    private struct Head {
        var sequence = 0
        var hash = AuditEntry.origin
    }

    private struct Rows {
        var entries: [SQLValue] = []
        var heads: [SQLValue] = []
        var counts: [SQLValue] = []
    }

    func append(_ notes: [AuditNotes], in db: DatabaseConnection) throws {
        let byTenant = Dictionary(grouping: notes, by: \.tenant)
        let tenants = byTenant.keys.sorted()
        try db.lock(tenants.map { AuditFeature.chain.name(in: $0) })
        try backends.store(of: tenants, in: db)
        var statements: [SQL] = []
        for tenant in tenants {
            let notes = byTenant[tenant] ?? []
            var rows = Rows()
            add(notes, to: &rows)
            let drafts = try drafts(of: notes, in: db)
            let erased = notes.reduce(into: Set()) { $0.formUnion($1.erased) }
            if !drafts.isEmpty { try add(drafts, of: tenant, without: erased, to: &rows, in: db) }
            statements +=
                Self.intoCounts.statements(of: rows.counts, within: tenant)
                + Self.intoEntries.statements(of: rows.entries, within: tenant)
                + Self.intoHeads.statements(of: rows.heads, within: tenant)
        }
        try db.runWithCommit(statements)
    }

    // MARK: Entries

    /// Returns the entries without their places in the chain.
    private func drafts(of notes: [AuditNotes], in db: DatabaseConnection) throws -> [AuditEntry] {
        try notes.flatMap { notes -> [AuditEntry] in
            switch notes.kind {
            case .each(let act, let items):
                return items.map { item in
                    AuditEntry(
                        at: notes.at, actorKind: act.privilege, actorId: act.actor, action: act.action,
                        targetKind: item.table, targetId: item.userId, requestId: act.requestId, outcome: item.outcome,
                        count: item.count)
                }
            case .count, .seenBackends: return []
            case .endOfMinutes(let moment):
                let minute = moment.seconds / AuditLimits.windowSeconds
                return try endedWindows(of: notes.tenant, where: "minute < \(minute)", in: db)
            case .endOfCounts(let actor):
                return try endedWindows(of: notes.tenant, where: "actor_id = \(actor)", in: db)
            case .retention(let cut, let count):
                var entry = AuditEntry(
                    at: notes.at, actorKind: .bellhop, actorId: "bellhop", action: "retention",
                    targetKind: AuditFeature.entries.name, outcome: .removed, count: count)
                entry.cut = cut
                return [entry]
            }
        }
    }

    private func add(
        _ drafts: [AuditEntry], of tenant: ID<Tenant>, without erased: Set<ID<User>>, to rows: inout Rows,
        in db: DatabaseConnection
    ) throws {
        let isBlank = { [gate] user in erased.contains(user) || gate.isClosed(user, in: tenant) }
        let key = try secret(of: tenant, in: db)
        var head =
            try db.row(
                """
                SELECT sequence, hash FROM \(AuditFeature.heads, within: tenant, Self.bookkeeping)
                """
            ) { Head(sequence: try $0.integer(0), hash: try $0.text(1)) } ?? Head()
        var values = RowValues()
        for var entry in drafts {
            entry.sequence = head.sequence + 1
            entry.actorDigest = Self.digest(of: entry.actorId, by: key) ?? ""
            entry.targetDigest = Self.digest(of: entry.targetId, by: key)
            if entry.actorId.map(isBlank) == true { entry.actorId = nil }
            if entry.targetId.map(isBlank) == true { entry.targetId = nil }
            entry.previousHash = head.hash
            entry.hash = entry.computedHash(of: tenant)
            head = Head(sequence: entry.sequence, hash: entry.hash)
            values.append(tenant)
            values.append(entry)
        }
        rows.entries += values.values
        rows.heads += [tenant.sqlValue, head.sequence.sqlValue, head.hash.sqlValue]
    }

    static func digest(of user: ID<User>?, by key: AuthenticationKey) -> String? {
        user.map { RFC4648.hexadecimal(key.code(for: $0.text.utf8)) }
    }

    /// Returns the key of a tenant's digests, created once. It is kept in memory only after the commit, because the
    /// transaction that creates it may be rolled back.
    private func secret(of tenant: ID<Tenant>, in db: DatabaseConnection) throws -> AuthenticationKey {
        if let known = secrets.withLock({ $0[tenant] }) { return known }
        let key = AuthenticationKey(try ServiceSecrets.secret(named: Self.secretName(of: tenant), in: db))
        db.afterCommit { [secrets] in
            secrets.withLock { secrets in
                if secrets.count >= AuditLimits.secretsMax { secrets = [:] }
                secrets[tenant] = key
            }
        }
        return key
    }

    static func secretName(of tenant: ID<Tenant>) -> String { "audit:\(tenant.text)" }

    // MARK: Counted calls

    private func add(_ notes: [AuditNotes], to rows: inout Rows) {
        struct Key: Hashable {
            let window: Int64
            let privilege: Privilege
            let actor: ID<User>
            let action: String
        }
        var counts: [Key: Int] = [:]
        for notes in notes {
            guard case .count(let act, let count) = notes.kind else { continue }
            let window = notes.at.seconds / AuditLimits.windowSeconds
            let actor = gate.isClosed(act.actor, in: notes.tenant) ? .erased : act.actor
            counts[Key(window: window, privilege: act.privilege, actor: actor, action: act.action), default: 0] += count
        }
        guard let tenant = notes.first?.tenant else { return }
        for (key, count) in counts {
            rows.counts += [
                tenant.sqlValue, key.window.sqlValue, key.privilege.rawValue.sqlValue, key.actor.sqlValue,
                key.action.sqlValue, count.sqlValue,
            ]
        }
    }

    /// Deletes the numbers of ended windows and returns their entries.
    private func endedWindows(
        of tenant: ID<Tenant>, where condition: SQL, in db: DatabaseConnection
    ) throws -> [AuditEntry] {
        let ended = try db.rows(
            """
            SELECT minute, actor_kind, actor_id, action, count
            FROM \(AuditFeature.counts, within: tenant, Self.bookkeeping) WHERE \(condition)
            ORDER BY minute, actor_kind, actor_id, action LIMIT \(AuditLimits.windowsAtOnceMax)
            """
        ) { row -> (window: Int, entry: AuditEntry) in
            guard let privilege = Privilege(rawValue: try row.text(1)) else { throw row.unknownValue(1) }
            let window = try row.integer(0)
            return (
                window,
                AuditEntry(
                    at: Timestamp(microseconds: Int64(window) * AuditLimits.windowSeconds * 1_000_000),
                    actorKind: privilege, actorId: try row.id(2), action: try row.text(3), outcome: .accepted,
                    count: try row.integer(4))
            )
        }
        for (window, entry) in ended {
            try db.run(
                """
                DELETE FROM \(AuditFeature.counts, within: tenant, Self.bookkeeping)
                WHERE minute = \(window) AND actor_kind = \(entry.actorKind.rawValue)
                    AND actor_id = \(entry.actorId) AND action = \(entry.action)
                """)
        }
        return ended.map(\.entry)
    }

    // MARK: Statements

    private static let bookkeeping = Unscoped.bookkeeping("the service writes the audit log, never a caller")
    private static let intoEntries = Insertion(
        """
        INSERT INTO \(AuditFeature.entries, within: .boundLater, bookkeeping) (tenant, \(AuditFeature.entryColumns))
        """, columns: 19)
    private static let intoHeads = Insertion(
        "INSERT INTO \(AuditFeature.heads, within: .boundLater, bookkeeping) (tenant, sequence, hash)", columns: 3,
        "ON CONFLICT (tenant) DO UPDATE SET sequence = excluded.sequence, hash = excluded.hash")
    private static let intoCounts = Insertion(
        """
        INSERT INTO \(AuditFeature.counts, within: .boundLater, bookkeeping)
            (tenant, minute, actor_kind, actor_id, action, count)
        """, columns: 6,
        """
        ON CONFLICT (tenant, minute, actor_kind, actor_id, action) DO UPDATE SET
            count = audit_counts.count + excluded.count
        """)
}
