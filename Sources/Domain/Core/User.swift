/// Whom an `ID<User>` names. Users live in the token's issuer; here they are an id and nothing else.
public enum User {}
