import Values

extension Failure {
    /// The answer of what belongs to a set that is off.
    static func off(_ set: FeatureSet) -> Failure { Failure(.notFound, offCode, offDetail(set)) }

    /// The answer to a request that is served, but names something of a set that is off.
    static func off(_ set: FeatureSet, at fields: [Field]) -> Failure {
        Failure(.invalid, offCode, offDetail(set), fields: fields)
    }

    static let offCode = "feature.off"

    static func offDetail(_ set: FeatureSet) -> String {
        "\(set.subject.prefix(1).uppercased())\(set.subject.dropFirst()) off on this server (\(Settings.variable(\.$features)))."
    }
}
