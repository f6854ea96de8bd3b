import Values

/// The limits of one tenant that differ from the limits of other tenants. Nil means the limit of other tenants.
struct TenantShare: Sendable, Equatable {
    let tenant: ID<Tenant>
    /// Requests per minute of all users and backends; 0 for no limit.
    var requests: Int?
    /// Open streams of all users; 0 for no limit.
    var streams: Int?
    /// Webhooks per minute; 0 for no limit.
    var webhooks: Int?
    /// Push messages per minute; 0 for no limit.
    var push: Int?
    /// Stored rows; 0 for no limit.
    var rows: Int?
}
