import Logging
import Threads
import Values

/// The accepted rows that no user can receive, because rows and tokens disagree about tenants: the tokens of all connected
/// users name a tenant and the rows are of `default`, or the reverse.
///
/// They are counted, and logged once for each table: otherwise a feed is accepted for weeks, and nobody receives anything.
final class UnheardRows: Sendable {
    /// The rows of a table in one delivery.
    struct Tally: Sendable {
        let tenant: ID<Tenant>
        var rows = 0
    }

    /// Whether users are connected, and none of them can be of a tenant (``StreamAdmission/misses(_:)``).
    let isMissed: @Sendable (ID<Tenant>) -> Bool
    private let counts = Locked([String: Int]())
    private let logger: Logger

    init(metrics: MetricsRegistry, logger: Logger, isMissed: @escaping @Sendable (ID<Tenant>) -> Bool) {
        (self.isMissed, self.logger) = (isMissed, logger)
        metrics.register { [counts] text in
            text.family(
                "bellhop_changes_unheard_total", .counter,
                "Accepted rows of a tenant to which no connected user can belong, by table.", by: "table",
                samples: counts.withLock { $0.sorted { $0.key < $1.key } }.map { ($0.key, $0.value) })
        }
    }

    func note(_ found: [String: Tally]) {
        let new = counts.withLock { counts in
            found.filter { table, tally in
                defer { counts[table, default: 0] += tally.rows }
                return counts[table] == nil
            }
        }
        for (table, tally) in new {
            logger.warning(
                "Rows are accepted, but not received: the tokens of the connected users do not name their tenant.",
                metadata: [
                    "table": "\(table)", "tenant": "\(tally.tenant)",
                    "remedy": "\(Self.remedy(for: tally.tenant, of: table))",
                ])
        }
    }

    private static func remedy(for tenant: ID<Tenant>, of table: String) -> String {
        tenant == "default"
            ? "the tokens name a tenant: give the table a tenant: {column: …} that contains it"
            : """
            the tokens name no tenant: set \(Settings.variable(\.$claimTenant)) to the claim with it, or give the table \
            tenant: {constant: default}
            """
    }
}
