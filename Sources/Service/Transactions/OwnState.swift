/// A state of one user, stored nowhere: the next one replaces it, and who opens a stream is sent the present one.
struct OwnState: Sendable {
    let tenant: String
    /// Whose streams: a key of their scopes.
    let key: String
    let name: String
    let collapse: UInt64
    let data: [UInt8]
}
