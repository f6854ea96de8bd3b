import Cryptography
import Database
import MicroHTTP
import Realtime
import Rows
import Synchronization
import Values
import Visibility

/// The caller of a request, from its verified token.
final class Caller: Sendable {
    /// Its tenant and its id.
    let owner: Owner
    let role: String
    /// Whether it is a trusted backend of its tenant.
    let isService: Bool
    /// Whether it may send rows of every tenant: a backend whose token names no tenant, or an authenticated feed.
    let spansTenants: Bool
    /// What a backend may do; nil for everything.
    let capabilities: Set<Capability>?
    /// Whether it is a backend whose token has no `sub`; its role then serves as its id.
    let isAnonymous: Bool
    /// Its right to act on data of other users; nil for an ordinary user.
    let privilege: Privilege?
    /// `standard` or `blackCard`, if the token has a tier.
    let tier: String?
    /// The caller's keys. Only they decide about reading and writing rows.
    let scope: Scope
    /// The keys that its token claims, if they differ from the scope: known memberships override claims.
    let claims: Set<String>?
    /// Number of membership keys that the scope has no room for (`TableLimits.grantedKeysMax`).
    let omittedKeys: Int
    let tokenId: String?
    let sessionId: String?
    let issuedAt: Timestamp
    let expiresAt: Timestamp
    /// A hash of everything that, beside a version, decides what the caller sees, including its role.
    let digest: UInt64
    /// The memberships that last gave exactly these keys (``KnownMemberships/generation``). A user with 10,000
    /// memberships opens streams with the same keys again and again, and finding them takes milliseconds.
    private let keyGeneration = Atomic<Int>(-1)

    /// By default the values of a caller without a token: issued before all others, and without expiry.
    init(
        tenant: ID<Tenant>, userId: ID<User>, role: String, isService: Bool, spansTenants: Bool = false,
        capabilities: Set<Capability>? = nil, isAnonymous: Bool = false, tier: String? = nil, scope: Scope,
        claims: Set<String>? = nil, omittedKeys: Int = 0, tokenId: String? = nil, sessionId: String? = nil,
        issuedAt: Timestamp = Timestamp(microseconds: 0),
        expiresAt: Timestamp = Timestamp(microseconds: .max)
    ) {
        owner = Owner(tenant: tenant, userId: userId)
        (self.role, self.isService) = (role, isService)
        (self.spansTenants, self.capabilities, self.isAnonymous) = (spansTenants, capabilities, isAnonymous)
        (self.tier, self.scope, self.claims) = (tier, scope, claims)
        (self.omittedKeys, self.tokenId, self.sessionId) = (omittedKeys, tokenId, sessionId)
        (self.issuedAt, self.expiresAt) = (issuedAt, expiresAt)
        privilege = Privilege(isService: isService, keys: scope.keys)
        // The separator is unambiguous, because ids contain no NUL.
        digest = [userId.text, role].reduce(FNV1a.hash(tenant.text.utf8)) { hash, part in
            FNV1a.hash(part.utf8, after: FNV1a.hash(CollectionOfOne(0), after: hash))
        }
    }

    /// The owner of this caller's jobs for the workers. Tenants take turns, and so do a tenant's users and the jobs of
    /// its backends, which act for many users.
    var workOwner: WorkerPool.Owner { .init(group: tenant.hashValue, member: isService ? nil : owner.hashValue) }

    var tenant: ID<Tenant> { owner.tenant }
    var userId: ID<User> { owner.userId }

    /// The service itself, working for one tenant: it has the access of a backend of the tenant.
    static func system(tenant: ID<Tenant>, named name: String = "bellhop", spansTenants: Bool = false) -> Caller {
        Caller(
            tenant: tenant, userId: ID(name), role: TokenRole.backend.rawValue, isService: true,
            spansTenants: spansTenants,
            scope: Scope(tenant: tenant, keys: [AudienceKey.make("tenant", "service"), "everyone"]))
    }

    /// The keys that the token claims.
    var claimed: Set<String> { claims ?? scope.keys }

    var holder: MembershipClaimant { MembershipClaimant(tenant: tenant, role: role, claimed: claimed) }

    /// Whether the memberships of a generation are known to give exactly these keys.
    func hasKeys(of generation: Int) -> Bool { keyGeneration.load(ordering: .relaxed) == generation }

    /// Returns the caller with other keys than its token claims, or the same scope if the keys are equal.
    ///
    /// - Parameter generation: The memberships that gave the keys.
    func with(_ keys: Set<String>, omitted: Int, of generation: Int) -> Caller {
        let isSame = keys == scope.keys
        let caller = isSame && omitted == omittedKeys ? self : changed(to: isSame ? nil : keys, omitted: omitted)
        caller.keyGeneration.store(generation, ordering: .relaxed)
        return caller
    }

    private func changed(to keys: Set<String>?, omitted: Int) -> Caller {
        Caller(
            tenant: tenant, userId: userId, role: role, isService: isService, spansTenants: spansTenants,
            capabilities: capabilities, isAnonymous: isAnonymous, tier: tier,
            scope: keys.map { Scope(tenant: tenant, keys: $0) } ?? scope,
            claims: keys.map { $0 == claimed ? nil : claimed } ?? claims, omittedKeys: omitted, tokenId: tokenId,
            sessionId: sessionId, issuedAt: issuedAt, expiresAt: expiresAt)
    }

    /// A digest of the tenant, the id and the claims that decide what the caller may do. Clients use it in the names of
    /// stored states.
    ///
    /// It has the same value on all replicas and after every restart. It does not change with what the service ignores,
    /// such as a session's id or a name, nor with memberships, which rows of the service decide.
    var identity: String {
        var writer = JSONWriter()
        writer.array { writer in
            for part in ["bellhop identity 1", tenant.text, userId.text, role, tier] { writer.value(part) }
            writer.array(claimed.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) })
        }
        return RFC4648.encodeURL(SHA256.hash(writer.bytes).prefix(Self.identityBytes))
    }

    /// With fewer bytes, someone could find claims whose digest equals another person's.
    private static let identityBytes = 16

    /// Writes everything but the timestamps, as JSON members.
    func write(membersTo writer: inout JSONWriter) {
        writer.member("userId", userId)
        writer.member("tenant", tenant)
        writer.member("role", role)
        writer.member("isService", isService)
        writer.member("tier", tier)
        writer.member("scope", scope.keys.sorted())
        writer.member("omittedKeys", omittedKeys)
        if let claims { writer.member("claims", claims.sorted()) }
        if let capabilities { writer.member("capabilities", capabilities.map(\.rawValue).sorted()) }
        writer.member("tokenId", tokenId)
        writer.member("sessionId", sessionId)
    }

    /// Whether its role is staff or above. Its keys name the shops.
    var isStaff: Bool { [.staff, .barber, .admin].contains(TokenRole(rawValue: role)) }
}

/// A user of a tenant: the owner of requests, streams or counts.
struct Owner: Sendable, Hashable {
    let tenant: ID<Tenant>
    let userId: ID<User>
    /// Computed once: a caller's counts and limits are looked up at every request.
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

extension SQL.StringInterpolation {
    /// Appends a table for what the service does for one user.
    mutating func appendInterpolation(_ table: Table, of owner: Owner) {
        appendInterpolation(table, of: owner.userId, in: owner.tenant)
    }
}

/// A right to act on data of other users.
enum Privilege: String, Sendable, CaseIterable, MemberValue {
    /// A backend of the tenant.
    case service
    case administrator
    /// Staff of a shop.
    case staff
    /// A person at the command line.
    case `operator`
    /// The service itself.
    case bellhop

    /// Returns the privilege that the keys of a scope give; nil without one.
    fileprivate init?(isService: Bool, keys: Set<String>) {
        if isService {
            self = .service
        } else if keys.contains("tenant:admin") {
            self = .administrator
        } else if keys.contains(where: { $0.hasPrefix("shop:") && $0.hasSuffix(":staff") }) {
            self = .staff
        } else {
            return nil
        }
    }

    /// Whether a key opens rows by a privilege, and not because they are the caller's own or everyone's.
    static func opens(by key: String) -> Bool { key.hasPrefix("tenant:") || key.hasPrefix("shop:") }
}
