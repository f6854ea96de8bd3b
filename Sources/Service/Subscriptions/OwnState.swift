import Values

/// A state of one user that is not stored. The next one replaces it, and a stream that opens receives the current one.
struct OwnState: Sendable {
    let tenant: ID<Tenant>
    /// The key of the scopes whose streams receive it.
    let key: String
    let name: String
    let collapse: UInt64
    let data: [UInt8]
}
