import Values

/// A key of the settings with which a backend authenticates instead of a token. Only its digest is kept.
struct ServiceKey: Sendable, Equatable {
    /// The backend's id, also in the audit log. Several keys may have one name while the key is rotated.
    let name: String
    /// The SHA-256 of the key.
    let digest: [UInt8]
    /// The only tenant that the backend serves; nil for all tenants.
    var tenant: ID<Tenant>?
    /// Nil for all capabilities.
    var capabilities: Set<Capability>?

    /// Whether another key of the same name may do the same.
    func hasRights(of other: ServiceKey) -> Bool { tenant == other.tenant && capabilities == other.capabilities }

    /// Returns whether a text has the three parts of a JWT, so that it cannot be a key.
    static func isLikeToken(_ text: some Collection<UInt8>) -> Bool {
        text.lazy.filter { $0 == UInt8(ascii: ".") }.count == 2
    }
}
