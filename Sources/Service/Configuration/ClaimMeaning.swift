/// The contents of a token for which settings name claims.
public enum ClaimMeaning: Sendable, CaseIterable {
    case user, role, tenant, session, capabilities, student, classes, children, shops, tier
}
