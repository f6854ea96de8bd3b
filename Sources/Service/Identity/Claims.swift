import Database
import Values
import Visibility

/// Turns the claims of a verified token into a caller (FORMATS.md, tokens).
///
/// Only what an issuer vouches for counts: `user_metadata`, which users edit themselves, is never read.
struct Claims: Sendable {
    let settings: Settings

    /// - Parameter isFromIssuer: false for claims that no issuer has signed, which nobody is let in by.
    /// - Throws: `unauthenticated`, with what is wrong with the token.
    func caller(of payload: JSONValue, at now: Timestamp, isFromIssuer: Bool = true) throws(Failure) -> Caller {
        guard case .object(let members) = payload else { throw Self.refusal("The token's payload is no object.") }
        guard let subject = members.string("sub"), Fields.isIdentifier(subject) else {
            throw Self.refusal("The token has no usable sub.")
        }
        let (issuedAt, expiresAt) = try lifetime(of: members, at: now)
        if isFromIssuer { try checkOrigin(of: members) }
        let role = try text(payload, .role) ?? "authenticated"
        let named = try text(payload, .tenant)
        let tenant = named ?? "default"
        let isService = role == "service_role" || role == "service"
        return Caller(
            tenant: tenant, userId: ID(subject), role: role, isService: isService,
            isOfAllTenants: isService && named == nil, tier: try text(payload, .tier),
            scope: Scope(tenant: tenant, keys: try keys(payload, subject: subject, role: role, isService: isService)),
            tokenId: identifier(members, "jti"), sessionId: identifier(members, "session_id"), issuedAt: issuedAt,
            expiresAt: expiresAt)
    }

    static func refusal(_ detail: String) -> Failure { Failure(.unauthenticated, "invalid_token", detail) }

    // MARK: When

    private func lifetime(
        of members: [String: JSONValue], at now: Timestamp
    ) throws(Failure) -> (issuedAt: Timestamp, expiresAt: Timestamp) {
        guard let expiresAt = moment(members, "exp") else { throw Self.refusal("The token has no exp.") }
        guard expiresAt > now else { throw Self.refusal("The token has expired.") }
        let latest = now.adding(seconds: Limits.clockSkewSeconds)
        if let notBefore = moment(members, "nbf"), notBefore > latest {
            throw Self.refusal("The token is not valid yet.")
        }
        // A token without iat counts as issued long ago: a revocation of older tokens must reach it.
        let issuedAt = moment(members, "iat") ?? Timestamp(microseconds: 0)
        guard issuedAt <= latest else { throw Self.refusal("The token was issued in the future.") }
        guard expiresAt <= latest.adding(seconds: Limits.tokenLifetimeSeconds) else {
            throw Self.refusal("The token lives longer than \(Limits.tokenLifetimeSeconds / 86_400) days.")
        }
        return (issuedAt, expiresAt)
    }

    private func moment(_ members: [String: JSONValue], _ claim: String) -> Timestamp? {
        switch members[claim] {
        case .integer(let seconds)?: Timestamp(seconds: Double(seconds))
        case .number(let seconds)?: Timestamp(seconds: seconds)
        default: nil
        }
    }

    // MARK: From whom

    private func checkOrigin(of members: [String: JSONValue]) throws(Failure) {
        if let issuer = settings.jwtIssuer, members.string("iss") != issuer {
            throw Self.refusal("The token is from another issuer.")
        }
        guard let audience = settings.jwtAudience else { return }
        switch members["aud"] {
        case .string(audience)?: return
        case .array(let audiences)? where audiences.contains(.string(audience)): return
        default: throw Self.refusal("The token is meant for another audience.")
        }
    }

    private func identifier(_ members: [String: JSONValue], _ claim: String) -> String? {
        members.string(claim).flatMap { !$0.isEmpty && $0.utf8.count <= 256 ? $0 : nil }
    }

    // MARK: What

    private func keys(
        _ payload: JSONValue, subject: String, role: String, isService: Bool
    ) throws(Failure) -> Set<String> {
        var keys: Set<String> = ["everyone", AudienceKey.make("user", subject)]
        if isService { keys.insert(AudienceKey.make("tenant", "service")) }
        if role == "admin" { keys.insert(AudienceKey.make("tenant", "admin")) }
        if let student = try text(payload, .student) {
            keys.insert(AudienceKey.make("student", student))
        }
        let seat = role == "teacher" ? "staff" : "member"
        for id in try list(payload, .classes) { keys.insert(AudienceKey.make("class", id, seat)) }
        for id in try list(payload, .children) { keys.insert(AudienceKey.make("student", id, "parent")) }
        if role == "staff" || role == "barber" {
            for id in try list(payload, .shops) { keys.insert(AudienceKey.make("shop", id, "staff")) }
        }
        guard keys.count <= Limits.scopeKeysMax else {
            throw Self.refusal("The token names more than \(Limits.scopeKeysMax) things its owner may see.")
        }
        return keys
    }

    /// What is found first, and where.
    private func value(_ payload: JSONValue, _ claim: Settings.Claim) -> (JSONValue, String)? {
        for path in settings.claims[claim] ?? [] {
            let found = path.reduce(payload) { value, name in
                if case .object(let members) = value { members[name] ?? .null } else { .null }
            }
            if found != .null { return (found, path.joined(separator: ".")) }
        }
        return nil
    }

    private func text(_ payload: JSONValue, _ claim: Settings.Claim) throws(Failure) -> String? {
        guard let (value, name) = value(payload, claim) else { return nil }
        let text: String? =
            switch value {
            case .string(let text): text
            case .integer(let number): "\(number)"
            default: nil
            }
        guard let text, Fields.isIdentifier(text) else { throw Self.refusal("The token's \(name) is not usable.") }
        return text
    }

    private func list(_ payload: JSONValue, _ claim: Settings.Claim) throws(Failure) -> [String] {
        guard let (value, name) = value(payload, claim) else { return [] }
        guard case .array(let values) = value else { throw Self.refusal("The token's \(name) is no list.") }
        var texts: [String] = []
        for value in values {
            switch value {
            case .string(let text) where Fields.isIdentifier(text): texts.append(text)
            case .integer(let number): texts.append("\(number)")
            default: throw Self.refusal("The token's \(name) holds what is no id.")
            }
        }
        return texts
    }
}
