import Database
import Domain
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
        guard case .object = payload else { throw Self.refusal("The token's payload is no object.") }
        guard case .string(let subject)? = payload[path: ["sub"]], Fields.isIdentifier(subject) else {
            throw Self.refusal("The token has no usable sub.")
        }
        let (issuedAt, expiresAt) = try lifetime(of: payload, at: now)
        if isFromIssuer { try checkOrigin(of: payload) }
        let role = try text(payload, settings.claims.role) ?? "authenticated"
        let named = try text(payload, settings.claims.tenant)
        let tenant = named ?? "default"
        let isService = role == "service_role" || role == "service"
        return Caller(
            tenant: tenant, userId: ID(subject), role: role, isService: isService,
            isOfAllTenants: isService && named == nil, tier: try text(payload, settings.claims.tier),
            scope: Scope(tenant: tenant, keys: try keys(payload, subject: subject, role: role, isService: isService)),
            tokenId: identifier(payload, "jti"), sessionId: identifier(payload, "session_id"), issuedAt: issuedAt,
            expiresAt: expiresAt)
    }

    static func refusal(_ detail: String) -> Failure { Failure(.unauthenticated, "invalid_token", detail) }

    // MARK: When

    private func lifetime(
        of payload: JSONValue, at now: Timestamp
    ) throws(Failure) -> (issuedAt: Timestamp, expiresAt: Timestamp) {
        guard let expiresAt = moment(payload, "exp") else { throw Self.refusal("The token has no exp.") }
        guard expiresAt > now else { throw Self.refusal("The token has expired.") }
        let latest = now.adding(seconds: Limits.clockSkewSeconds)
        if let notBefore = moment(payload, "nbf"), notBefore > latest {
            throw Self.refusal("The token is not valid yet.")
        }
        // A token without iat counts as issued long ago: a revocation of older tokens must reach it.
        let issuedAt = moment(payload, "iat") ?? Timestamp(microseconds: 0)
        guard issuedAt <= latest else { throw Self.refusal("The token was issued in the future.") }
        guard expiresAt <= latest.adding(seconds: Limits.tokenLifetimeSeconds) else {
            throw Self.refusal("The token lives longer than \(Limits.tokenLifetimeSeconds / 86_400) days.")
        }
        return (issuedAt, expiresAt)
    }

    private func moment(_ payload: JSONValue, _ claim: String) -> Timestamp? {
        switch payload[path: [claim]] {
        case .integer(let seconds)?: Timestamp(seconds: Double(seconds))
        case .number(let seconds)?: Timestamp(seconds: seconds)
        default: nil
        }
    }

    // MARK: From whom

    private func checkOrigin(of payload: JSONValue) throws(Failure) {
        if let issuer = settings.jwtIssuer, payload[path: ["iss"]] != .string(issuer) {
            throw Self.refusal("The token is from another issuer.")
        }
        guard let audience = settings.jwtAudience else { return }
        switch payload[path: ["aud"]] {
        case .string(audience)?: return
        case .array(let audiences)? where audiences.contains(.string(audience)): return
        default: throw Self.refusal("The token is meant for another audience.")
        }
    }

    private func identifier(_ payload: JSONValue, _ claim: String) -> String? {
        guard case .string(let text)? = payload[path: [claim]], !text.isEmpty, text.utf8.count <= 256 else {
            return nil
        }
        return text
    }

    // MARK: What

    private func keys(
        _ payload: JSONValue, subject: String, role: String, isService: Bool
    ) throws(Failure) -> Set<String> {
        var keys: Set<String> = ["everyone", AudienceKey.make("user", subject)]
        if isService { keys.insert(AudienceKey.make("tenant", "service")) }
        if role == "admin" { keys.insert(AudienceKey.make("tenant", "admin")) }
        if let student = try text(payload, settings.claims.student) {
            keys.insert(AudienceKey.make("student", student))
        }
        let seat = role == "teacher" ? "staff" : "member"
        for id in try list(payload, settings.claims.classes) { keys.insert(AudienceKey.make("class", id, seat)) }
        for id in try list(payload, settings.claims.children) { keys.insert(AudienceKey.make("student", id, "parent")) }
        if role == "staff" || role == "barber" {
            for id in try list(payload, settings.claims.shops) { keys.insert(AudienceKey.make("shop", id, "staff")) }
        }
        guard keys.count <= Limits.scopeKeysMax else {
            throw Self.refusal("The token names more than \(Limits.scopeKeysMax) things its owner may see.")
        }
        return keys
    }

    private func value(_ payload: JSONValue, _ paths: [[String]]) -> (JSONValue, String)? {
        for path in paths {
            if let value = payload[path: path], value != .null { return (value, path.joined(separator: ".")) }
        }
        return nil
    }

    private func text(_ payload: JSONValue, _ paths: [[String]]) throws(Failure) -> String? {
        guard let (value, name) = value(payload, paths) else { return nil }
        let text: String? =
            switch value {
            case .string(let text): text
            case .integer(let number): "\(number)"
            default: nil
            }
        guard let text, Fields.isIdentifier(text) else { throw Self.refusal("The token's \(name) is not usable.") }
        return text
    }

    private func list(_ payload: JSONValue, _ paths: [[String]]) throws(Failure) -> [String] {
        guard let (value, name) = value(payload, paths) else { return [] }
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

extension JSONValue {
    /// The value at the end of a path of member names.
    fileprivate subscript(path path: [String]) -> JSONValue? {
        var value = self
        for name in path {
            guard case .object(let members) = value, let next = members[name] else { return nil }
            value = next
        }
        return value
    }
}
