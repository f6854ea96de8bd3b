import Database
import Threads
import Values

/// The pauses of erasures, in which other replicas become aware of something.
///
/// They are measured by the uptime of this process. The time that dates rows may be set, or may differ between the
/// replicas that take turns, and a pause that ended early would leave traces of a person. A process that has not seen a
/// pause from its beginning waits for all of it.
final class ErasurePauses: Sendable {
    /// When each pause was seen first.
    private let seen = Locked([String: Duration]())
    /// Pauses that are remembered: many more than there are rounds at the same time.
    private static let seenMax = 1000

    /// Returns whether a pause has lasted long enough. The first call for a name begins it.
    func isOver(_ name: String, _ seconds: Int64, _ uptime: Duration) -> Bool {
        seen.withLock { seen in
            guard let first = seen[name] else {
                if seen.count >= Self.seenMax { seen = [:] }
                seen[name] = uptime
                return false
            }
            return uptime - first >= .seconds(seconds)
        }
    }
}

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
