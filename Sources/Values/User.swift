/// The entity of an `ID<User>`. The token's issuer manages users; here a user is an id and nothing else.
public enum User {}
