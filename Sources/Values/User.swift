/// The entity of an `ID<User>`. The token's issuer manages users; this service knows only their ids.
public enum User {}

/// The entity of an `ID<Tenant>`, to which rows belong. Only callers of a row's tenant can see the row. Tokens and rows
/// name tenants by id only, and ids are compared by their bytes.
public enum Tenant {}

extension ID where Entity == User {
    /// The id that stands for every erased person where a row must keep some user, such as the sender of a message.
    public static let erased: ID = "bellhop:erased"

    /// Whether the id stands for an erased person. No token may have such an id.
    public var isOfErased: Bool { text.hasPrefix(Self.erased.text) }
}
