import Database
import Domain
import Rows
import Values
import Visibility

/// Who calls, as the verified token says.
struct Caller: Sendable {
    let tenant: String
    let userId: ID<User>
    let role: String
    /// A trusted backend of its tenant.
    let isService: Bool
    /// A backend whose token names no tenant, or a feed that has proved itself: it may send rows of every tenant.
    var isOfAllTenants = false
    /// `standard` or `blackCard`, where the token says.
    let tier: String?
    /// The keys the caller has: what it may see and change follows from them alone.
    let scope: Scope
    /// The keys that its token claims, where they are others: what is known of memberships wins over claims.
    var claims: Set<String>?
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

    /// The keys that the token claims.
    var claimed: Set<String> { claims ?? scope.keys }

    var holder: MembershipClaimant { MembershipClaimant(tenant: tenant, role: role, claimed: claimed) }

    /// The same caller with other keys than its token claims; the same scope where they are the ones it has.
    func with(_ keys: Set<String>) -> Caller {
        guard keys != scope.keys else { return self }
        return Caller(
            tenant: tenant, userId: userId, role: role, isService: isService, isOfAllTenants: isOfAllTenants,
            tier: tier, scope: Scope(tenant: tenant, keys: keys), claims: keys == claimed ? nil : claimed,
            tokenId: tokenId, sessionId: sessionId, issuedAt: issuedAt, expiresAt: expiresAt)
    }

    /// Everything but the moments, as JSON's members.
    func write(membersTo writer: inout JSONWriter) {
        writer.member("userId", userId)
        writer.member("tenant", tenant)
        writer.member("role", role)
        writer.member("isService", isService)
        writer.member("tier", tier)
        writer.member("scope", scope.keys.sorted())
        if let claims { writer.member("claims", claims.sorted()) }
        writer.member("tokenId", tokenId)
        writer.member("sessionId", sessionId)
    }

    /// Whether a scope's key makes the caller one of the people of some shop.
    var isStaff: Bool { role == "staff" || role == "barber" || role == "admin" }
}
