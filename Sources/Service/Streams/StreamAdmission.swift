import Threads
import Values

/// The number of open streams of each user and tenant, which is limited so that one cannot take the capacity of all.
final class StreamAdmission: Sendable {
    private struct Streams {
        var users: [ID<User>: Int] = [:]
        var count = 0
    }

    /// Whose limit refuses a further stream.
    enum Exhausted: Error {
        case user, tenant
    }

    private let tenants = Locked([ID<Tenant>: Streams]())

    func register(in metrics: MetricsRegistry) {
        metrics.register { [self] text in
            text.family(
                "bellhop_tenant_streams", .gauge, "Open streams of a tenant's users, for the tenants with the most.")
            for (tenant, count) in TenantShares.largest(tenants.withLock { $0.map { ($0.key, $0.value.count) } }) {
                text.sample("bellhop_tenant_streams", [("tenant", tenant.text)], Double(count))
            }
        }
    }

    /// Returns a lease.
    ///
    /// - Parameter tenantMax: The limit of all users of the tenant; 0 means no limit.
    func lease(to owner: Owner, max: Int, tenantMax: Int) throws(Exhausted) -> StreamLease {
        try tenants.withLock { tenants throws(Exhausted) in
            let count = tenants[owner.tenant]?.users[owner.userId] ?? 0
            guard count < max else { throw .user }
            if tenantMax > 0, tenants[owner.tenant]?.count ?? 0 >= tenantMax { throw .tenant }
            tenants[owner.tenant, default: Streams()].users[owner.userId] = count + 1
            tenants[owner.tenant]?.count += 1
        }
        return StreamLease(owner: owner, admission: self)
    }

    fileprivate func release(_ owner: Owner) {
        tenants.withLock { tenants in
            guard let count = tenants[owner.tenant]?.users[owner.userId] else { return }
            // In place: a copy of the tenant's users would make the end of all streams quadratic.
            tenants[owner.tenant]?.users[owner.userId] = count > 1 ? count - 1 : nil
            tenants[owner.tenant]?.count -= 1
            if tenants[owner.tenant]?.count == 0 { tenants[owner.tenant] = nil }
        }
    }

    func hasStream(_ owner: Owner) -> Bool { tenants.withLock { $0[owner.tenant]?.users[owner.userId] != nil } }

    /// Returns the users of a tenant with an open stream.
    func users(of tenant: ID<Tenant>) -> [String] { (tenants.withLock { $0[tenant]?.users } ?? [:]).keys.map(\.text) }

    /// Whether users have streams, but none can be of a tenant: either the default one, which all users without a claim of
    /// the tenant have, or one that a claim names.
    func misses(_ tenant: ID<Tenant>) -> Bool {
        tenants.withLock { tenants in
            guard !tenants.isEmpty else { return false }
            let hasDefault = tenants["default"] != nil
            return tenant == "default" ? !hasDefault : hasDefault && tenants.count == 1
        }
    }

    func hasUsers(of tenant: ID<Tenant>) -> Bool { tenants.withLock { $0[tenant] != nil } }
}

/// The right to one stream. It is returned on deallocation. So it is also returned if the client vanishes between the
/// answer's head and the stream's opening, for which there is no callback.
final class StreamLease: Sendable {
    private let owner: Owner
    private let admission: StreamAdmission

    fileprivate init(owner: Owner, admission: StreamAdmission) {
        self.owner = owner
        self.admission = admission
    }

    deinit { admission.release(owner) }
}
