/// Why an event reached, or did not reach, somebody: for whoever runs an app and is asked.
enum ExplainFeature {
    /// What explanations are made from.
    struct Parts: Sendable {
        let memberships: MembershipRegistry
        let authenticator: Authenticator
        let log: LogIdentity
        /// Memberships by rows of the service whose keys streams have.
        let live: [LiveMembership]
    }

    /// - Parameter parts: nil lists the route without serving it.
    static func feature(_ parts: Parts?) -> Feature {
        Feature(name: "explain", endpoints: endpoints(parts))
    }
}
