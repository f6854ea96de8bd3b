import Domain

/// Why an event reached, or did not reach, somebody: for whoever runs an app and is asked.
enum ExplainFeature {
    /// What explanations are made from.
    struct Surroundings: Sendable {
        let tables: TableRegister
        let authenticator: Authenticator
        let log: LogIdentity
        /// What streams hold by rows of the service.
        let live: [LiveMembership]
    }

    /// - Parameter surroundings: nil lists the route without serving it.
    static func feature(_ surroundings: Surroundings?) -> Feature {
        Feature(
            name: "explain", tables: [], migrations: [], endpoints: endpoints(surroundings), reactions: [], topics: [],
            ticks: [])
    }
}
