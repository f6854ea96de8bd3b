import OutboundHTTP
import Rows
import Values

extension Settings {
    /// Returns the rules of the settings, if they name keys, and those of the file of issuers.
    func readIssuers() throws -> [IssuerRules] {
        let own = try IssuerRules(self)
        let others = try $issuersFile.reportingFaults {
            try issuersFile.map { try IssuersFile.rules(at: $0, base: self) } ?? []
        }
        return (own.secret == nil && own.keys == nil ? [] : [own]) + others
    }

    /// - Parameter known: The roles that mean something.
    fileprivate func requireRoles(_ known: [String]) throws {
        for role in roles.map(\.role) where !known.contains(role) {
            throw $roles.mistake("\(role) is not a role; \(known.hint(for: role))")
        }
    }

    /// The roles that mean something: those of the service, and those that the tables grant something.
    var rolesWithRights: [String] { TokenRole.allCases.map(\.rawValue) + tables.membershipRoles.sorted() }

    /// Returns the setting that names the claims with a meaning.
    static func setting(of meaning: ClaimMeaning) -> KeyPath<Settings, Setting<[ClaimPath]>> {
        switch meaning {
        case .user: \.$claimUser
        case .role: \.$claimRole
        case .tenant: \.$claimTenant
        case .session: \.$claimSession
        case .capabilities: \.$claimCapabilities
        case .student: \.$claimStudent
        case .classes: \.$claimClasses
        case .children: \.$claimChildren
        case .shops: \.$claimShops
        case .tier: \.$claimTier
        }
    }
}

extension IssuerRules {
    /// - Parameter base: The settings whose claims and names of roles apply where these have none.
    init(_ settings: Settings, base: Settings? = nil) throws {
        try settings.requireRoles((base ?? settings).rolesWithRights)
        func inherits(_ key: Settings.Key) -> Settings { key.isSet ? settings : base ?? settings }
        let claims = ClaimMeaning.allCases.map { meaning in
            let setting = Settings.setting(of: meaning)
            return (meaning, inherits(settings[keyPath: setting])[keyPath: setting])
        }
        self.init(
            issuer: settings.jwtIssuer, secret: settings.jwtSecret, keys: try KeySource.of(settings),
            audiences: settings.jwtAudience, required: settings.jwtRequire, service: settings.jwtService,
            tenant: settings.jwtTenant,
            claims: Dictionary(uniqueKeysWithValues: claims.map { ($0, $1.wrappedValue) }),
            named: Set(claims.filter { $1.isSet }.map(\.0)), roles: inherits(settings.$roles).roles)
    }
}

extension KeySource {
    /// Returns nil if the settings name no keys: then only the secret verifies tokens.
    fileprivate static func of(_ settings: Settings) throws -> KeySource? {
        let isPrivate = settings.jwksPrivate
        if let source = settings.jwks {
            guard ["http:", "https:"].contains(where: { source.lowercased().hasPrefix($0) }) else {
                return .file(source)
            }
            return try settings.$jwks.reportingFaults { .address(try address(source, isPrivate: isPrivate)) }
        }
        guard settings.jwtSecret == nil, let issuer = settings.jwtIssuer else { return nil }
        return try settings.$jwtIssuer.reportingFaults {
            guard issuer.contains("://") else {
                throw Settings.Fault(
                    "\(issuer) is no URL, so its keys cannot be found by it: set \(Settings.variable(\.$jwks)) too")
            }
            let document = (issuer.hasSuffix("/") ? issuer : issuer + "/") + ".well-known/openid-configuration"
            return .discovery(
                issuer: issuer, try address(document, isPrivate: isPrivate), isPrivate: isPrivate)
        }
    }

    /// Returns an address from which keys may be fetched: they decide whose tokens are accepted.
    static func address(_ text: String, isPrivate: Bool) throws(Settings.Fault) -> OutboundURL {
        let url: OutboundURL
        do {
            url = try OutboundURL(text)
        } catch {
            throw Settings.Fault("the URL \(error)")
        }
        guard url.isEncrypted || url.host.isLoopbackHost || isPrivate else {
            throw Settings.Fault(
                """
                the URL must begin with https:// (http:// only for loopback addresses, and in a private network with \
                \(Settings.variable(\.$jwksPrivate))=true)
                """)
        }
        return url
    }
}
