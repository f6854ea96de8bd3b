/// A check of the keys that verify tokens.
struct KeyCheck {
    private let settings: Settings

    init(_ settings: Settings) { self.settings = settings }

    func examine(_ report: (Finding) -> Void) async {
        for rules in settings.issuers { await examine(rules, report) }
        if !settings.serviceKeys.isEmpty { report(.good("keys", Self.summary(of: settings.serviceKeys))) }
    }

    private func examine(_ rules: IssuerRules, _ report: (Finding) -> Void) async {
        if let secret = rules.secret {
            report(.good("keys", "the shared secret of \(rules.name) has \(secret.utf8.count) bytes"))
        }
        guard let source = rules.keys else { return }
        do {
            for finding in Self.findings(of: try await SigningKeys.load(source).set, rules.name) { report(finding) }
        } catch {
            report(
                .fault(
                    "keys", "the keys of \(rules.name) are not usable: \(SigningKeys.reason(of: error))",
                    """
                    correct \(Settings.variable(\.$jwtIssuer)) or \(Settings.variable(\.$jwks)), or check the issuer
                    """))
        }
        let unset = [
            rules.issuer == nil ? Settings.variable(\.$jwtIssuer) : nil,
            rules.audiences.isEmpty && rules.required.isEmpty
                ? "\(Settings.variable(\.$jwtAudience)) or \(Settings.variable(\.$jwtRequire))" : nil,
        ].compactMap(\.self)
        if !unset.isEmpty {
            report(
                .warning(
                    "keys", "every token of \(rules.name) is accepted, including tokens for other services",
                    "set \(unset.joined(separator: " and "))"))
        }
        guard rules.tenant == nil, !rules.named.contains(.tenant) else { return }
        let claims = ClaimWarnings.organizations.prefix(4).map(\.text).joined(separator: ", ")
        report(
            .note(
                "keys",
                """
                do several organizations share \(rules.name)? Then set \(Settings.variable(\.$claimTenant)) (\(claims), …): \
                without it, all users are in one tenant
                """))
    }

    /// Returns the names of backends' keys, with their limits. A name with two keys is being rotated.
    static func summary(of keys: [ServiceKey]) -> String {
        let backends = Dictionary(grouping: keys, by: \.name).sorted { $0.key < $1.key }.map { name, keys in
            let key = keys[0]
            let names = key.capabilities.map { held in Capability.allCases.filter(held.contains).map(\.rawValue) }
            let limits = [
                key.tenant.map { "tenant \($0)" } ?? "all tenants", names?.joined(separator: "+") ?? "all capabilities",
                keys.count > 1 ? "\(keys.count) keys" : nil,
            ]
            return "\(name) (\(limits.compactMap(\.self).joined(separator: ", ")))"
        }
        return "service keys: \(backends.joined(separator: "; "))"
    }

    static func findings(of set: KeySet, _ issuer: String) -> [Finding] {
        let used = set.keys.sorted { $0.key < $1.key }.flatMap { id, keys in keys.map { "\(id) (\($0.algorithm))" } }
        let skipped = set.skipped.map { Finding.warning("keys", "\($0); the key is ignored", "remove it from the set") }
        let more = set.skippedCount - set.skipped.count
        return [
            used.isEmpty
                ? .fault("keys", "no key of \(issuer) can verify a token", "publish a key for ES256, RS256 or EdDSA")
                : .good("keys", "the key set of \(issuer) has \(used.joined(separator: ", "))")
        ] + skipped + (more > 0 ? [.warning("keys", "\(more) more keys are ignored", "remove them from the set")] : [])
    }
}
