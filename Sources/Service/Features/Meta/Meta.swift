import Values

/// What the service says of itself: who a token is, the constants of clients, health, metrics, its own description.
enum MetaFeature {
    typealias Constants = @Sendable (inout JSONWriter, Settings) -> Void

    /// - Parameters:
    ///   - report: nil lists the routes without serving them, for `bellhop routes`.
    ///   - constants: what each other feature writes into `/v1/config`.
    static func feature(_ report: ServiceReport?, constants: [Constants]) -> Feature {
        Feature(name: "meta", endpoints: endpoints(report, constants))
    }
}
