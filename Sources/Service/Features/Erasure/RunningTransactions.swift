import Database

/// Transactions of the service on PostgreSQL that were running at a moment. They may not know of a round that began
/// shortly before, and write what its last pass would not find.
struct RunningTransactions {
    private let ids: [String]

    private static let prefix = "running"

    /// Looks for the transactions that run now, on all replicas, except this one.
    init(in db: DatabaseConnection) throws {
        ids = try db.rows(
            """
            SELECT l.virtualtransaction FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
            WHERE l.locktype = 'virtualxid' AND l.pid <> pg_backend_pid() AND a.datname = current_database()
                AND a.usename = current_user
            """
        ) { try $0.text(0) }
    }

    /// Reads the stored form. Returns nil for another text.
    init?(_ text: String) {
        let words = text.split(separator: " ").map(String.init)
        guard words.first == Self.prefix else { return nil }
        ids = Array(words.dropFirst())
    }

    var text: String { ([Self.prefix] + ids).joined(separator: " ") }

    func haveEnded(in db: DatabaseConnection) throws -> Bool {
        guard !ids.isEmpty else { return true }
        return try !db.exists(
            "SELECT 1 FROM pg_locks WHERE locktype = 'virtualxid' AND virtualtransaction IN \(values: ids) LIMIT 1")
    }
}
