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

        init(_ parts: ServingParts) {
            tables = parts.tables
            authenticator = parts.authenticator
            log = parts.streams.surroundings.log
            live = parts.streams.surroundings.live
        }
    }

    /// - Parameter surroundings: nil lists the route without serving it.
    static func feature(_ surroundings: Surroundings?) -> Feature {
        Feature(
            name: "explain", tables: [], migrations: [], endpoints: endpoints(surroundings), reactions: [], topics: [],
            ticks: [])
    }
}
