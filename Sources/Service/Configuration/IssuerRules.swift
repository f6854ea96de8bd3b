import Values

/// Whose tokens are accepted, how they are verified, and what their claims mean.
///
/// The settings are the rules of one issuer. A file of issuers has those of further ones (``IssuersFile``).
struct IssuerRules: Sendable {
    /// The value of `iss`; nil for tokens of any issuer.
    let issuer: String?
    let secret: String?
    /// Nil if only the secret verifies tokens.
    let keys: KeySource?
    /// `aud` must contain one of them; empty for any.
    let audiences: [String]
    let required: [ClaimCondition]
    /// What makes a token a backend's; empty if only its role does.
    let service: [ClaimCondition]
    /// The tenant of all tokens; nil if a claim names it.
    let tenant: String?
    /// The claims with each meaning. The first one present is used.
    let claims: [ClaimMeaning: [ClaimPath]]
    /// The claims that an operator has named, so their absence is worth a line.
    let named: Set<ClaimMeaning>
    /// The issuer's names of roles, in the order of precedence; empty if it uses the service's own names.
    let roles: [RoleName]

    /// Returns the rules for tokens with this `iss`: the issuer's, else those for any issuer.
    static func of(_ issuer: JSONValue?, among all: [IssuerRules]) -> IssuerRules? {
        of(issuer, among: all, rules: \.self)
    }

    /// Returns the one of several things that has the rules for tokens with this `iss`.
    static func of<One>(_ issuer: JSONValue?, among all: [One], rules: KeyPath<One, IssuerRules>) -> One? {
        all.first { $0[keyPath: rules].issuer.map { .string($0) == issuer } ?? false }
            ?? all.first { $0[keyPath: rules].issuer == nil }
    }

    /// The issuer in a log or a message.
    var name: String { issuer ?? "any issuer" }

    /// What a token must have, for the log.
    var requirements: String {
        ([issuer.map { "iss \($0)" }, audiences.isEmpty ? nil : "aud \(audiences.joined(separator: " or "))"]
            + required.map { "\($0.path.text) \($0.value)" }).compactMap(\.self).joined(separator: ", ")
    }
}
