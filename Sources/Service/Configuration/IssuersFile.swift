import Values

/// A YAML file with a list of issuers. Each has members with the names of settings:
///
/// ```yaml
/// - jwtIssuer: https://id.example
///   jwtAudience: bells
///   claimTenant: org_id
/// ```
///
/// A member of claims or roles that an issuer does not have is that of the settings.
enum IssuersFile {
    /// Issuers of a file. Each keeps its own keys up to date, and a token is compared with all names.
    static let issuersMax = 64

    /// The settings that an issuer may have.
    private static func isOfIssuer(_ key: Settings.Key) -> Bool {
        key.group == Settings.Group.tokens.rawValue && (key.name.hasPrefix("claim") || own.contains(key.name))
    }

    private static let own: Set = [
        Settings.key(\.$jwtIssuer).name, Settings.key(\.$jwtSecret).name, Settings.key(\.$jwks).name,
        Settings.key(\.$jwksPrivate).name, Settings.key(\.$jwtAudience).name, Settings.key(\.$jwtRequire).name,
        Settings.key(\.$jwtService).name, Settings.key(\.$jwtTenant).name, Settings.key(\.$roles).name,
    ]

    /// Reads the rules of a file.
    ///
    /// - Parameter base: The settings, whose claims and roles apply where an issuer has none.
    static func rules(at path: String, base: Settings) throws -> [IssuerRules] {
        let file: YAMLFile
        do throws(YAMLFile.Unusable) {
            file = try YAMLFile(path: path)
        } catch {
            switch error {
            case .invalid(let reason), .unreadable(let reason): throw Settings.Fault("\(path): \(reason)")
            }
        }
        guard case .array(let entries) = file.document, (1...issuersMax).contains(entries.count) else {
            throw Settings.Fault("\(path): must be a list of 1 to \(issuersMax) issuers")
        }
        var known = Set([base.jwtIssuer].compactMap(\.self))
        return try entries.enumerated().map { index, entry in
            func fault(_ problem: String, at member: String? = nil) -> Settings.Fault {
                let line = file.line(of: "/\(index)" + (member.map { "/\($0)" } ?? ""))
                return Settings.Fault("\(path), line \(line): \(problem)")
            }
            guard case .object(let members) = entry else { throw fault("an issuer must have members") }
            var texts: [String: String] = [:]
            for (name, value) in members {
                guard Settings.catalog.contains(where: { $0.name == name && isOfIssuer($0) }) else {
                    let names = Settings.catalog.filter(isOfIssuer).map(\.name)
                    throw fault("\(name) is not a setting of an issuer; \(names.hint(for: name))", at: name)
                }
                guard let text = text(of: value) else { throw fault("\(name) must be a text or a list", at: name) }
                texts[name] = text
            }
            do {
                let settings = Settings()
                for key in Settings.named(settings) { try key.read(SettingsReader(texts: texts)) }
                guard let issuer = settings.jwtIssuer else { throw fault("jwtIssuer is missing") }
                guard known.insert(issuer).inserted else {
                    throw fault("\(issuer) is the issuer of other rules as well", at: "jwtIssuer")
                }
                let rules = try IssuerRules(settings, base: base)
                guard rules.secret != nil || rules.keys != nil else { throw fault("there is no key") }
                return rules
            } catch let mistake as Settings.Mistake {
                throw fault(mistake.description, at: mistake.setting)
            }
        }
    }

    private static func text(of value: JSONValue) -> String? {
        switch value {
        case .string(let text): return text
        case .integer(let number): return "\(number)"
        case .bool(let bool): return "\(bool)"
        case .array(let elements):
            let texts = elements.compactMap(text)
            return texts.count == elements.count ? texts.joined(separator: ",") : nil
        default: return nil
        }
    }
}
