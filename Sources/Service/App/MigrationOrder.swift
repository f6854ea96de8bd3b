import Database

/// The order in which a database applies migrations. Migrations are declared beside their tables; the order of all of
/// them is here.
struct MigrationOrder {
    /// The ids of all migrations. A new one goes to the end, because every older database has applied the others.
    static let all = MigrationOrder(ids: [
        "0001_tenants", "0001_secrets", "0001_events", "0001_badges", "0001_idempotency",
        "0001_notifications", "0002_notifications", "0003_notifications", "0004_notifications",
        "0001_preferences", "0001_shops", "0001_dj", "0001_challenges", "0002_challenges", "0001_streams",
        "0001_changes", "0002_source_positions", "0003_source_positions",
        "0001_conversations", "0001_user_requests", "0002_user_requests", "0001_posts", "0001_webhooks",
        "0002_event_counter", "0001_rate_counts", "0001_memberships",
        "0003_event_shared", "0004_event_records", "0005_event_epochs", "0006_event_traces", "0001_push",
        "0002_webhooks", "0006_notifications", "0001_audit", "0002_shops", "0001_erasures", "0003_webhooks",
        "0002_push", "0003_queue_members", "0001_clock_lines", "0002_audit",
        "0002_membership_rules", "0001_backends", "0002_erasures_in_rounds", "0001_device_addresses",
        "0001_device_routes", "0001_outbox",
    ])

    let ids: [String]

    /// Returns the declared migrations in order. Each must be listed once and declared once.
    func sorted(_ declared: [Migration]) -> [Migration] {
        let mistakes = mistakes(in: declared)
        precondition(mistakes.isEmpty, "the order of the migrations is incomplete: \(mistakes)")
        return ids.flatMap { id in declared.filter { $0.id == id } }
    }

    /// Returns one line for each id that is not listed once, or not declared once.
    func mistakes(in declared: [Migration]) -> [String] {
        let listed = Dictionary(grouping: ids, by: \.self).mapValues(\.count)
        let found = Dictionary(grouping: declared.map(\.id), by: \.self).mapValues(\.count)
        return Set(listed.keys).union(found.keys).sorted().compactMap { id in
            let (listed, found) = (listed[id] ?? 0, found[id] ?? 0)
            return listed == 1 && found == 1 ? nil : "\(id) is listed \(listed) times and declared \(found) times"
        }
    }
}
