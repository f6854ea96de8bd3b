import Database
import Rows
import Values
import Visibility

/// Who calls, as the verified token says.
struct Caller: Sendable {
    let tenant: ID<Tenant>
    let userId: ID<User>
    let role: String
    /// A trusted backend of its tenant.
    let isService: Bool
    /// A backend whose token names no tenant, or a feed that has proved itself: it may send rows of every tenant.
    var isOfAllTenants = false
    /// `standard` or `blackCard`, where the token says.
    var tier: String?
    /// The keys the caller has: what it may see and change follows from them alone.
    var scope: Scope
    /// The keys that its token claims, where they are others: what is known of memberships wins over claims.
    var claims: Set<String>?
    /// Keys by memberships that the scope has no room for (`TableLimits.grantedKeysMax`).
    var omittedKeys = 0
    // Without a token: issued before all others, and for ever.
    var tokenId: String?
    var sessionId: String?
    var issuedAt = Timestamp(microseconds: 0)
    var expiresAt = Timestamp(microseconds: .max)

    /// The service itself, at work for one tenant: it sees what a backend of the tenant sees.
    static func system(tenant: ID<Tenant>, named name: String = "bellhop", isOfAllTenants: Bool = false) -> Caller {
        Caller(
            tenant: tenant, userId: ID(name), role: "service", isService: true, isOfAllTenants: isOfAllTenants,
            scope: Scope(tenant: tenant, keys: [AudienceKey.make("tenant", "service"), "everyone"]))
    }

    var owner: Owner { Owner(tenant: tenant, userId: userId) }

    /// The keys that the token claims.
    var claimed: Set<String> { claims ?? scope.keys }

    var holder: MembershipClaimant { MembershipClaimant(tenant: tenant, role: role, claimed: claimed) }

    /// The same caller with other keys than its token claims; the same scope where they are the ones it has.
    func with(_ keys: Set<String>, omitted: Int) -> Caller {
        guard keys != scope.keys || omitted != omittedKeys else { return self }
        var caller = self
        caller.omittedKeys = omitted
        guard keys != scope.keys else { return caller }
        (caller.scope, caller.claims) = (Scope(tenant: tenant, keys: keys), keys == claimed ? nil : claimed)
        return caller
    }

    /// Everything but the moments, as JSON's members.
    func write(membersTo writer: inout JSONWriter) {
        writer.member("userId", userId)
        writer.member("tenant", tenant)
        writer.member("role", role)
        writer.member("isService", isService)
        writer.member("tier", tier)
        writer.member("scope", scope.keys.sorted())
        writer.member("omittedKeys", omittedKeys)
        if let claims { writer.member("claims", claims.sorted()) }
        writer.member("tokenId", tokenId)
        writer.member("sessionId", sessionId)
    }

    /// Whether a scope's key makes the caller one of the people of some shop.
    var isStaff: Bool { role == "staff" || role == "barber" || role == "admin" }
}

/// A user of a tenant, whose requests, streams or counts something is about.
struct Owner: Sendable, Hashable {
    let tenant: ID<Tenant>
    let userId: ID<User>
}
