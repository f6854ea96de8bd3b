import Rows
import Values

extension SettingRule {
    /// Reads the names of sets; `all` stands alone.
    static func featureSets(_ text: String?) throws -> Set<FeatureSet> {
        let names = parts(of: text)
        guard names != [FeatureSet.all] else { return Set(FeatureSet.allCases) }
        guard !names.isEmpty else { throw Settings.Fault("must not be empty") }
        return Set(
            try names.map { name in
                if let set = FeatureSet(rawValue: name) { return set }
                guard name != FeatureSet.all else { throw Settings.Fault("all stands alone") }
                throw Settings.Fault(
                    "\(name) is not a feature set; \(FeatureSet.allCases.map(\.rawValue).hint(for: name))")
            })
    }
}

extension ContactKind {
    /// The feature set with this kind of contact.
    var set: FeatureSet {
        switch self {
        case .conversations: .chat
        case .requests: .requests
        case .follows: .social
        }
    }
}

extension Settings {
    /// Refuses rules about contacts that nothing asks, and blocks that cannot arrive: both would promise protection.
    func requireSetsOfContacts() throws {
        let rules = tables.contacts.rules
        var missing = rules.keys.filter { !features.contains($0.set) }.map { ("contacts.\($0)", $0.set) }
        if !features.contains(.rows) {
            missing += rules.filter { !$0.value.not.isEmpty }.keys.map { ("contacts.\($0).not", .rows) }
        }
        guard !missing.isEmpty else { return }
        let texts = missing.map { "\($0) needs the feature set \($1)" }.sorted().joined(separator: ", ")
        throw $tableFile.mistake("\(texts), which is off (\($features.variable))")
    }
}
