import Cryptography
import Database
import Values

extension AuditFeature {
    private static let verifying = Unscoped.audit("recomputes the hashes of all entries")

    /// The check of `bellhop check`.
    static let chains = Audit(name: "audit log") { db in
        try verify(in: db).compactMap { found in found.fault.map { "\(found.tenant): \($0)" } }
    }

    /// Verifies the chains of all tenants, entry by entry.
    ///
    /// - Parameters:
    ///   - known: Entries that an earlier verification found, by tenant and number.
    ///   - keptDays: The days for which entries are kept; nil believes what the deletions say.
    static func verify(
        known: [ID<Tenant>: [Int: KnownEntry]] = [:], keptDays: Int? = nil, at now: Timestamp = Clock.system.now(),
        in db: DatabaseConnection
    ) throws -> [AuditVerification] {
        let found: [ID<Tenant>] = try db.rows(
            """
            SELECT tenant FROM \(heads, unscoped: verifying) UNION SELECT tenant FROM \(entries, unscoped: verifying)
            """
        ) { try $0.id(0) }
        return try Set(found).union(known.keys).sorted().map { tenant in
            let key = try ServiceSecrets.find(named: AuditLog.secretName(of: tenant), in: db)
                .map { AuthenticationKey($0) }
            var chain = AuditChain(
                tenant: tenant, known: known[tenant] ?? [:],
                isDigest: { digest, user in key.map { AuditLog.digest(of: user, by: $0) == digest } ?? false },
                keptDays: keptDays, now: now)
            try verify(&chain, in: db)
            return AuditVerification(
                tenant: tenant.text, sequence: chain.last.sequence, hash: chain.last.hash, at: chain.at,
                fault: chain.fault)
        }
    }

    private static func verify(_ chain: inout AuditChain, in db: DatabaseConnection) throws {
        var checked = chain
        try db.forEach(
            """
            SELECT \(entryColumns) FROM \(entries, within: chain.tenant, verifying) ORDER BY sequence
            """
        ) { row in
            checked.add(try AuditEntry(row: row))
            return checked.fault == nil
        }
        let head = try db.row(
            "SELECT sequence, hash FROM \(heads, within: chain.tenant, verifying)"
        ) { AuditChain.Link(sequence: try $0.integer(0), hash: try $0.text(1)) }
        checked.end(at: head ?? AuditChain.Link())
        chain = checked
    }
}
