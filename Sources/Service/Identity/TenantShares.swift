import Values

/// What each tenant may use, so that one tenant cannot take the capacity of the others.
struct TenantShares: Sendable {
    private let usual: (requests: Int, streams: Int, webhooks: Int, push: Int, rows: Int)
    private let others: [ID<Tenant>: TenantShare]

    init(_ settings: Settings) {
        usual = (
            settings.rateLimitTenant, settings.streamsPerTenantMax, settings.webhookLimitTenant,
            settings.pushLimitTenant, settings.rowsPerTenantMax
        )
        others = Dictionary(settings.tenantShares.map { ($0.tenant, $0) }) { $1 }
    }

    /// Returns the requests per minute of all users and backends of a tenant; 0 for no limit.
    func requests(of tenant: ID<Tenant>) -> Int { others[tenant]?.requests ?? usual.requests }

    /// Returns the open streams of all users of a tenant; 0 for no limit.
    func streams(of tenant: ID<Tenant>) -> Int { others[tenant]?.streams ?? usual.streams }

    /// Returns the webhooks per minute of a tenant on this replica; 0 for no limit.
    func webhooks(of tenant: ID<Tenant>) -> Int { others[tenant]?.webhooks ?? usual.webhooks }

    /// Returns the push messages per minute of a tenant on this replica; 0 for no limit.
    func push(of tenant: ID<Tenant>) -> Int { others[tenant]?.push ?? usual.push }

    /// Returns the rows that a tenant may store; 0 for no limit.
    func rows(of tenant: ID<Tenant>) -> Int { others[tenant]?.rows ?? usual.rows }

    /// Whether a tenant has a limit of its rows.
    var limitsRows: Bool { usual.rows > 0 || others.values.contains { $0.rows ?? 0 > 0 } }

    /// Returns the tenants with the largest values, for metrics: a label for every tenant could fill a Prometheus.
    static func largest<Value: Comparable & Numeric>(_ all: [(ID<Tenant>, Value)]) -> [(ID<Tenant>, Value)] {
        let present = all.filter { $0.1 > 0 }.sorted { $0.1 == $1.1 ? $0.0 < $1.0 : $0.1 > $1.1 }
        return Array(present.prefix(Limits.tenantsInMetricsMax))
    }
}
