import Values

/// The limits of one tenant that differ from those of the others. Nil means as for the others.
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
