import Cryptography
import Values

/// An entry of the audit log: what a privileged caller did to whose data.
///
/// Entries of a tenant form a chain. The hash of each covers the hash of the one before. It does not cover the ids of
/// people but keyed digests of them, so that an id can be blanked without breaking the chain.
struct AuditEntry: Record, JSONObjectWritable {
    var sequence = 0
    var at = Timestamp(microseconds: 0)
    var actorKind = Privilege.service
    /// Nil after the erasure of the person.
    var actorId: ID<User>?
    var actorDigest = ""
    /// The name of the endpoint: `PATCH /v1/bookings/{id}`.
    var action = ""
    /// The table of the rows; nil if the operation wrote no row of a user.
    var targetKind: String?
    /// Nil after the erasure of the person, too.
    var targetId: ID<User>?
    var targetDigest: String?
    /// Nil for calls that are counted.
    var requestId: String?
    var outcome = AuditOutcome.accepted
    var count = 1
    /// Set if the entry notes the deletion of expired entries.
    var cut: AuditCut? {
        get {
            guard let cutThrough, let cutHash, let cutAt, let cutDays else { return nil }
            return AuditCut(through: cutThrough, hash: cutHash, at: cutAt, keptDays: cutDays)
        }
        set {
            (cutThrough, cutHash) = (newValue?.through, newValue?.hash)
            (cutAt, cutDays) = (newValue?.at, newValue?.keptDays)
        }
    }
    /// The columns of ``cut``.
    var cutThrough: Int?
    var cutHash: String?
    var cutAt: Timestamp?
    var cutDays: Int?
    var previousHash = ""
    var hash = ""

    /// The previous hash of the first entry.
    static let origin = String(repeating: "0", count: SHA256.byteCount * 2)

    mutating func visit(_ members: inout some MemberVisitor) {
        members.member("sequence", &sequence)
        members.member("at", in: "noted_at", &at)
        members.member("actorKind", &actorKind)
        members.member("actorId", &actorId)
        members.member("actorDigest", &actorDigest)
        members.member("action", &action)
        members.member("targetKind", &targetKind)
        members.member("targetId", &targetId)
        members.member("targetDigest", &targetDigest)
        members.member("requestId", &requestId)
        members.member("outcome", &outcome)
        members.member("count", &count)
        members.hidden("cutThrough", &cutThrough)
        members.hidden("cutHash", &cutHash)
        members.hidden("cutAt", &cutAt)
        members.hidden("cutDays", &cutDays)
        members.derived("cut", cut)
        members.member("previousHash", &previousHash)
        members.member("hash", &hash)
    }

    /// Returns the hash of the entry: SHA-256 over its parts, each behind its length in bytes, so that no part can pass
    /// for another. A part that is missing has the length `-`.
    func computedHash(of tenant: ID<Tenant>) -> String {
        var parts: [String?] = [
            "bellhop-audit-1", previousHash, tenant.text, "\(sequence)", "\(at.microseconds)", actorKind.rawValue,
            actorDigest, action, targetKind, targetDigest, requestId, outcome.rawValue, "\(count)",
        ]
        if let cut { parts += cut.parts }
        var text = ""
        for part in parts { text += part.map { "\($0.utf8.count):\($0)\n" } ?? "-\n" }
        return RFC4648.hexadecimal(SHA256.hash(text.utf8))
    }
}
