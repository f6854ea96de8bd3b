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
    let rules: IssuerRules
    /// The ids of backends, which no user has.
    private let reservedNames: Set<String>

    init(settings: Settings, rules: IssuerRules) {
        (self.settings, self.rules, reservedNames) = (settings, rules, settings.backendNames)
    }

    /// - Throws: `unauthenticated`, with the token's fault.
    func caller(of payload: JSONValue, signedBy signer: Signer, at now: Timestamp) throws(Failure) -> Caller {
        guard case .object(let members) = payload else {
            throw Self.refusal("The token's payload is not a JSON object.")
        }
        let named = try tenant(of: payload)
        let role = try role(of: payload, members, in: named, signer)
        let isService = role == TokenRole.backend.rawValue
        let (subject, isAnonymous) = try subject(of: payload, members, role: role, isService: isService)
        let (issuedAt, expiresAt) = try lifetime(of: members, at: now, isService: isService)
        if signer != .nobody { try checkOrigin(of: members, payload) }
        let tenant = ID<Tenant>(named ?? "default")
        return Caller(
            tenant: tenant, userId: ID(subject), role: role, isService: isService,
            spansTenants: isService && named == nil,
            capabilities: isService ? try capabilities(of: payload, in: named) : nil, isAnonymous: isAnonymous,
            tier: try text(payload, .tier),
            scope: Scope(tenant: tenant, keys: try keys(payload, subject: subject, role: role, isService: isService)),
            tokenId: try identifier(members["jti"], "jti"), sessionId: try session(of: payload),
            issuedAt: issuedAt, expiresAt: expiresAt)
    }

    /// Returns the caller's id, and whether it only has the name of its role.
    private func subject(
        of payload: JSONValue, _ members: [String: JSONValue], role: String, isService: Bool
    ) throws(Failure) -> (String, isAnonymous: Bool) {
        let claimed = try text(payload, .user)
        // A backend's key, such as Supabase's `service_role`, belongs to no user. Other issuers name the client.
        let client = isService ? members.string("client_id") ?? members.string("azp") ?? members.string("cid") : nil
        guard let subject = claimed ?? client ?? (isService ? role : nil) else {
            let names = (rules.claims[.user] ?? []).map(\.text).joined(separator: " or ")
            throw Self.refusal("The token's \(names) is missing.")
        }
        guard Fields.isIdentifier(subject) else {
            throw Self.refusal("The token's client_id is invalid.")
        }
        // A user whose id equals a backend's name must not find the data stored under that name.
        guard isService || !reservedNames.contains(subject) else {
            throw Self.refusal("The token's user id is reserved for backends.")
        }
        guard !ID<User>(subject).isOfErased else {
            throw Self.refusal("The token's user id is reserved for erased users.")
        }
        return (subject, claimed == nil && client == nil)
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
        guard expiresAt > now else { throw Self.expired(at: expiresAt, now) }
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

    static func expired(at end: Timestamp, _ now: Timestamp) -> Failure {
        refusal("The token has expired (\(now.seconds - end.seconds) s ago).", .expired)
    }

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

    // MARK: Origin

    private func checkOrigin(of members: [String: JSONValue], _ payload: JSONValue) throws(Failure) {
        if let issuer = rules.issuer, members["iss"] != .string(issuer) {
            throw Self.notOurs("iss", members["iss"])
        }
        if !rules.audiences.isEmpty {
            let found: [JSONValue] =
                switch members["aud"] {
                case .array(let audiences)?: audiences
                case let only: [only ?? .null]
                }
            guard rules.audiences.contains(where: { found.contains(.string($0)) }) else {
                throw Self.notOurs("aud", members["aud"])
            }
        }
        if let claim = rules.required.unmet(in: payload) {
            throw Self.notOurs(claim.text, (try? claim.value(in: payload)) ?? nil)
        }
    }

    /// Characters of a value that a refusal repeats.
    private static let repeatedMax = 200

    /// The refusal of a token by a claim, with the claim's value, which its bearer knows. The log has what is required.
    static func notOurs(_ claim: String, _ found: JSONValue?) -> Failure {
        guard let found, found != .null else {
            return refusal("The token has no \(claim), which is required here.", .notOurs)
        }
        var writer = JSONWriter()
        writer.value(found)
        let text = String(decoding: writer.bytes, as: UTF8.self).prefix(repeatedMax)
        return refusal("The token's \(claim) is not accepted here: \(text).", .notOurs)
    }

    /// - Throws: if the claim is not a text: otherwise a revocation of the session would not apply to the token.
    private func identifier(_ value: JSONValue?, _ claim: String) throws(Failure) -> String? {
        switch value {
        case nil, .null?, .string("")?: return nil
        case .string(let text)? where text.utf8.count <= 256: return text
        default: throw Self.refusal("The token's \(claim) is invalid.")
        }
    }

    private func session(of payload: JSONValue) throws(Failure) -> String? {
        guard let (value, path) = try value(payload, .session) else { return nil }
        return try identifier(value, path.text)
    }

    // MARK: Tenant and role

    private func tenant(of payload: JSONValue) throws(Failure) -> String? {
        if let tenant = rules.tenant { return tenant }
        guard let (value, path) = try value(payload, .tenant) else { return nil }
        var found = [value]
        switch value {
        case .array(let elements): found = elements
        // Keycloak has an object of organizations, by their names, with an object for each.
        case .object(let members) where members.values.allSatisfy(\.isContainer):
            found = members.keys.map(JSONValue.string)
        default: break
        }
        guard found.count <= 1 else {
            throw Self.refusal("The token's \(path.text) names \(found.count) tenants instead of one.")
        }
        return try found.first.map { value throws(Failure) in try text(of: value, path) }
    }

    private func role(
        of payload: JSONValue, _ members: [String: JSONValue], in tenant: String?, _ signer: Signer
    ) throws(Failure) -> String {
        let backend = TokenRole.backend.rawValue
        if !rules.service.isEmpty, rules.service.unmet(in: payload) == nil { return backend }
        if let (value, path) = try value(payload, .role, in: tenant) {
            let names = try names(in: value, path, of: tenant)
            if let role = role(named: names) { return role }
            // A text that is no known role gives no right, but shows what the issuer says.
            if rules.roles.isEmpty, !path.hasWords, case .string = value, names.count == 1 { return names[0] }
        }
        // Supabase writes a backend's role here. Anyone that knows the secret could sign any other claim as well.
        let isOfSecret = signer == .secret || signer == .nobody && rules.secret != nil
        return isOfSecret && members["role"] == .string(backend) ? backend : Self.roleByDefault
    }

    /// The role of a token without one.
    private static let roleByDefault = "authenticated"

    /// Returns the role that decides: the first one of the settings; without names of roles, the one with most rights.
    private func role(named names: [String]) -> String? {
        guard rules.roles.isEmpty else { return rules.roles.first { names.contains($0.name) }?.role }
        return TokenRole.allCases.map(\.rawValue).first(where: names.contains)
            ?? names.first(where: settings.tables.membershipRoles.contains)
    }

    /// Returns the names in a claim of roles.
    private func names(in value: JSONValue, _ path: ClaimPath, of tenant: String?) throws(Failure) -> [String] {
        switch value {
        case .string(let text):
            let words = text.split(separator: path.hasWords ? " " : ",").map { String($0.trimmed) }
            guard !words.isEmpty else { return [try self.text(of: value, path)] }
            return try words.map { word throws(Failure) in try self.text(of: .string(word), path) }
        case .array(let elements):
            return try elements.map { element throws(Failure) in try self.text(of: element, path) }
        case .object(let members):
            let granted = try members.map { member throws(Failure) in
                try isGranted(member.value, in: tenant, path) ? member.key : nil
            }
            return granted.compactMap(\.self).sorted()
        default: return [try text(of: value, path)]
        }
    }

    /// Returns what a backend may do; nil for everything. Other words of the claim, such as those of a scope, do not
    /// count: a backend whose claim has no capability may do nothing.
    private func capabilities(of payload: JSONValue, in tenant: String?) throws(Failure) -> Set<Capability>? {
        guard let (value, path) = try value(payload, .capabilities, in: tenant) else { return nil }
        return Set(try names(in: value, path, of: tenant).compactMap { Capability(word: $0) })
    }

    /// Whether a member of an object of roles counts. Some issuers name below it the organizations that it is for.
    ///
    /// - Throws: for a text or a number: the object has another meaning than names of roles.
    private func isGranted(
        _ value: JSONValue, in tenant: String?, _ path: ClaimPath
    ) throws(Failure) -> Bool {
        switch value {
        case .null: false
        case .bool(let isGranted): isGranted
        case .object(let organizations): tenant.map { organizations[$0] != nil } ?? false
        case .array(let organizations): tenant.map { organizations.contains(.string($0)) } ?? false
        case .string, .integer, .number:
            throw Self.refusal("The token's \(path.text) is an object of other values than roles: name one of them.")
        }
    }

    // MARK: Keys

    /// Templates of the keys that ``keys(_:subject:role:isService:)`` makes from ids.
    static let templates: [AudienceTemplate] = [
        "user:{id}", "student:{id}", "student:{id}:parent", "class:{id}:staff", "class:{id}:member", "shop:{id}:staff",
    ]

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
    private func value(
        _ payload: JSONValue, _ claim: ClaimMeaning, in tenant: String? = nil
    ) throws(Failure) -> (JSONValue, ClaimPath)? {
        for path in rules.claims[claim] ?? [] {
            do throws(ClaimPath.Obstacle) {
                if let found = try path.value(in: payload, tenant: tenant) { return (found, path) }
            } catch {
                throw Self.refusal("The token's \(error.name) is not an object.")
            }
        }
        return nil
    }

    private func text(_ payload: JSONValue, _ claim: ClaimMeaning) throws(Failure) -> String? {
        guard let (value, path) = try value(payload, claim) else { return nil }
        return try text(of: value, path)
    }

    private func text(of value: JSONValue, _ path: ClaimPath) throws(Failure) -> String {
        let text: String? =
            switch value {
            case .string(let text): text
            case .integer(let number): "\(number)"
            default: nil
            }
        guard let text else {
            throw Self.refusal("The token's \(path.text) must have texts, and has \(value.typeName).")
        }
        guard Fields.isIdentifier(text) else {
            throw Self.refusal(
                "The token's \(path.text) must have 1 to \(Fields.idBytesMax) bytes and no control characters; it has "
                    + "\(text.utf8.count) bytes.")
        }
        return text
    }

    private func list(_ payload: JSONValue, _ claim: ClaimMeaning) throws(Failure) -> [String] {
        guard let (value, path) = try value(payload, claim) else { return [] }
        guard case .array(let values) = value else { throw Self.refusal("The token's \(path.text) is not a list.") }
        return try values.map { value throws(Failure) in try text(of: value, path) }
    }
}

extension Claims {
    /// Returns the claims at the top of a payload that would give its caller a right, if a setting named them.
    func ignored(in payload: JSONValue, of caller: Caller) -> [ClaimWarnings.Claim] {
        guard case .object(let members) = payload else { return [] }
        return ClaimWarnings.names.filter { claim in
            guard let value = members[claim.name], ((try? self.value(payload, claim.meaning)) ?? nil) == nil else {
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

    /// Returns the meanings whose claims an operator has named, and whether the payload has one of them.
    func found(in payload: JSONValue, of caller: Caller) -> [(meaning: ClaimMeaning, isFound: Bool)] {
        // A backend needs no such claim, and only backends have capabilities.
        guard !caller.isService else { return [] }
        return rules.named.subtracting([.capabilities]).map {
            ($0, ((try? value(payload, $0, in: caller.tenant.text)) ?? nil) != nil)
        }
    }

    /// Returns the names of roles in a user's payload, and whether one of them is listed; nil without names, or without a
    /// list.
    func roles(in payload: JSONValue, of caller: Caller) -> (names: [String], areListed: Bool)? {
        guard !rules.roles.isEmpty, !caller.isService,
            let (value, path) = (try? value(payload, .role, in: caller.tenant.text)) ?? nil,
            let names = try? names(in: value, path, of: caller.tenant.text), !names.isEmpty
        else { return nil }
        return (names, role(named: names) != nil)
    }

    /// Whether a token of a user's session counts as a backend's.
    func isUserAsBackend(_ caller: Caller, _ payload: JSONValue) -> Bool {
        caller.isService && caller.sessionId != nil && !rules.service.isEmpty && rules.service.unmet(in: payload) == nil
    }

    /// Returns the organization that a payload names, if its caller's tenant is the default one because no claim names
    /// another.
    func organization(in payload: JSONValue, of caller: Caller) -> (claim: String, id: String)? {
        guard rules.tenant == nil, caller.tenant == ID("default"), !caller.isService else { return nil }
        for path in ClaimWarnings.organizations {
            switch (try? path.value(in: payload)) ?? nil {
            case .string(let id)?: return (path.text, id)
            case .array(let elements)?:
                if case .string(let id)? = elements.first { return (path.text, id) }
            case .object(let members)?:
                if let id = members.keys.min() { return (path.text, id) }
            default: continue
            }
        }
        return nil
    }
}
