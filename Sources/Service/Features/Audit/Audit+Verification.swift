import Cryptography
import Database
import Domain
import Values

/// The result of the verification of one tenant's chain.
public struct AuditVerification: Sendable {
    public let tenant: String
    /// The last entry.
    public let sequence: Int
    public let hash: String
    /// The first entry that is missing, or that was changed; nil if there is none.
    public let fault: String?

    /// The last entry, as a line to keep outside the database: tenant, number and hash.
    public var line: String { "\(tenant)\t\(sequence)\t\(hash)" }

    /// The hashes of entries by tenant and number, from earlier lines.
    static func places(in lines: String) -> [ID<Tenant>: [Int: String]] {
        var places: [ID<Tenant>: [Int: String]] = [:]
        for line in lines.split(whereSeparator: \.isNewline) {
            let parts = line.split(separator: "\t", omittingEmptySubsequences: false)
            guard parts.count == 3, let sequence = Int(parts[1]) else { continue }
            places[ID(String(parts[0])), default: [:]][sequence] = String(parts[2])
        }
        return places
    }
}

extension AuditFeature {
    private static let verifying = Unscoped.audit("recomputes the hashes of all entries")

    /// The check of `bellhop check`.
    static let chains = Audit(name: "audit log") { db in
        try verify(in: db).compactMap { found in found.fault.map { "\(found.tenant): \($0)" } }
    }

    /// Verifies the chains of all tenants, entry by entry.
    ///
    /// - Parameter known: Hashes that entries had earlier, by tenant and number.
    static func verify(
        known: [ID<Tenant>: [Int: String]] = [:], in db: DatabaseConnection
    ) throws -> [AuditVerification] {
        let found: [ID<Tenant>] = try db.rows(
            """
            SELECT tenant FROM \(heads, unscoped: verifying) UNION SELECT tenant FROM \(anchors, unscoped: verifying)
            UNION SELECT tenant FROM \(entries, unscoped: verifying)
            """
        ) { try $0.id(0) }
        return try Set(found).union(known.keys).sorted().map { try verify($0, known: known[$0] ?? [:], in: db) }
    }

    private static func verify(
        _ tenant: ID<Tenant>, known: [Int: String], in db: DatabaseConnection
    ) throws -> AuditVerification {
        var chain = Chain(
            tenant: tenant, known: known, place: try place(in: anchors, of: tenant, db) ?? Place(),
            key: try ServiceSecrets.find(named: AuditLog.secretName(of: tenant), in: db).map { AuthenticationKey($0) })
        try db.forEach(
            """
            SELECT \(entryColumns) FROM \(entries, unscoped: verifying)
            WHERE tenant = \(tenant) ORDER BY sequence
            """
        ) { row in
            chain.add(try AuditEntry(row: row))
            return chain.fault == nil
        }
        let head = try place(in: heads, of: tenant, db) ?? Place()
        if chain.fault == nil, chain.place != head {
            chain.fault =
                head.sequence > chain.place.sequence
                ? "entry \(chain.place.sequence + 1) is missing: the last one is \(head.sequence)"
                : "entry \(chain.place.sequence) is not the last one that was written"
        }
        if chain.fault == nil, let last = known.keys.max(), last > chain.place.sequence {
            chain.fault = "entry \(chain.place.sequence + 1) is missing: an earlier verification found entry \(last)"
        }
        return AuditVerification(
            tenant: tenant.text, sequence: chain.place.sequence, hash: chain.place.hash, fault: chain.fault)
    }

    private static func place(
        in table: Table, of tenant: ID<Tenant>, _ db: DatabaseConnection
    ) throws -> Place? {
        try db.row("SELECT sequence, hash FROM \(table, unscoped: verifying) WHERE tenant = \(tenant)") {
            Place(sequence: try $0.integer(0), hash: try $0.text(1))
        }
    }

    /// An entry in the chain.
    private struct Place: Equatable {
        var sequence = 0
        var hash = AuditEntry.origin
    }

    /// The verified part of a chain.
    private struct Chain {
        let tenant: ID<Tenant>
        let known: [Int: String]
        var place: Place
        let key: AuthenticationKey?
        var fault: String?

        mutating func add(_ entry: AuditEntry) {
            let expected = place.sequence + 1
            guard entry.sequence == expected else {
                fault = "entry \(expected) is missing"
                return
            }
            guard entry.previousHash == place.hash, entry.computedHash(of: tenant) == entry.hash else {
                fault = "entry \(expected) was changed: its hash does not follow from it and the entry before"
                return
            }
            guard known[expected, default: entry.hash] == entry.hash else {
                fault = "entry \(expected) was changed: an earlier verification found another hash"
                return
            }
            guard isNamed(entry.actorId, entry.actorDigest), isNamed(entry.targetId, entry.targetDigest) else {
                fault = "entry \(expected) was changed: it names another person"
                return
            }
            place = Place(sequence: entry.sequence, hash: entry.hash)
        }

        /// Whether an id has the digest; an erased id has none.
        private func isNamed(_ user: ID<User>?, _ digest: String?) -> Bool {
            guard let user else { return true }
            return key.map { AuditLog.digest(of: user, by: $0) == digest } ?? false
        }
    }
}
