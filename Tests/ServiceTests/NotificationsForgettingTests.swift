import Database
import Rows
import TestSupport
import Testing
import Values

@testable import Service

/// VIS NFR-3.2, NFR-4.3: what becomes of removed notifications, on a real database.
@Suite(.timed) struct NotificationsForgettingTests {
    /// The moment before which the statements act.
    static let due = Timestamp(microseconds: 1000)

    /// What is left after a statement ran over one present, one lately removed and one long removed notification, as
    /// `id:title`.
    static func remains(after sql: SQL) throws -> [String] {
        let store = try Store.open(DatabaseURL("sqlite::memory:"))
        defer { store.close() }
        try store.migrate(NotificationsFeature.migrations)
        return try store.writeAndWait { db in
            for (id, tenant, removedAt) in [
                ("intact", "t", nil), ("late", "t", 1000), ("old", "t", 999), ("elsewhere", "other", 999),
            ] as [(String, String, Int?)] {
                try db.run(
                    """
                    INSERT INTO notifications (tenant, user_id, id, event_id, type, category, priority, title, message,
                        lock_screen, data, sounds, vibrates, created_at, removed_at)
                    VALUES (\(tenant), 'u1', \(id), \(id), 'VISIT', 'visit', 1, 'T', 'M', 'L', '{"k":1}', 0, 0, 1,
                        \(removedAt))
                    """)
            }
            try db.run(sql)
            return try db.rows("SELECT id, title, message, data FROM notifications ORDER BY id") { row in
                try (0..<4).map { try row.text($0) }.joined(separator: ":")
            }
        }
    }

    @Test func textsOfLongRemoved_areErased() throws {
        let remains = try Self.remains(after: NotificationsFeature.erasure(tenant: "t", before: Self.due))
        #expect(remains == [#"elsewhere:T:M:{"k":1}"#, #"intact:T:M:{"k":1}"#, #"late:T:M:{"k":1}"#, "old:::{}"])
    }

    @Test func eventsOfLongRemoved_areForgotten() throws {
        let remains = try Self.remains(after: NotificationsFeature.pruning(tenant: "t", before: Self.due))
        #expect(remains == [#"elsewhere:T:M:{"k":1}"#, #"intact:T:M:{"k":1}"#, #"late:T:M:{"k":1}"#])
    }
}
