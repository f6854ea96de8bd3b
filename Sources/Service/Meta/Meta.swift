/// What the service says of itself: who a token is, the constants of clients, health, metrics, its own description.
enum MetaFeature {
    /// - Parameter report: nil lists the routes without serving them, for `bellhop routes`.
    static func feature(_ report: ServiceReport?) -> Feature {
        Feature(
            name: "meta", tables: [], migrations: [], endpoints: endpoints(report), reactions: [], topics: [], ticks: []
        )
    }
}
