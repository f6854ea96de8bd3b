import Logging
import Threads
import Values

/// What the claims of verified tokens say about wrong settings. Each is counted, and logged once by name.
///
/// A claim may give a right although no setting names it: an operator whose issuer writes `role` at the top of its tokens
/// would only see users without rights. A setting may name a claim that tokens do not have. Or tokens name several
/// organizations, whose users are in one tenant, because no setting names the claim.
final class ClaimWarnings: Sendable {
    /// A claim that does not count.
    struct Claim: Hashable {
        let name: String
        /// The claim of the settings that it would be.
        let meaning: ClaimMeaning
    }

    /// The names that issuers and apps use at the top of a payload. Only these are examined, so the names are bounded.
    static let names = [
        Claim(name: "role", meaning: .role), Claim(name: "user_role", meaning: .role),
        Claim(name: "tenant", meaning: .tenant), Claim(name: "school_id", meaning: .tenant),
        Claim(name: "student_id", meaning: .student), Claim(name: "class_ids", meaning: .classes),
        Claim(name: "child_ids", meaning: .children), Claim(name: "shop_ids", meaning: .shops),
        Claim(name: "tier", meaning: .tier),
    ]

    /// The claims in which issuers name a user's organization (`Docs/providers/`).
    static let organizations = [
        "org_id", "organization_id", "org_code", "o.id", "tid", "hd", "dct", "organization", "firebase.tenant",
        "urn:zitadel:iam:user:resourceowner:id", "https://stytch.com/organization.organization_id",
    ].compactMap(ClaimPath.init)

    /// Tokens without a claim, after which a setting that names it is probably wrong. Some users have no role, for
    /// example, but hardly all of them.
    static let unfoundMin = 100

    private struct Counts {
        var ignored: [String: Int] = [:]
        /// Tokens with, and without, a claim that a setting names.
        var found: [ClaimMeaning: Int] = [:]
        var unfound: [ClaimMeaning: Int] = [:]
        /// The first organization seen, by the claim that named it.
        var organizations: [String: String] = [:]
        var mixed = 0
        /// Tokens whose names of roles are not listed.
        var unlisted = 0
        var hasListed = false
        var usersAsBackends = 0
        /// Whether users of the default tenant, and of others, were seen.
        var hasDefaultUsers = false
        var hasNamedUsers = false
        var lostCalls = 0
    }

    private let counts = Locked(Counts())
    private let logger: Logger

    init(metrics: MetricsRegistry, logger: Logger) {
        self.logger = logger
        metrics.register { [counts] text in
            let counts = counts.withLock { $0 }
            text.family(
                "bellhop_ignored_claims_total", .counter,
                "Verified tokens with a claim that would give a right, if a setting named it.", by: "claim",
                samples: Self.names.map { ($0.name, counts.ignored[$0.name] ?? 0) })
            text.family(
                "bellhop_missing_claims_total", .counter,
                "Verified tokens without a claim that a setting names.", by: "setting",
                samples: ClaimMeaning.allCases.map { (Self.setting($0).name, counts.unfound[$0] ?? 0) })
            text.single(
                "bellhop_mixed_organizations_total", .counter,
                "Verified tokens of a second or further organization whose users are in the default tenant.",
                value: counts.mixed)
            text.single(
                "bellhop_unlisted_roles_total", .counter, "Verified tokens with names of roles that no setting lists.",
                value: counts.unlisted)
            text.single(
                "bellhop_lost_calls_total", .counter,
                "Calls of backends without a tenant, while the tokens of all users name one.",
                value: counts.lostCalls)
        }
    }

    private static func setting(_ meaning: ClaimMeaning) -> Settings.Key {
        Settings.key(Settings.setting(of: meaning))
    }

    /// Notes the claims of a verified token.
    func note(_ payload: JSONValue, of caller: Caller, by claims: Claims) {
        noteRoles(payload, of: caller, by: claims)
        let ignored = claims.ignored(in: payload, of: caller)
        let organization = claims.organization(in: payload, of: caller)
        let found = claims.found(in: payload, of: caller)
        guard !ignored.isEmpty || organization != nil || !found.isEmpty else { return }
        var (new, unfound, isMixed) = ([Claim](), [ClaimMeaning](), false)
        counts.withLock { counts in
            for claim in ignored {
                counts.ignored[claim.name, default: 0] += 1
                if counts.ignored[claim.name] == 1 { new.append(claim) }
            }
            for (meaning, isFound) in found {
                if isFound {
                    counts.found[meaning, default: 0] += 1
                } else {
                    counts.unfound[meaning, default: 0] += 1
                    // A user without a tenant's claim is in the default tenant, with all others.
                    let limit = meaning == .tenant ? 1 : Self.unfoundMin
                    let isRare = meaning != .tenant && (counts.found[meaning] ?? 0) > 0
                    if counts.unfound[meaning] == limit, !isRare { unfound.append(meaning) }
                }
            }
            if let organization, counts.organizations[organization.claim, default: organization.id] != organization.id {
                counts.mixed += 1
                isMixed = counts.mixed == 1
            } else if let organization {
                counts.organizations[organization.claim] = organization.id
            }
        }
        for claim in new { report(claim, claims.rules) }
        for meaning in unfound { report(meaning, claims.rules) }
        if isMixed, let organization { reportMixed(organization.claim) }
    }

    private func noteRoles(_ payload: JSONValue, of caller: Caller, by claims: Claims) {
        let roles = claims.roles(in: payload, of: caller)
        let names = roles?.areListed == false ? roles?.names ?? [] : []
        let isMisspelt = names.contains { name in
            claims.rules.roles.contains { $0.name.lowercased() == name.lowercased() }
        }
        let isUserAsBackend = claims.isUserAsBackend(caller, payload)
        let (isUnlisted, isNewBackend) = counts.withLock { counts in
            if !caller.isService {
                if caller.tenant == ID("default") { counts.hasDefaultUsers = true } else { counts.hasNamedUsers = true }
            }
            counts.hasListed = counts.hasListed || roles?.areListed == true
            counts.unlisted += names.isEmpty ? 0 : 1
            counts.usersAsBackends += isUserAsBackend ? 1 : 0
            let isMany = counts.unlisted == Self.unfoundMin && !counts.hasListed
            return (
                !names.isEmpty && (isMany || isMisspelt && counts.unlisted == 1),
                isUserAsBackend && counts.usersAsBackends == 1
            )
        }
        if isUnlisted {
            logger.warning(
                "A token has names of roles, but the setting does not list them.",
                metadata: [
                    "names": "\(names.prefix(8).joined(separator: ", ").prefix(200))", "issuer": "\(claims.rules.name)",
                    "remedy": """
                    add them to \(Settings.variable(\.$roles)), which has \
                    \(claims.rules.roles.map(\.name).joined(separator: ", ")); capitals count
                    """,
                ])
        }
        if isNewBackend {
            logger.warning(
                "A token of a user's session counts as a backend's.",
                metadata: [
                    "issuer": "\(claims.rules.name)",
                    "remedy": "\(Settings.variable(\.$jwtService)) must name what tokens of users do not have",
                ])
        }
    }

    /// Notes a call of a backend of all tenants whose effect is in the default tenant. No user may be there.
    func noteCall(of caller: Caller) {
        let isFirst = counts.withLock { counts in
            guard counts.hasNamedUsers, !counts.hasDefaultUsers else { return false }
            counts.lostCalls += 1
            return counts.lostCalls == 1
        }
        guard isFirst else { return }
        logger.warning(
            "A backend without a tenant acts in the tenant default, but the tokens of all users name other tenants.",
            metadata: [
                "backend": "\(caller.userId)",
                "remedy": """
                give it a token with the tenant's claim, or a service key with tenant=ID, one for each tenant; only \
                rows of tables name their tenant themselves
                """,
            ])
    }

    private func report(_ claim: Claim, _ rules: IssuerRules) {
        let paths = (rules.claims[claim.meaning] ?? []).map(\.text) + [claim.name]
        logger.warning(
            "A token has a claim that does not count, because no setting names it.",
            metadata: [
                "claim": "\(claim.name)", "issuer": "\(rules.name)",
                "remedy": """
                if your issuer alone decides this claim, set \
                \(Self.setting(claim.meaning).variable)=\(paths.joined(separator: ","))
                """,
            ])
    }

    private func report(_ meaning: ClaimMeaning, _ rules: IssuerRules) {
        let paths = (rules.claims[meaning] ?? []).map(\.text).joined(separator: ",")
        logger.warning(
            meaning == .tenant
                ? "A token has no claim of the tenant, so its user is in the tenant default."
                : "No token has had the claim that a setting names.",
            metadata: [
                "setting": "\(Self.setting(meaning).variable)=\(paths)", "issuer": "\(rules.name)",
                "remedy": "compare the setting with a decoded token; names are case-sensitive",
            ])
    }

    private func reportMixed(_ claim: String) {
        logger.warning(
            "Users of several organizations are in one tenant, default: no setting names the tenant's claim.",
            metadata: [
                "claim": "\(claim)",
                "remedy": """
                set \(Self.setting(.tenant).variable)=\(claim) if each organization has its own data; what is stored under \
                default stays there
                """,
            ])
    }
}
