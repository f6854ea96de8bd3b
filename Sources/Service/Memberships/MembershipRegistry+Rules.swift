import Cryptography
import Database
import Logging
import Rows
import Values

/// The rules that gave the stored facts. A file may change them while facts of the earlier rule are stored.
extension MembershipRegistry {
    /// Returns the digests of the rules of all memberships. They have 53 bits, which JSON can carry.
    static func rules(of catalog: TableCatalog) -> [String: Int64] {
        catalog.rules.mapValues { text in
            SHA256.hash(text.utf8).prefix(7).reduce(0) { $0 << 8 | Int64($1) } >> 3
        }
    }

    /// Makes the facts of memberships that the file does not declare outdated, on all replicas. From now on their tables
    /// change without them, so a later file that declares them again must not find them.
    func retireUndeclared(_ runner: TransactionRunner) throws {
        let stored = try runner.store.read(isSingle: true) { db in
            try db.rows(
                """
                SELECT DISTINCT membership FROM \(Self.allFacts) WHERE rule IS NOT NULL
                """
            ) { try $0.text(0) }
        }
        let retired = Set(stored).subtracting(catalog.membershipNames)
        guard !retired.isEmpty else { return }
        try runner.store.writeAndWait { db in
            try runner.write(as: .system(tenant: "default"), in: db) { tx in
                try db.lock(["bellhop:memberships"])
                let known = try db.integer("SELECT max(version) FROM \(Self.allFacts)") ?? 0
                let version = Int64(known) + 1
                for name in retired {
                    try db.run(
                        """
                        UPDATE \(Self.allFacts) SET rule = NULL, version = \(version)
                        WHERE membership = \(name) AND rule IS NOT NULL
                        """)
                }
                let change = MembershipChange(version: version, retired: retired)
                tx.publish(Self.event, audience: [], data: JSONWriter.bytes(change))
            }
        }
    }

    /// Logs each membership with outdated facts, and registers their number as a metric.
    ///
    /// - Parameter isRead: Whether the service reads the rows again by itself, from the app's log.
    func reportOutdated(in metrics: MetricsRegistry, _ logger: Logger, isRead: Bool) {
        metrics.register { [self] text in
            text.family(
                "bellhop_membership_rows_outdated", .gauge,
                "Rows that give no key because the rule of their membership has changed since they arrived.",
                by: "membership", samples: known.memberships.outdated.map { ($0.membership, $0.rows) })
        }
        for found in known.memberships.outdated {
            logger.warning(
                "The rule of a membership has changed. Its stored rows give no keys until they arrive again.",
                metadata: [
                    "membership": "\(found.membership)", "table": "\(found.schema).\(found.table)",
                    "rows": "\(found.rows)",
                    "remedy": isRead ? "the service reads the table again" : "send all rows of the table again",
                ])
        }
    }
}
