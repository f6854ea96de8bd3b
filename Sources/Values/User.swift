/// The entity of an `ID<User>`. The token's issuer manages users; this service knows only their ids.
public enum User {}

/// The entity of an `ID<Tenant>`, to which rows belong. Only callers of a row's tenant can see the row. Tokens and rows
/// name tenants by id only, and ids are compared by their bytes.
public enum Tenant {}
