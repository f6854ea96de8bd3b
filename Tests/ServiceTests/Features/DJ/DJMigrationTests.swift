import Database
import Foundation
import PostgresServer
import Rows
import TestSupport
import Testing

@testable import Service

/// The migration of DJ mode on a database that predates it.
@Suite(.timed) struct DJMigrationTests {
    private static func insertShopsAndBookings(into db: DatabaseConnection) throws {
        let writing = Unscoped.audit("a test writes")
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

    /// The migration knows the existing shops, and marks users with a booking in progress as present.
    @Test func migration_keepsExistingShops() throws {
        let tables = Catalog.tables.filter { table in !DJFeature.feature.tables.contains { $0.name == table.name } }
        let before = Catalog.migrations.filter { !DJFeature.migrations.contains($0) }
        let database = PostgresServer.isTheStore ? try PostgresServer.shared().makeDatabase() : nil
        var options = StoreOptions()
        if database != nil { options.access = .owner }
        let url = try database.map { try PostgresServer.shared().url("bellhop_owner", $0) } ?? "sqlite::memory:"
        let store = try DatabaseStore.open(DatabaseURL(url), options: options, tables: Catalog.tables)
        defer {
            store.close()
            if let database { try? PostgresServer.shared().drop(database) }
        }
        try store.migrate(before, tables: tables)
        try store.writeAndWait { try Self.insertShopsAndBookings(into: $0) }
        try store.migrate(Catalog.migrations, tables: Catalog.tables)
        let looking = Unscoped.audit("a test reads rows")
        let found = try store.read { db in
            try db.rows("SELECT shop_id FROM \(DJFeature.shops, unscoped: looking) ORDER BY shop_id") { try $0.text(0) }
                + db.rows("SELECT user_id FROM \(DJFeature.presences, unscoped: looking)") { try $0.text(0) }
        }
        #expect(found == ["s1", "s2", "ada"])
    }
}
