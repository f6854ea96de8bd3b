import BellhopClient
import Database
import TestSupport
import Testing
import Values

@testable import Service

/// R-VIS-NFR-3.2, R-VIS-NFR-4.3: the deletion of removed notifications, on a real database.
@Suite(.timed) struct NotificationsForgettingTests {
    /// The time before which the statements act.
    static let due = Timestamp(microseconds: 1000)

    /// Runs a statement over a current, a recently removed and a long removed notification. Returns the remaining
    /// ones as `id:title`.
    static func remains(after sql: SQL) throws -> [String] {
        let store = try DatabaseStore.open(DatabaseURL("sqlite::memory:"))
        defer { store.close() }
        try store.migrate(NotificationsFeature.migrations)
        return try store.writeAndWait { db in
            for (id, tenant, removedAt) in [
                ("intact", "t", nil), ("late", "t", 1000), ("old", "t", 999), ("elsewhere", "other", 999),
            ] as [(String, String, Int?)] {
                try db.run(
                    """
                    INSERT INTO notifications (tenant, user_id, id, event_id, type, category, priority, title, message,
                        lock_screen, data, sounds, vibrates, is_ranked, created_at, removed_at)
                    VALUES (\(tenant), 'u1', \(id), \(id), 'VISIT', 'visit', 1, 'T', 'M', 'L', '{"k":1}', 0, 0, 1, 1,
                        \(removedAt))
                    """)
            }
            try db.run(sql)
            return try db.rows("SELECT id, title, message, data FROM notifications ORDER BY id") { row in
                try (0..<4).map { try row.text($0) }.joined(separator: ":")
            }
        }
    }

    /// Inserts removed notifications of a user.
    static func removals(_ count: Int, of user: String, tenant: String) -> SQL {
        """
        WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < \(count))
        INSERT INTO notifications (tenant, user_id, id, event_id, type, category, priority, title, message,
            lock_screen, data, sounds, vibrates, is_ranked, created_at, removed_at)
        SELECT \(tenant), \(user), \(user) || '-' || n, 'e' || n, 'VISIT', 'visit', 1, '', '', '', '{}', 0, 0, 1, 1, n
        FROM numbers
        """
    }

    /// A full inbox leaves a row for each evicted notification. The last 1,000 rows of a user are kept.
    @Test func removedRowsOfAUser_areBounded() throws {
        let store = try DatabaseStore.open(DatabaseURL("sqlite::memory:"))
        defer { store.close() }
        try store.migrate(NotificationsFeature.migrations)
        let kept = NotificationsFeature.removedKeptMax
        let left = try store.writeAndWait { db in
            for (user, count) in [("u1", kept + 300), ("u2", kept + 1)] {
                try db.run(Self.removals(count, of: user, tenant: "t"))
            }
            try db.run("UPDATE notifications SET removed_at = NULL WHERE user_id = 'u1' AND event_id IN ('e1', 'e2')")
            try db.run(NotificationsFeature.trimming(of: "u1", tenant: "t"))
            return try db.rows(
                """
                SELECT user_id, count(*), count(removed_at), coalesce(min(removed_at), 0) FROM notifications
                GROUP BY user_id ORDER BY user_id
                """
            ) { row in [try row.text(0)] + (try (1...3).map { "\(try row.integer($0))" }) }
        }
        #expect(left == [["u1", "\(kept + 2)", "\(kept)", "301"], ["u2", "\(kept + 1)", "\(kept + 1)", "1"]])
    }

    /// Trims are rare enough to be cheap, and frequent enough to bound the stored rows.
    @Test func trimming_comesAfterOneRemovalOfManyOnAverage() {
        let due = (0..<6400).count { NotificationsFeature.isTrimDue(after: ID("n\($0)")) }
        #expect((50...150).contains(due), "\(due)")
    }

    @Test func fullInbox_prunesOldRemovals() async throws {
        let service = try TestService.start(["notificationsKept": "1"])
        let backend = service.client(as: .service())
        let kept = NotificationsFeature.removedKeptMax
        let runner = service.app.runner
        try await service.app.store.write { db in
            try runner.write(as: .system(tenant: "default"), in: db) { _ in
                _ = try db.run(Self.removals(kept, of: "ada", tenant: "default"))
            }
        }
        // Ids are random, so the number of removals before a trim differs. A rule that never trims ends this loop.
        var published = 0
        var isTrimmed = false
        while !isTrimmed && published < 40 * Int(NotificationsFeature.removalsPerTrim) {
            let numbers = published..<(published + 50)
            let answers = try await concurrently(numbers) { number in
                try await status(
                    of: await backend.postEvent(.init(id: "new\(number)", type: .visitCreated, userId: "ada")))
            }
            #expect(answers.allSatisfy { $0 == 201 })
            published = numbers.upperBound
            let rows = try service.app.store.read { db in
                try db.integer(
                    "SELECT count(*) FROM \(NotificationsFeature.notifications, unscoped: .bookkeeping("test"))")
            }
            isTrimmed = try #require(rows) < kept + published
        }
        #expect(isTrimmed)
        try service.expectExactCounts()
    }

    @Test func textsOfRemovedNotifications_areErased() throws {
        let remains = try Self.remains(after: NotificationsFeature.erasure(tenant: "t", before: Self.due))
        #expect(remains == [#"elsewhere:T:M:{"k":1}"#, #"intact:T:M:{"k":1}"#, #"late:T:M:{"k":1}"#, "old:::{}"])
    }

    @Test func eventIdsOfRemovedNotifications_arePruned() throws {
        let remains = try Self.remains(after: NotificationsFeature.pruning(tenant: "t", before: Self.due))
        #expect(remains == [#"elsewhere:T:M:{"k":1}"#, #"intact:T:M:{"k":1}"#, #"late:T:M:{"k":1}"#])
    }
}
