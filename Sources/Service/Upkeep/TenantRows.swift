import Database
import Logging
import Threads
import Values

/// The thread that counts the stored rows of each tenant, once a minute, and only if a tenant has a limit.
final class TenantRows: Sendable {
    private let store: DatabaseStore
    private let clock: Clock
    private let rows: StoredRows
    private let logger: Logger
    private let thread = LoopThread("tenant-rows")

    init(_ reader: TransactionReader, metrics: MetricsRegistry, logger: Logger) {
        (store, clock, rows) = (reader.store, reader.clock, reader.rows)
        self.logger = logger
        metrics.register { [rows] text in
            text.family(
                "bellhop_tenant_rows", .gauge,
                "Stored rows of a tenant, for the tenants with the most, if a limit is set.",
                by: "tenant", samples: rows.largest.map { ($0.0.text, $0.1) })
        }
        rows.recount.add(thread)
    }

    func start() {
        guard rows.isLimited else { return }
        thread.start { [self] in
            var countedAt: Duration?
            repeat {
                let pause = rows.isDoubted ? StoredRows.doubtPause : StoredRows.pause
                if let countedAt, clock.uptime() < countedAt + pause { continue }
                countedAt = clock.uptime()
                do { try rows.replace(by: count) } catch {
                    logger.warning("The rows of the tenants could not be counted.", metadata: ["reason": "\(error)"])
                }
            } while thread.wait(atMost: clock.pause(.seconds(1)))
        }
    }

    func stop() { thread.stop() }

    private func count() throws -> [ID<Tenant>: Int] {
        var found: [ID<Tenant>: Int] = [:]
        // One statement at a time, so that no long transaction holds back the checkpoints.
        for table in rows.tables {
            let counted = try store.read(isSingle: true) { db in
                try db.rows(
                    "SELECT tenant, count(*) FROM \(table, unscoped: Self.bookkeeping) GROUP BY tenant"
                ) { (tenant: try $0.id(0) as ID<Tenant>, count: try $0.integer(1)) }
            }
            for row in counted { found[row.tenant, default: 0] += row.count }
        }
        return found
    }

    private static let bookkeeping = Unscoped.bookkeeping("the number of rows, not their content")
}
