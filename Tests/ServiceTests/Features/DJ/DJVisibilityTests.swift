import Database
import Domain
import PostgresServer
import TestSupport
import Testing
import Values
import Visibility

@testable import Service

/// The visibility rule for the actual tables of DJ mode: Swift, SQLite and PostgreSQL decide the same for each row.
@Suite(.timed) final class DJVisibilityTests {
    private let sqlite: DatabaseStore
    private let postgres: DatabaseStore
    private let database: TestDatabase

    init() throws {
        sqlite = try DatabaseStore.open(DatabaseURL("sqlite::memory:"))
        try sqlite.migrate(Catalog.migrations)
        database = try TestDatabase(on: PostgresServer.shared())
        postgres = try DatabaseStore.open(DatabaseURL(database.url), tables: Catalog.tables)
    }

    deinit {
        sqlite.close()
        postgres.close()
        database.drop()
    }

    /// A row with the columns that determine its audience.
    private struct Row: Sendable {
        let tenant: ID<Tenant>
        let shop: String
        let user: String
        let number: Int

        var id: String { "\(number)" }

        func column(_ name: String) -> String? {
            switch name {
            case "shop_id": shop
            case "user_id", "added_by": user
            default: nil
            }
        }
    }

    /// A table, a way to insert a row into it, and the column that identifies the row.
    private struct Probe: Sendable {
        let table: Table
        let identifier: String
        let insertion: @Sendable (Row) -> SQL
    }

    private static let writing = Unscoped.audit("a test writes")

    private static let subjects = [
        Probe(table: DJFeature.shops, identifier: "started_at") { row in
            """
            INSERT INTO \(DJFeature.shops, unscoped: writing) (tenant, shop_id, requires_code, is_active, started_at,
                version, published_second, published_count)
            VALUES (\(row.tenant), \(row.shop), 0, 0, \(row.number), 0, 0, 0)
            ON CONFLICT (tenant, shop_id) DO UPDATE SET started_at = excluded.started_at
            """
        },
        Probe(table: DJFeature.tracks, identifier: "added_at") { row in
            """
            INSERT INTO \(DJFeature.tracks, unscoped: writing) (tenant, item_id, shop_id, track_id, track_name,
                artist_name, added_by, added_at, upvotes, downvotes, rank_score, is_unpublished)
            VALUES (\(row.tenant), \(row.id), \(row.shop), \(row.id), 'x', 'x', \(row.user), \(row.number), 0, 0,
                0, 0)
            """
        },
        Probe(table: DJFeature.votes, identifier: "CAST(item_id AS INTEGER)") { row in
            """
            INSERT INTO \(DJFeature.votes, unscoped: writing) (tenant, user_id, shop_id, item_id, side)
            VALUES (\(row.tenant), \(row.user), \(row.shop), \(row.id), 1)
            """
        },
        Probe(table: DJFeature.presences, identifier: "since") { row in
            """
            INSERT INTO \(DJFeature.presences, unscoped: writing) (tenant, user_id, booking_id, shop_id, source, since,
                expires_at)
            VALUES (\(row.tenant), \(row.user), \(row.id), \(row.shop), 'claim', \(row.number), 0)
            """
        },
    ]

    /// Values that could be mistaken for others.
    private static let values = [
        "s1", "s1", "u1", "a:b", "é", "e\u{301}", "%3A", "", "staff", "{s1}", "'", "\\", "s1:staff",
    ]

    private static func pick(_ random: inout SeededGenerator) -> String { values.randomElement(using: &random) ?? "" }

    /// Returns a random scope. Every second one has a key of a row, so that some rows of each table are visible.
    private static func scope(seeing subject: Probe, _ rows: [Row], _ random: inout SeededGenerator) -> Scope {
        let any = scope(&random)
        guard Bool.random(using: &random), let row = rows.randomElement(using: &random) else { return any }
        let audience = subject.table.read.audience(of: row.column)
        return Scope(
            tenant: row.tenant, keys: any.keys.union(audience.randomElement(using: &random).map { [$0] } ?? []))
    }

    private static func scope(_ random: inout SeededGenerator) -> Scope {
        let keys = (0..<Int.random(in: 0...4, using: &random)).map { _ -> String in
            switch Int.random(in: 0..<7, using: &random) {
            case 0, 1: AudienceKey.make("user", pick(&random))
            case 2, 3: AudienceKey.make("shop", pick(&random), "staff")
            case 4: ["tenant:admin", "tenant:service", "everyone"].randomElement(using: &random) ?? "everyone"
            case 5: AudienceKey.make("shop", pick(&random))
            default: pick(&random)
            }
        }
        return Scope(tenant: ["t1", "t1", "t2", "é"].randomElement(using: &random) ?? "t1", keys: Set(keys))
    }

    /// Inserts rows of a table into both databases. Returns the stored ones: of rows with the same key, the last one
    /// stays.
    private func insertRows(of subject: Probe, _ random: inout SeededGenerator) throws -> [Row] {
        let rows = (1...60).map { number in
            Row(
                tenant: ["t1", "t1", "t2", "e\u{301}"].randomElement(using: &random) ?? "t1",
                shop: Self.pick(&random), user: Self.pick(&random), number: number)
        }
        for store in [sqlite, postgres] {
            try store.writeAndWait { db in for row in rows { try db.run(subject.insertion(row)) } }
        }
        let all: SQL = "SELECT \(SQL(unchecked: subject.identifier)) FROM \(subject.table, unscoped: Self.writing)"
        let present = try sqlite.read { db in Set(try db.rows(all) { try $0.integer(0) }) }
        return rows.filter { present.contains($0.number) }
    }

    /// Returns the numbers of the rows that a statement selects for a scope.
    private func numbers(_ sql: SQL, in store: DatabaseStore, as scope: Scope) throws -> Set<Int> {
        try store.writeAndWait { db in
            try db.enter(scope)
            return Set(try db.rows(sql) { try $0.integer(0) })
        }
    }

    @Test func tablesOfDJMode_showTheSameRows_onBothEngines_andInSwift() throws {
        let seed = randomSeed()
        var random = SeededGenerator(seed: seed)
        var (cases, visible) = (0, 0)
        for subject in Self.subjects {
            let (table, identifier) = (subject.table, SQL(unchecked: subject.identifier))
            let rows = try insertRows(of: subject, &random)
            for _ in 0..<60 {
                let scope = Self.scope(seeing: subject, rows, &random)
                let reading: SQL = "SELECT \(identifier) FROM \(table, visibleTo: scope)"
                let bare = SQL(unchecked: "SELECT \(subject.identifier) FROM \(table.name)")
                let change: SQL = "UPDATE \(table, writableBy: scope) SET tenant = tenant RETURNING \(identifier)"
                let readable = [
                    ("SQLite", try numbers(reading, in: sqlite, as: scope)),
                    ("PostgreSQL", try numbers(reading, in: postgres, as: scope)),
                    ("the policy", try numbers(bare, in: postgres, as: scope)),
                ]
                let writable = [
                    ("SQLite", try numbers(change, in: sqlite, as: scope)),
                    ("PostgreSQL", try numbers(change, in: postgres, as: scope)),
                ]
                for row in rows {
                    let sees = scope.sees(tenant: row.tenant, audience: table.read.audience(of: row.column))
                    let writes = scope.sees(tenant: row.tenant, audience: table.write.audience(of: row.column))
                    let what = "\(table.name) \(scope.keys) \(row)"
                    for (who, found) in readable {
                        #expect(found.contains(row.number) == sees, "seed \(seed): \(who) \(what)")
                    }
                    for (who, found) in writable {
                        #expect(found.contains(row.number) == writes, "seed \(seed): \(who) changes \(what)")
                    }
                    cases += 2
                    visible += (sees ? 1 : 0) + (writes ? 1 : 0)
                }
            }
        }
        #expect(cases > 15_000, "\(visible) of \(cases)")
        #expect(visible > cases / 50, "\(visible) of \(cases)")
        #expect(visible < cases / 2, "\(visible) of \(cases)")
    }

    private static func randomItem(_ id: String, of round: Int, _ random: inout SeededGenerator) -> DJQueueItem {
        DJQueueItem(
            id: ID("\(round)-\(id)"),
            track: DJTrack(trackId: ID(id), trackName: "x", artistName: "x", albumArt: nil), addedBy: ID("u"),
            addedAt: Timestamp(microseconds: Int64.random(in: 0...2, using: &random)),
            tally: DJTally(
                upvotes: Int.random(in: 0...2, using: &random), downvotes: Int.random(in: 0...2, using: &random)))
    }

    private static func insert(_ items: [DJQueueItem], shop: String, into db: DatabaseConnection) throws {
        for item in items {
            try db.run(
                """
                INSERT INTO \(DJFeature.tracks, unscoped: writing) (tenant, item_id, shop_id, track_id,
                    track_name, artist_name, added_by, added_at, upvotes, downvotes, rank_score, is_unpublished)
                VALUES ('t', \(item.id.text), \(shop), \(item.track.trackId.text), 'x', 'x', 'u',
                    \(item.addedAt.microseconds), \(item.tally.upvotes), \(item.tally.downvotes),
                    \(-item.tally.score), 0)
                """)
        }
    }

    /// the databases order tracks as the domain does, whatever characters the ids contain.
    @Test func order_isTheSame_onBothEngines_andInSwift() throws {
        let seed = randomSeed()
        var random = SeededGenerator(seed: seed)
        let scope = Scope(tenant: "t", keys: ["everyone"])
        let ids = [
            "a", "B", "aa", "a b", "é", "e\u{301}", "z", "🦊", "\u{FFFD}", "~", "0", "00", "ß", "SS", "ſ", "%", "'",
        ]
        for round in 0..<20 {
            let items = ids.map { Self.randomItem($0, of: round, &random) }
            let current = Bool.random(using: &random) ? items.randomElement(using: &random)?.id : nil
            let queue = DJQueue(DJSession(shopId: ID("s\(round)"), currentItem: current), items: items)
            for store in [sqlite, postgres] {
                try store.writeAndWait { try Self.insert(items, shop: "s\(round)", into: $0) }
                try store.read { db in
                    try db.enter(scope)
                    for item in items where item.id != current {
                        let before =
                            try db.integer(DJFeature.placesBefore(item, in: queue.session, visibleTo: scope)) ?? -1
                        let place = before + (current == nil ? 1 : 2)
                        #expect(place == queue.position(of: item.id), "seed \(seed): \(item.track.trackId)")
                    }
                }
            }
        }
    }
}
