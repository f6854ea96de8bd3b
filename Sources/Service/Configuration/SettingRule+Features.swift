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
