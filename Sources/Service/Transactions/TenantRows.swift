import Database
import Logging
import Threads
import Values

/// The stored rows of each tenant, so that one tenant cannot fill the storage of the others.
///
/// Rows are counted once a minute, and only if a tenant has a limit. A counter in the transaction of each write would
/// make all writes of a tenant wait for one row. So a tenant may exceed its limit by the writes of a minute.
final class TenantRows: Sendable {
    /// The pause between two counts. For this time a tenant may exceed its limit, and may be
    /// refused after it has deleted rows.
    private static let pause: Duration = .seconds(60)

    private let store: DatabaseStore
    private let clock: Clock
    private let shares: TenantShares
    /// The tables that callers write. The service's own records expire, are bounded, or are the audit log.
    private let tables: [Table]
    private let logger: Logger
    private let counts = Locked([ID<Tenant>: Int]())
    private let thread = LoopThread("tenant-rows")

    init(_ reader: TransactionReader, metrics: MetricsRegistry, logger: Logger) {
        (store, clock, shares) = (reader.store, reader.clock, reader.limiter.shares)
        tables = reader.tables.filter { !$0.write.entries.isEmpty }
        self.logger = logger
        metrics.register { [counts] text in
            text.family(
                "bellhop_tenant_rows", .gauge,
                "Stored rows of a tenant at the last count, for the tenants with the most, if a limit is set.",
                by: "tenant",
                TenantShares.largest(counts.withLock { $0.map { ($0.key, $0.value) } }).map { ($0.0.text, $0.1) })
        }
    }

    func start() {
        guard shares.limitsRows else { return }
        thread.start { [self] in
            var countedAt: Duration?
            repeat {
                if let countedAt, clock.uptime() < countedAt + Self.pause { continue }
                countedAt = clock.uptime()
                do { try count() } catch {
                    logger.warning("The rows of the tenants could not be counted.", metadata: ["reason": "\(error)"])
                }
            } while thread.wait(atMost: clock.pause(.seconds(1)))
        }
    }

    func stop() { thread.stop() }

    private func count() throws {
        var found: [ID<Tenant>: Int] = [:]
        // One statement at a time, so that no long transaction holds back the checkpoints.
        for table in tables {
            let counted = try store.read(isSingle: true) { db in
                try db.rows(
                    "SELECT tenant, count(*) FROM \(table, unscoped: Self.bookkeeping) GROUP BY tenant"
                ) { (tenant: try $0.id(0) as ID<Tenant>, count: try $0.integer(1)) }
            }
            for row in counted { found[row.tenant, default: 0] += row.count }
        }
        counts.withLock { $0 = found }
    }

    private static let bookkeeping = Unscoped.bookkeeping("the number of rows, not their content")

    /// Requires room for more rows of a tenant.
    func requireRoom(for tenant: ID<Tenant>) throws(Failure) {
        let limit = shares.rows(of: tenant)
        guard limit > 0, let count = counts.withLock({ $0[tenant] }), count >= limit else { return }
        throw Failure(
            .insufficientStorage, "tenant.storage_full",
            """
            Your tenant stores \(count) rows and may store \(limit). The request changed nothing. Delete rows, and retry \
            after a minute.
            """, retryAfterSeconds: Int(Self.pause.components.seconds))
    }
}
