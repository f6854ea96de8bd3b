import Database
import Threads
import Values

/// The stored rows of each tenant, so that one tenant cannot fill the storage of the others: the last count, and the
/// rows that this process has added since then.
///
/// A counter in the database would make all writes of a tenant wait for one row. So with several replicas, a tenant may
/// exceed its limit by what the other replicas add between two counts.
final class StoredRows: Sendable {
    /// The pause between two counts.
    static let pause: Duration = .seconds(60)
    /// The pause between two counts if a tenant may have room: an upsert of a known row counts as added until then.
    static let doubtPause: Duration = .seconds(10)

    private struct Count {
        var counted = 0
        var added = 0

        var sum: Int { counted + added }
    }

    /// The tables that callers write or whose rows they send. The service's own records expire, are bounded, or are the
    /// audit log.
    let tables: [Table]
    private let names: Set<String>
    private let shares: TenantShares
    private let counts = Locked([ID<Tenant>: Count]())
    /// Whether a tenant was refused because of rows that were added since the last count.
    private let doubt = Locked(false)
    /// Wakes the thread that counts.
    let recount = WakeSignal()

    init(_ shares: TenantShares, _ tables: [Table]) {
        self.shares = shares
        self.tables = tables.filter { !$0.write.entries.isEmpty || $0.storesSentRows }
        // One transaction stores sent rows of several tenants. The code that stores them counts them.
        names = Set(self.tables.filter { !$0.storesSentRows }.map(\.name))
    }

    /// Whether a tenant has a limit.
    var isLimited: Bool { shares.limitsRows }
    var isDoubted: Bool { doubt.withLock { $0 } }
    var largest: [(ID<Tenant>, Int)] {
        TenantShares.largest(counts.withLock { $0.map { ($0.key, max(0, $0.value.sum)) } })
    }

    /// Returns a tally for one transaction; nil if no tenant has a limit.
    func tally() -> RowTally? { isLimited ? RowTally(of: names) : nil }

    func note(added: Int, of tenant: ID<Tenant>) {
        guard isLimited else { return }
        counts.withLock { $0[tenant, default: Count()].added += added }
    }

    /// Counts all rows again. Rows that are added meanwhile may count twice until the next count.
    func replace(by count: () throws -> [ID<Tenant>: Int]) rethrows {
        doubt.withLock { $0 = false }
        let before = counts.withLock { $0.mapValues(\.added) }
        let found = try count()
        counts.withLock { counts in
            for tenant in Set(counts.keys).union(found.keys) {
                let added = (counts[tenant]?.added ?? 0) - (before[tenant] ?? 0)
                let count = Count(counted: found[tenant] ?? 0, added: added)
                counts[tenant] = count.counted == 0 && added == 0 ? nil : count
            }
        }
    }

    /// Requires room for more rows of a tenant.
    func requireRoom(for tenant: ID<Tenant>) throws(Failure) {
        let limit = shares.rows(of: tenant)
        guard limit > 0, let count = counts.withLock({ $0[tenant] }), count.sum >= limit else { return }
        let isCounted = count.counted >= limit
        if !isCounted {
            doubt.withLock { $0 = true }
            recount.send()
        }
        let pause = isCounted ? Self.pause : Self.doubtPause
        throw Failure(
            .insufficientStorage, "tenant.storage_full",
            """
            Your tenant stores \(count.sum) rows and may store \(limit). The request changed nothing. Delete rows, and \
            retry after a minute.
            """, retryAfterSeconds: Int(pause.components.seconds))
    }
}
