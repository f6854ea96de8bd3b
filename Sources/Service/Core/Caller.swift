import Visibility
import Database
import Domain

/// Who calls, as the verified token says.
struct Caller: Sendable {
    let tenant: String
    let userId: ID<User>
    let role: String
    /// A trusted backend of its tenant.
    let isService: Bool
    /// `standard` or `blackCard`, where the token tells.
    let tier: String?
    /// The keys the caller holds: what it may see and change follows from them alone.
    let scope: Scope
    let tokenId: String?
    let sessionId: String?
    let issuedAt: Timestamp
    let expiresAt: Timestamp

    /// The service itself, at work for one tenant: it sees what a backend of the tenant sees.
    static func system(tenant: String) -> Caller {
        Caller(
            tenant: tenant, userId: ID("bellhop"), role: "service", isService: true, tier: nil,
            scope: Scope(tenant: tenant, keys: [AudienceKey.make("tenant", "service"), "everyone"]), tokenId: nil,
            sessionId: nil, issuedAt: Timestamp(microseconds: 0), expiresAt: Timestamp(microseconds: .max))
    }

    /// Everything but the moments, as JSON's members.
    func write(membersTo writer: inout JSONWriter) {
        writer.member("userId", userId)
        writer.member("tenant", tenant)
        writer.member("role", role)
        writer.member("isService", isService)
        writer.member("tier", tier)
        writer.member("scope", scope.keys.sorted())
        writer.member("tokenId", tokenId)
        writer.member("sessionId", sessionId)
    }

    /// Whether a scope's key makes the caller one of the people of some shop.
    var isStaff: Bool { role == "staff" || role == "barber" || role == "admin" }
}
