import Database
import Domain
import Foundation
import PostgresServer
import Rows
import Testing
import Values

@testable import Service

/// Holds each index of DJ mode to its purpose, and the migration to what was there before it.
@Suite struct DJPlanTests {
    private static let scope = Scope(tenant: "t", keys: ["user:u1", "everyone"])

    private static func plan(_ sql: SQL) throws -> String {
        let store = try Store.open(DatabaseURL("sqlite::memory:"))
        defer { store.close() }
        try store.migrate(ShopsFeature.migrations + DJFeature.migrations)
        return try store.read { try $0.queryPlan(sql) }.joined(separator: "\n")
    }

    /// A vote's position is counted on the index of the order, up to the track's own place.
    @Test func position_isCountedOnTheIndexOfTheOrder() throws {
        let item = DJQueueItem(
            id: ID("i"), track: DJTrack(trackId: ID("t"), trackName: "n", artistName: "a", albumArt: nil),
            addedBy: ID("u"), addedAt: Timestamp(microseconds: 1), tally: DJTally())
        let plan = try Self.plan(
            DJFeature.placesBefore(item, in: DJSession(shopId: ID("s1")), visibleTo: Self.scope))
        #expect(plan.contains("dj_tracks_order (tenant=? AND shop_id=? AND (rank_score,added_at,track_id)<"), "\(plan)")
    }

    @Test func whatComesRound_looksAtWhatIsDue() throws {
        let now = Timestamp(microseconds: 1)
        for (sql, index) in [
            (DJFeature.anyPendingVotes, "dj_tracks_untold"), (DJFeature.anyRemoved, "dj_tracks_removed"),
            (DJFeature.anyPast(at: now), "presences_expiry"), (DJFeature.anyPast(at: now), "presence_attempts_age"),
            (DJFeature.pruningVotes(tenant: "t"), "dj_tracks_removed"),
            (DJFeature.pruningVotes(tenant: "t"), "dj_votes_of_item (tenant=? AND item_id=?)"),
        ] {
            let plan = try Self.plan(sql)
            #expect(plan.contains(index), "\(plan)")
        }
    }

    /// A database from before DJ mode: its shops are known, and who is being served is present.
    @Test func migration_knowsTheShopsThatWereThere() throws {
        let tables = Catalog.tables.filter { table in !DJFeature.feature.tables.contains { $0.name == table.name } }
        let before = Catalog.migrations.filter { !DJFeature.migrations.contains($0) }
        let database = PostgresServer.isTheStore ? try PostgresServer.shared().makeDatabase() : nil
        var options = StoreOptions()
        if database != nil { options.access = .owner }
        let url = try database.map { try PostgresServer.shared().url("bellhop_owner", $0) } ?? "sqlite::memory:"
        let store = try Store.open(DatabaseURL(url), options: options, tables: Catalog.tables)
        defer {
            store.close()
            if let database { try? PostgresServer.shared().drop(database) }
        }
        try store.migrate(before, tables: tables)
        let writing = Unscoped.audit("a test writes")
        try store.writeAndWait { db in
            try db.run(
                """
                INSERT INTO \(ShopsFeature.shops, unscoped: writing)
                    (tenant, shop_id, name, time_zone, created_at, updated_at)
                VALUES ('t', 's1', 'x', 'UTC', 1, 1), ('t', 's2', 'y', 'UTC', 1, 1)
                """)
            for (id, user, status) in [
                ("b1", "ada", "in-progress"), ("b2", "ben", "confirmed"), ("b3", nil, "in-progress"),
            ] as [(String, String?, String)] {
                try db.run(
                    """
                    INSERT INTO \(ShopsFeature.bookings, unscoped: writing)
                        (tenant, id, user_id, shop_id, service, scheduled_start, ends_at, duration_minutes, tier,
                        status, version, source, started_at, created_at, updated_at)
                    VALUES ('t', \(id), \(user), 's1', 'cut', 5, 9, 30, 'standard', \(status), 1, 'online', 5, 1, 1)
                    """)
            }
        }
        try store.migrate(Catalog.migrations, tables: Catalog.tables)
        let looking = Unscoped.audit("a test looks")
        let found = try store.read { db in
            try db.rows("SELECT shop_id FROM \(DJFeature.shops, unscoped: looking) ORDER BY shop_id") { try $0.text(0) }
                + db.rows("SELECT user_id FROM \(DJFeature.presences, unscoped: looking)") { try $0.text(0) }
        }
        #expect(found == ["s1", "s2", "ada"])
    }
}
