import OutboundHTTP
import Rows
import Values

/// Whose tokens are accepted, how they are verified, and what their claims mean.
///
/// The settings are the rules of one issuer. A file of issuers has those of further ones (``IssuersFile``).
struct IssuerRules: Sendable {
    /// The value of `iss`; nil for tokens of any issuer.
    let issuer: String?
    let secret: String?
    let keys: KeySource?
    /// `aud` must contain one of them; empty for any.
    let audiences: [String]
    let required: [ClaimCondition]
    /// What makes a token a backend's; empty if only its role does.
    let service: [ClaimCondition]
    /// The tenant of all tokens; nil if a claim names it.
    let tenant: String?
    /// The claims with each meaning. The first one present is used.
    let claims: [Settings.Claim: [ClaimPath]]
    /// The claims that an operator has named, so their absence is worth a line.
    let named: Set<Settings.Claim>
    /// The issuer's names of roles, in the order of precedence; empty if it uses the service's own names.
    let roles: [RoleName]

    /// A name of the issuer for a role.
    struct RoleName: Sendable {
        let name: String
        let role: String
    }

    /// - Parameter base: The settings whose claims and names of roles apply where these have none.
    init(_ settings: Settings, base: Settings? = nil) throws {
        issuer = settings.jwtIssuer
        secret = settings.jwtSecret
        keys = try KeySource(settings)
        audiences = settings.jwtAudience
        (required, service) = (settings.jwtRequire, settings.jwtService)
        tenant = settings.jwtTenant
        func inherits(_ key: Settings.Key) -> Settings { key.isSet ? settings : base ?? settings }
        claims = Dictionary(
            uniqueKeysWithValues: Settings.Claim.allCases.map { claim in
                let key = settings[keyPath: claim.setting]
                return (claim, inherits(key)[keyPath: claim.setting].wrappedValue)
            })
        named = Set(
            Settings.Claim.allCases.filter { claim in
                [settings, base].contains { $0?[keyPath: claim.setting].isSet == true }
            })
        roles = inherits(settings.$roles).roles
    }

    /// The roles that mean something: those of the service, and those that the tables grant something.
    static func roles(of tables: TableCatalog) -> [String] {
        TokenRole.allCases.map(\.rawValue) + tables.membershipRoles.sorted()
    }

    /// Returns the rules for tokens with this `iss`: the issuer's, else those for any issuer.
    static func of(_ issuer: JSONValue?, among all: [IssuerRules]) -> IssuerRules? {
        all.first { $0.issuer.map { .string($0) == issuer } ?? false } ?? all.first { $0.issuer == nil }
    }

    /// The issuer in a log or a message.
    var name: String { issuer ?? "any issuer" }

    /// What a token must have, for the log.
    var requirements: String {
        ([issuer.map { "iss \($0)" }, audiences.isEmpty ? nil : "aud \(audiences.joined(separator: " or "))"]
            + required.map { "\($0.path.text) \($0.value)" }).compactMap(\.self).joined(separator: ", ")
    }
}

/// The place of an issuer's public keys.
enum KeySource: Sendable {
    case file(String)
    case address(OutboundURL)
    /// The issuer's OpenID configuration names the address (OpenID Connect Discovery 1.0 §4).
    case discovery(issuer: String, OutboundURL, isPrivate: Bool)

    /// Returns nil if the settings name no keys: then only the secret verifies tokens.
    init?(_ settings: Settings) throws {
        let isPrivate = settings.jwksPrivate
        if let source = settings.jwks {
            guard ["http:", "https:"].contains(where: { source.lowercased().hasPrefix($0) }) else {
                self = .file(source)
                return
            }
            self = try settings.$jwks.reportingFaults {
                .address(try Self.address(source, isPrivate: isPrivate))
            }
            return
        }
        guard settings.jwtSecret == nil, let issuer = settings.jwtIssuer else { return nil }
        self = try settings.$jwtIssuer.reportingFaults {
            guard issuer.contains("://") else {
                throw Settings.Fault(
                    "\(issuer) is no URL, so its keys cannot be found by it: set \(Settings.variable(\.$jwks)) as well")
            }
            let document = (issuer.hasSuffix("/") ? issuer : issuer + "/") + ".well-known/openid-configuration"
            return .discovery(
                issuer: issuer, try Self.address(document, isPrivate: isPrivate), isPrivate: isPrivate)
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

    /// The place without a query, which may contain a secret.
    var name: String {
        switch self {
        case .file(let path): path
        case .address(let url), .discovery(_, let url, _): "\(url.origin)\(url.path)"
        }
    }
}
