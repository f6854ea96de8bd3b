import Cryptography
import Values

/// A token for development, as `bellhop token` and `bellhop demo` make it with a shared secret (HS256).
public struct DevelopmentToken: Sendable {
    public var user: String
    public var role: String?
    public var tenant: String?
    /// The values of claims by their meaning; the settings say where each stands in the token.
    public var meanings: [ClaimMeaning: JSONValue]
    /// Further members of the payload.
    public var claims: [String: JSONValue]
    public var lifetimeSeconds: Int

    public init(
        user: String, role: String? = nil, tenant: String? = nil, meanings: [ClaimMeaning: JSONValue] = [:],
        claims: [String: JSONValue] = [:], lifetimeSeconds: Int = 3600
    ) {
        (self.user, self.role, self.tenant) = (user, role, tenant)
        (self.meanings, self.claims, self.lifetimeSeconds) = (meanings, claims, lifetimeSeconds)
    }
}

/// Makes tokens from which the service reads what was asked for, under any settings: their claims stand where the
/// settings look for them.
public struct TokenMint: Sendable {
    private let settings: Settings
    private let rules: IssuerRules
    private let secret: AuthenticationKey

    /// - Throws: if the settings have no secret: only the issuer can sign tokens then.
    public init(_ settings: Settings) throws(Settings.Mistake) {
        guard let rules = settings.issuers.first(where: { $0.secret != nil }), let secret = rules.secret else {
            throw Settings.key(\.$jwtSecret).mistake(
                """
                is not set, and without it only the issuer can sign tokens. Set it beside the issuer's keys, for the service \
                as well, or use a token of the issuer
                """)
        }
        (self.settings, self.rules, self.secret) = (settings, rules, AuthenticationKey(secret.utf8))
    }

    /// The tenant of all tokens; nil if each has its own.
    public var tenant: String? { rules.tenant }

    /// The roles that give a right.
    public var roles: [String] { settings.rolesWithRights }

    /// - Throws: if the settings allow no such token.
    public func sign(_ wanted: DevelopmentToken, at now: Timestamp, id: String) throws(Settings.Mistake) -> String {
        let payload = JSONValue.object(try payload(of: wanted, at: now, id: id))
        let read: Caller
        do throws(Failure) {
            read = try Claims(settings: settings, rules: rules).caller(of: payload, signedBy: .nobody, at: now)
        } catch {
            throw Settings.Mistake(description: error.detail)
        }
        let (user, role, tenant) = (read.userId.text, read.role, read.tenant.text)
        guard user == wanted.user, role == wanted.role ?? role, tenant == wanted.tenant ?? tenant else {
            throw Settings.Mistake(
                description: """
                    the settings of claims allow no such token: the service would read the user \(user) with the role \
                    \(role) in the tenant \(tenant)
                    """)
        }
        var (head, body) = (JSONWriter(), JSONWriter())
        head.value(JSONValue.object(["alg": .string("HS256"), "typ": .string("JWT")]))
        body.value(payload)
        let signed = RFC4648.encodeURL(head.bytes) + "." + RFC4648.encodeURL(body.bytes)
        return signed + "." + RFC4648.encodeURL(secret.code(for: signed.utf8))
    }

    private func payload(
        of wanted: DevelopmentToken, at now: Timestamp, id: String
    ) throws(Settings.Mistake) -> [String: JSONValue] {
        var payload = wanted.claims
        func put(_ value: JSONValue, at path: ClaimPath?) {
            guard let path else { return }
            let text = path.text.split(separator: ClaimPath.tenantMark, omittingEmptySubsequences: false)
                .joined(separator: wanted.tenant ?? rules.tenant ?? "")
            payload = Self.adding(value, at: text, to: payload)
        }
        func meet(_ conditions: [ClaimCondition]) {
            for condition in conditions
            where conditions.first(where: { $0.path.text == condition.path.text })?.value
                == condition.value
            { put(.string(condition.value), at: condition.path) }
        }
        if let issuer = rules.issuer, payload["iss"] == nil { payload["iss"] = .string(issuer) }
        if let audience = rules.audiences.first, payload["aud"] == nil { payload["aud"] = .string(audience) }
        meet(rules.required)
        put(.string(wanted.user), at: rules.claims[.user]?.first)
        if let tenant = wanted.tenant, rules.tenant == nil { put(.string(tenant), at: rules.claims[.tenant]?.first) }
        for (meaning, value) in wanted.meanings { put(value, at: rules.claims[meaning]?.first) }
        if let role = wanted.role {
            let name = rules.roles.isEmpty ? role : rules.roles.first { $0.role == role }?.name
            if role == TokenRole.backend.rawValue, !rules.service.isEmpty {
                meet(rules.service)
            } else if let name {
                put(.string(name), at: rules.claims[.role]?.first)
            } else if role == TokenRole.backend.rawValue {
                payload["role"] = .string(role)
            } else {
                throw Settings.key(\.$roles).mistake("has no name for the role \(role)")
            }
        }
        payload["iat"] = .integer(now.seconds)
        payload["exp"] = .integer(now.seconds + Int64(wanted.lifetimeSeconds))
        payload["jti"] = payload["jti"] ?? .string(id)
        return payload
    }

    /// Returns an object with a value at the place that a setting or a flag names. A place with a slash or a colon is one
    /// name, such as a URL.
    public static func adding(
        _ value: JSONValue, at place: String, to object: [String: JSONValue]
    ) -> [String: JSONValue] {
        let isName = place.contains { "/:".contains($0) }
        return adding(value, at: isName ? [place] : place.split(separator: ".").map(String.init), to: object)
    }

    /// Words of a scope are added to those that are there.
    private static func adding(
        _ value: JSONValue, at path: [String], to object: [String: JSONValue]
    ) -> [String: JSONValue] {
        guard let name = path.first else { return object }
        var object = object
        if path.count > 1 {
            guard case .object(let members) = object[name] ?? .object([:]) else {
                object[path.joined(separator: ".")] = value
                return object
            }
            object[name] = .object(adding(value, at: Array(path.dropFirst()), to: members))
        } else if case .string(let words)? = object[name], case .string(let word) = value,
            ClaimPath(name)?.hasWords == true
        {
            object[name] = .string("\(words) \(word)")
        } else {
            object[name] = value
        }
        return object
    }
}
