/// The entity of an `ID<User>`. The token's issuer manages users; here a user is an id and nothing else.
public enum User {}

/// The entity of an `ID<Tenant>`: whose rows they are, and who may see any of them. Tokens and rows name tenants; none
/// is more than its id, and two whose texts look alike are two.
public enum Tenant {}
