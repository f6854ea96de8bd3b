import Database
import Rows
import Values
import Visibility

/// Converts the claims of a verified token into a caller.
///
/// Only claims that the settings name count, by default those in `app_metadata`, which the issuer decides. Others may be
/// chosen by the user, such as `user_metadata`, or may mean a role in something else, such as an organization's.
struct Claims: Sendable {
    /// The key that has verified the claims.
    enum Signer: Sendable {
        /// The secret of the settings, which only the app's own backends know.
        case secret
        /// A key of the issuer.
        case issuer
        /// No key has verified the claims. They grant no access, and only their meaning is asked for.
        case nobody
    }

    let settings: Settings
    /// The ids of backends, which no user has.
    private let reservedNames: Set<String>

    init(settings: Settings) { (self.settings, reservedNames) = (settings, settings.backendNames) }

    /// - Throws: `unauthenticated`, with the token's fault.
    func caller(of payload: JSONValue, signedBy signer: Signer, at now: Timestamp) throws(Failure) -> Caller {
        guard case .object(let members) = payload else {
            throw Self.refusal("The token's payload is not a JSON object.")
        }
        let role = try role(of: payload, members, signer)
        let isService = role == TokenRole.backend.rawValue
        // A backend's key, such as Supabase's `service_role`, belongs to no user.
        let anonymous = isService && members["sub"] == nil ? role : nil
        guard let subject = anonymous ?? members.string("sub") else {
            throw Self.refusal("The token's sub is missing or is not a text.")
        }
        guard Fields.isIdentifier(subject) else {
            throw Self.refusal(
                "The token's sub must have 1 to \(Fields.idBytesMax) bytes and no control characters; it has "
                    + "\(subject.utf8.count) bytes.")
        }
        // A user whose id equals a backend's name must not find the data stored under that name.
        guard isService || !reservedNames.contains(subject) else {
            throw Self.refusal("The token's sub is reserved for backends.")
        }
        guard !ID<User>(subject).isOfErased else {
            throw Self.refusal("The token's sub is reserved for erased users.")
        }
        let (issuedAt, expiresAt) = try lifetime(of: members, at: now, isService: isService)
        if signer != .nobody { try checkOrigin(of: members) }
        let named = try text(payload, .tenant)
        let tenant = ID<Tenant>(named ?? "default")
        return Caller(
            tenant: tenant, userId: ID(subject), role: role, isService: isService,
            spansTenants: isService && named == nil, isAnonymous: anonymous != nil, tier: try text(payload, .tier),
            scope: Scope(tenant: tenant, keys: try keys(payload, subject: subject, role: role, isService: isService)),
            tokenId: try identifier(members, "jti"), sessionId: try identifier(members, "session_id"),
            issuedAt: issuedAt, expiresAt: expiresAt)
    }

    /// The fault of a token, as a code that clients may branch on.
    enum Refusal: String, CaseIterable {
        /// Expired: a new token will be accepted.
        case expired = "invalid_token.expired"
        /// The clocks differ, or the token is for later use.
        case notYetValid = "invalid_token.not_yet_valid"
        /// Signed by another issuer, or meant for another audience.
        case notOurs = "invalid_token.not_ours"
        case revoked = "invalid_token.revoked"
        /// Unreadable, or with invalid claims.
        case unusable = "invalid_token"
    }

    static func refusal(_ detail: String, _ refusal: Refusal = .unusable) -> Failure {
        Failure(.unauthenticated, refusal.rawValue, detail)
    }

    // MARK: Validity period

    private func lifetime(
        of members: [String: JSONValue], at now: Timestamp, isService: Bool
    ) throws(Failure) -> (issuedAt: Timestamp, expiresAt: Timestamp) {
        guard let expiresAt = try moment(members, "exp") else { throw Self.refusal("The token's exp is missing.") }
        guard expiresAt > now else { throw Self.expired }
        let latest = now.adding(seconds: Limits.clockSkewSeconds)
        if let notBefore = try moment(members, "nbf"), notBefore > latest {
            throw Self.refusal("The token is not valid yet.", .notYetValid)
        }
        // A token without iat counts as issued long ago, so that a revocation of older tokens applies to it.
        let issuedAt = try moment(members, "iat") ?? Timestamp(microseconds: 0)
        guard issuedAt <= latest else { throw Self.refusal("The token was issued in the future.", .notYetValid) }
        let days = isService ? settings.serviceTokenDays : Limits.tokenDays
        guard expiresAt <= latest.adding(seconds: Int64(days) * 86_400) else {
            let hint =
                isService ? "; \(Settings.variable(\.$serviceTokenDays)) allows backends a longer lifetime" : ""
            throw Self.refusal("The token's lifetime exceeds \(days) days\(hint).")
        }
        return (issuedAt, expiresAt)
    }

    static var expired: Failure { refusal("The token has expired.", .expired) }

    /// - Throws: if the claim is not a date: the token must not be treated as unlimited.
    private func moment(_ members: [String: JSONValue], _ claim: String) throws(Failure) -> Timestamp? {
        guard let value = members[claim] else { return nil }
        let moment: Timestamp? =
            switch value {
            case .integer(let seconds): Timestamp(seconds: Double(seconds))
            case .number(let seconds): Timestamp(seconds: seconds)
            default: nil
            }
        guard let moment else { throw Self.refusal("The token's \(claim) is not a valid time.") }
        return moment
    }

    // MARK: Issuer and audience

    private func checkOrigin(of members: [String: JSONValue]) throws(Failure) {
        if let issuer = settings.jwtIssuer, members["iss"] != .string(issuer) {
            throw Self.refusal("The token has the wrong issuer (iss).", .notOurs)
        }
        guard let audience = settings.jwtAudience else { return }
        switch members["aud"] {
        case let only? where only == .string(audience): return
        case .array(let audiences)? where audiences.contains(.string(audience)): return
        default: throw Self.refusal("The token has the wrong audience (aud).", .notOurs)
        }
    }

    /// - Throws: if the claim is not a text: otherwise a revocation of the session would not apply to the token.
    private func identifier(_ members: [String: JSONValue], _ claim: String) throws(Failure) -> String? {
        switch members[claim] {
        case nil, .null?, .string("")?: return nil
        case .string(let text)? where text.utf8.count <= 256: return text
        default: throw Self.refusal("The token's \(claim) is invalid.")
        }
    }

    // MARK: Access

    private func role(
        of payload: JSONValue, _ members: [String: JSONValue], _ signer: Signer
    ) throws(Failure) -> String {
        if let role = try text(payload, .role) { return role }
        // Supabase writes a backend's role here. Anyone that knows the secret could sign any other claim as well.
        let isOfSecret = signer == .secret || signer == .nobody && settings.jwtSecret != nil
        let backend = TokenRole.backend.rawValue
        return isOfSecret && members["role"] == .string(backend) ? backend : Self.roleByDefault
    }

    /// The role of a token without one.
    private static let roleByDefault = "authenticated"

    private func keys(
        _ payload: JSONValue, subject: String, role: String, isService: Bool
    ) throws(Failure) -> Set<String> {
        var keys: Set<String> = ["everyone", AudienceKey.make("user", subject)]
        if isService { keys.insert(AudienceKey.make("tenant", "service")) }
        let role = TokenRole(rawValue: role)
        if role == .admin { keys.insert(AudienceKey.make("tenant", "admin")) }
        if let student = try text(payload, .student) {
            keys.insert(AudienceKey.make("student", student))
        }
        let seat = role == .teacher ? "staff" : "member"
        for id in try list(payload, .classes) { keys.insert(AudienceKey.make("class", id, seat)) }
        for id in try list(payload, .children) { keys.insert(AudienceKey.make("student", id, "parent")) }
        if role == .staff || role == .barber {
            for id in try list(payload, .shops) { keys.insert(AudienceKey.make("shop", id, "staff")) }
        }
        guard keys.count <= Limits.scopeKeysMax else {
            throw Self.refusal("The token's claims give more than \(Limits.scopeKeysMax) keys.")
        }
        return keys
    }

    /// Returns the first value found, and its path; null counts as absent.
    ///
    /// - Throws: if a path leads through a value that is not an object, which differs from an absent claim.
    private func value(_ payload: JSONValue, _ claim: Settings.Claim) throws(Failure) -> (JSONValue, String)? {
        for path in settings.claims[claim] ?? [] {
            do throws(ClaimPath.Obstacle) {
                if let found = try path.value(in: payload) { return (found, path.text) }
            } catch {
                throw Self.refusal("The token's \(error.name) is not an object.")
            }
        }
        return nil
    }

    private func text(_ payload: JSONValue, _ claim: Settings.Claim) throws(Failure) -> String? {
        guard let (value, name) = try value(payload, claim) else { return nil }
        let text: String? =
            switch value {
            case .string(let text): text
            case .integer(let number): "\(number)"
            default: nil
            }
        guard let text, Fields.isIdentifier(text) else { throw Self.refusal("The token's \(name) is invalid.") }
        return text
    }

    private func list(_ payload: JSONValue, _ claim: Settings.Claim) throws(Failure) -> [String] {
        guard let (value, name) = try value(payload, claim) else { return [] }
        guard case .array(let values) = value else { throw Self.refusal("The token's \(name) is not a list.") }
        var texts: [String] = []
        for value in values {
            switch value {
            case .string(let text) where Fields.isIdentifier(text): texts.append(text)
            case .integer(let number): texts.append("\(number)")
            default: throw Self.refusal("The token's \(name) contains an invalid id.")
            }
        }
        return texts
    }
}

extension Claims {
    /// Returns the claims at the top of a payload that would give its caller a right, if a setting named them.
    func ignored(in payload: JSONValue, of caller: Caller) -> [IgnoredClaims.Claim] {
        guard case .object(let members) = payload else { return [] }
        return IgnoredClaims.names.filter { claim in
            guard let value = members[claim.name], (try? self.value(payload, claim.meaning)) == nil else {
                return false
            }
            return switch (claim.meaning, value) {
            case (.role, .string(let role)):
                role != caller.role
                    && (TokenRole(rawValue: role) != nil || settings.tables.membershipRoles.contains(role))
            case (.tenant, .string(let text)): text != caller.tenant.text && Fields.isIdentifier(text)
            case (.student, .string(let text)), (.tier, .string(let text)): Fields.isIdentifier(text)
            case (.tenant, .integer), (.student, .integer): true
            case (.classes, .array(let ids)), (.children, .array(let ids)), (.shops, .array(let ids)): !ids.isEmpty
            default: false
            }
        }
    }
}
