import Database
import Realtime
import Rows
import Values
import Visibility

/// Who calls, as the verified token says.
final class Caller: Sendable {
    /// Its tenant and its id.
    let owner: Owner
    let role: String
    /// A trusted backend of its tenant.
    let isService: Bool
    /// A backend whose token names no tenant, or a feed that has proved itself: it may send rows of every tenant.
    let isOfAllTenants: Bool
    /// A backend whose token has no `sub`; its role stands in the place of an id.
    let isNameless: Bool
    /// `standard` or `blackCard`, where the token says.
    let tier: String?
    /// The keys the caller has: what it may see and change follows from them alone.
    let scope: Scope
    /// The keys that its token claims, where they are others: what is known of memberships wins over claims.
    let claims: Set<String>?
    /// Keys by memberships that the scope has no room for (`TableLimits.grantedKeysMax`).
    let omittedKeys: Int
    let tokenId: String?
    let sessionId: String?
    let issuedAt: Timestamp
    let expiresAt: Timestamp
    /// A hash of what decides, beside a version, what the caller is shown: a role is among it.
    let digest: UInt64

    /// Without a token: issued before all others, and for ever.
    init(
        tenant: ID<Tenant>, userId: ID<User>, role: String, isService: Bool, isOfAllTenants: Bool = false,
        isNameless: Bool = false, tier: String? = nil, scope: Scope, claims: Set<String>? = nil, omittedKeys: Int = 0,
        tokenId: String? = nil,
        sessionId: String? = nil, issuedAt: Timestamp = Timestamp(microseconds: 0),
        expiresAt: Timestamp = Timestamp(microseconds: .max)
    ) {
        owner = Owner(tenant: tenant, userId: userId)
        (self.role, self.isService) = (role, isService)
        (self.isOfAllTenants, self.isNameless) = (isOfAllTenants, isNameless)
        (self.tier, self.scope, self.claims) = (tier, scope, claims)
        (self.omittedKeys, self.tokenId, self.sessionId) = (omittedKeys, tokenId, sessionId)
        (self.issuedAt, self.expiresAt) = (issuedAt, expiresAt)
        // An id has no NUL.
        digest = [userId.text, role].reduce(FNV1a.hash(tenant.text.utf8)) { hash, part in
            FNV1a.hash(part.utf8, after: FNV1a.hash(CollectionOfOne(0), after: hash))
        }
    }

    /// Whose turn it is among those who wait for a worker; nil for backends, whose requests are for many users.
    var workOwner: Int? { isService ? nil : owner.hashValue }

    var tenant: ID<Tenant> { owner.tenant }
    var userId: ID<User> { owner.userId }

    /// The service itself, at work for one tenant: it sees what a backend of the tenant sees.
    static func system(tenant: ID<Tenant>, named name: String = "bellhop", isOfAllTenants: Bool = false) -> Caller {
        Caller(
            tenant: tenant, userId: ID(name), role: "service", isService: true, isOfAllTenants: isOfAllTenants,
            scope: Scope(tenant: tenant, keys: [AudienceKey.make("tenant", "service"), "everyone"]))
    }

    /// The keys that the token claims.
    var claimed: Set<String> { claims ?? scope.keys }

    var holder: MembershipClaimant { MembershipClaimant(tenant: tenant, role: role, claimed: claimed) }

    /// The same caller with other keys than its token claims; the same scope where they are the ones it has.
    func with(_ keys: Set<String>, omitted: Int) -> Caller {
        guard keys != scope.keys || omitted != omittedKeys else { return self }
        let isSame = keys == scope.keys
        return Caller(
            tenant: tenant, userId: userId, role: role, isService: isService, isOfAllTenants: isOfAllTenants,
            isNameless: isNameless, tier: tier, scope: isSame ? scope : Scope(tenant: tenant, keys: keys),
            claims: isSame ? claims : keys == claimed ? nil : claimed, omittedKeys: omitted, tokenId: tokenId,
            sessionId: sessionId, issuedAt: issuedAt, expiresAt: expiresAt)
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
    /// Computed once: a caller's own counts and limits are looked up at every request.
    private let hash: Int

    init(tenant: ID<Tenant>, userId: ID<User>) {
        (self.tenant, self.userId) = (tenant, userId)
        var hasher = Hasher()
        hasher.combine(tenant)
        hasher.combine(userId)
        hash = hasher.finalize()
    }

    func hash(into hasher: inout Hasher) { hasher.combine(hash) }
}
