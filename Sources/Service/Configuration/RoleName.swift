/// An issuer's name for a role.
struct RoleName: Sendable {
    let name: String
    let role: String
}
