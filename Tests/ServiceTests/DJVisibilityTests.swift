import Database
import Domain
import Foundation
import PostgresServer
import Rows
import TestSupport
import Testing
import Values
import Visibility

@testable import Service

/// The rule of visibility for the tables of DJ mode as they are: Swift, SQLite and PostgreSQL decide the same on each row.
@Suite struct DJVisibilityTests {
    /// A row with the columns that its audience is made of.
    private struct Row: Sendable {
        let tenant: String
        let shop: String
        let user: String
        let id: String

        func column(_ name: String) -> String? {
            switch name {
            case "shop_id": shop
            case "user_id", "added_by": user
            default: nil
            }
        }
    }

    /// A table, how a row of it is made, and the column by which it is found again.
    private struct Probe: Sendable {
        let table: Table
        let identifier: String
        let insertion: @Sendable (Row) -> SQL
    }

    private static let writing = Unscoped.audit("a test writes")

    private static let subjects = [
        Probe(table: DJFeature.shops, identifier: "started_at") { row in
            """
            INSERT INTO \(DJFeature.shops, unscoped: writing) (tenant, shop_id, asks_code, is_active, started_at,
                version, told_second, told_count)
            VALUES (\(row.tenant), \(row.shop), 0, 0, \(Int(row.id) ?? 0), 0, 0, 0)
            ON CONFLICT (tenant, shop_id) DO UPDATE SET started_at = excluded.started_at
            """
        },
        Probe(table: DJFeature.tracks, identifier: "added_at") { row in
            """
            INSERT INTO \(DJFeature.tracks, unscoped: writing) (tenant, item_id, shop_id, track_id, track_name,
                artist_name, added_by, added_at, upvotes, downvotes, rank_score, is_untold)
            VALUES (\(row.tenant), \(row.id), \(row.shop), \(row.id), 'x', 'x', \(row.user), \(Int(row.id) ?? 0), 0, 0,
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
            VALUES (\(row.tenant), \(row.user), \(row.id), \(row.shop), 'claim', \(Int(row.id) ?? 0), 0)
            """
        },
    ]

    /// Values that try to be taken for something else.
    private static let values = [
        "s1", "s1", "u1", "a:b", "é", "e\u{301}", "%3A", "", "staff", "{s1}", "'", "\\", "s1:staff",
    ]

    private static func pick(_ random: inout SeededGenerator) -> String { values.randomElement(using: &random) ?? "" }

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

    @Test func tablesOfDJMode_showTheSameRows_onBothEngines_andInSwift() throws {
        let seed = UInt64.random(in: 1...UInt64.max)
        print("tablesOfDJMode_showTheSameRows: seed \(seed)")
        var random = SeededGenerator(seed: seed)
        let sqlite = try Store.open(DatabaseURL("sqlite::memory:"))
        defer { sqlite.close() }
        try sqlite.migrate(Catalog.migrations)
        let database = try TestDatabase(on: PostgresServer.shared())
        defer { database.drop() }
        let postgres = try Store.open(DatabaseURL(database.url), tables: Catalog.tables)
        defer { postgres.close() }
        var (cases, visible) = (0, 0)
        for subject in Self.subjects {
            let rows = (1...60).map { number in
                Row(
                    tenant: ["t1", "t1", "t2", "e\u{301}"].randomElement(using: &random) ?? "t1",
                    shop: Self.pick(&random), user: Self.pick(&random), id: "\(number)")
            }
            for store in [sqlite, postgres] {
                try store.writeAndWait { db in for row in rows { try db.run(subject.insertion(row)) } }
            }
            // Of rows with one key the last has stayed.
            let identifier = SQL(unchecked: subject.identifier)
            let present = try sqlite.read { db in
                Set(
                    try db.rows("SELECT \(identifier) FROM \(subject.table, unscoped: Self.writing)") {
                        try $0.integer(0)
                    })
            }
            for _ in 0..<60 {
                let scope = Self.scope(&random)
                let bare = SQL(unchecked: "SELECT \(subject.identifier) FROM \(subject.table.name)")
                let reading: SQL = "SELECT \(identifier) FROM \(subject.table, visibleTo: scope)"
                let change: SQL = """
                    UPDATE \(subject.table, writableBy: scope) SET tenant = tenant RETURNING \(identifier)
                    """
                func found(_ store: Store, _ sql: SQL) throws -> Set<Int> {
                    try store.writeAndWait { db in
                        try db.enter(scope)
                        return Set(try db.rows(sql) { try $0.integer(0) })
                    }
                }
                let answers = [
                    ("SQLite", try found(sqlite, reading)), ("PostgreSQL", try found(postgres, reading)),
                    ("the policy", try found(postgres, bare)),
                ]
                let changes = [("SQLite", try found(sqlite, change)), ("PostgreSQL", try found(postgres, change))]
                for row in rows {
                    guard let id = Int(row.id), present.contains(id) else { continue }
                    let sees = scope.sees(
                        tenant: row.tenant, audience: subject.table.read.audience(of: row.column))
                    let writes = scope.sees(
                        tenant: row.tenant, audience: subject.table.write.audience(of: row.column))
                    for (who, ids) in answers {
                        #expect(
                            ids.contains(id) == sees, "seed \(seed): \(who) \(subject.table.name) \(scope.keys) \(row)")
                    }
                    for (who, ids) in changes {
                        #expect(
                            ids.contains(id) == writes,
                            "seed \(seed): \(who) changes \(subject.table.name) \(scope.keys) \(row)")
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

    /// Decision 10: the databases' order is the domain's, whatever the ids hold.
    @Test func order_isTheSame_onBothEngines_andInSwift() throws {
        let seed = UInt64.random(in: 1...UInt64.max)
        print("order_isTheSame: seed \(seed)")
        var random = SeededGenerator(seed: seed)
        let sqlite = try Store.open(DatabaseURL("sqlite::memory:"))
        defer { sqlite.close() }
        try sqlite.migrate(Catalog.migrations)
        let database = try TestDatabase(on: PostgresServer.shared())
        defer { database.drop() }
        let postgres = try Store.open(DatabaseURL(database.url), tables: Catalog.tables)
        defer { postgres.close() }
        let ids = [
            "a", "B", "aa", "a b", "é", "e\u{301}", "z", "🦊", "\u{FFFD}", "~", "0", "00", "ß", "SS", "ſ", "%", "'",
        ]
        for round in 0..<20 {
            let items = ids.map { id in
                DJQueueItem(
                    id: ID("\(round)-\(id)"),
                    track: DJTrack(trackId: ID(id), trackName: "x", artistName: "x", albumArt: nil), addedBy: ID("u"),
                    addedAt: Timestamp(microseconds: Int64.random(in: 0...2, using: &random)),
                    tally: DJTally(
                        upvotes: Int.random(in: 0...2, using: &random),
                        downvotes: Int.random(in: 0...2, using: &random)))
            }
            let current = Bool.random(using: &random) ? items.randomElement(using: &random)?.id : nil
            let queue = DJQueue(DJSession(shopId: ID("s\(round)"), currentItem: current), items: items)
            let scope = Scope(tenant: "t", keys: ["everyone"])
            for store in [sqlite, postgres] {
                try store.writeAndWait { db in
                    for item in items {
                        try db.run(
                            """
                            INSERT INTO \(DJFeature.tracks, unscoped: Self.writing) (tenant, item_id, shop_id, track_id,
                                track_name, artist_name, added_by, added_at, upvotes, downvotes, rank_score, is_untold)
                            VALUES ('t', \(item.id.text), \("s\(round)"), \(item.track.trackId.text), 'x', 'x', 'u',
                                \(item.addedAt.microseconds), \(item.tally.upvotes), \(item.tally.downvotes),
                                \(-item.tally.score), 0)
                            """)
                    }
                }
                try store.read { db in
                    try db.enter(scope)
                    for item in items where item.id != current {
                        let sql = DJFeature.placesBefore(item, in: queue.session, visibleTo: scope)
                        let before = try db.integer(sql) ?? -1
                        let place = before + (current == nil ? 1 : 2)
                        #expect(place == queue.position(of: item.id), "seed \(seed): \(item.track.trackId)")
                    }
                }
            }
        }
    }
}
