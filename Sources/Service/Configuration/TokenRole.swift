/// A role of a token that gives rights by itself. A file of tables can give memberships to others.
public enum TokenRole: String, Sendable, CaseIterable {
    /// A backend of its tenant; without a tenant, of all tenants. The name is that of Supabase.
    case backend = "service_role"
    case admin, staff, barber, teacher

    /// What a token with this role may do beside what every user may, for the log.
    var right: String {
        switch self {
        case .backend: "everything for all users of its tenant, or of all tenants if no claim names one"
        case .admin: "see and moderate everything of its tenant"
        case .staff, .barber: "run the shops that its token names"
        case .teacher: "see the rows of its classes as staff"
        }
    }
}
