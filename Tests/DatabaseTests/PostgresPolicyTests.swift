import PostgresServer
import TestSupport
import Testing
import Visibility

@testable import Database

/// The rule of visibility as PostgreSQL's row-level security, compared with its other two forms.
@Suite struct PostgresPolicyTests {
    /// One table of a round, with its rows.
    private struct Round {
        let table: Table
        let rows: [RandomRow]
    }

    /// 100,000 decisions about rows: Swift's `sees`, SQLite's predicate, PostgreSQL's policy under a statement without
    /// any predicate, and PostgreSQL's policy and the predicate together agree on each.
    @Test func theRule_isTheSame_inSwift_SQLite_andPostgreSQL() throws {
        let seed = UInt64.random(in: 1...UInt64.max)
        print("theRule_isTheSame_inSwift_SQLite_andPostgreSQL: seed \(seed)")
        var random = SeededGenerator(seed: seed)
        let rounds = (0..<25).map { index in
            Round(
                table: Table("t\(index)", read: .random(&random), write: .random(&random)),
                // No text of PostgreSQL holds U+0000; what holds one is refused before it is asked.
                rows: (0..<80).map { _ in RandomRow(&random) }.filter { !$0.holdsNull })
        }
        let definitions = rounds.map { round -> Migration.Step in
            """
            CREATE TABLE \(round.table.name) (
              id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, a TEXT, b TEXT, c TEXT) STRICT
            """
        }
        let migration = Migration("0001_rounds", sql: [.both(RandomSeat.definition)] + definitions)
        let stores = try Stores(migration, tables: [RandomSeat.table] + rounds.map(\.table))
        defer { stores.close() }
        let seats = (0..<120).map { _ in RandomSeat(&random) }.filter { !$0.row.holdsNull }
        for store in [stores.sqlite, stores.postgres] {
            try store.writeAndWait { db in for seat in seats { try seat.insert(in: db) } }
        }
        var cases = 0
        var visible = 0
        for round in rounds {
            try stores.insert(round.rows, into: round.table)
            for _ in 0..<28 {
                let scope = Scope.random(&random, rows: round.rows, table: round.table).withoutNulls
                let readable = try stores.readable(round.table, scope)
                let writable = try stores.writable(round.table, scope)
                let held = RandomSeat.keys(of: scope, from: seats)
                let enlarged = scope.adding(held)
                for store in [stores.sqlite, stores.postgres] {
                    let stored = try store.read { db in
                        try db.enter(scope)
                        return Set(try RandomSeat.membership.keys(of: scope, in: db))
                    }
                    #expect(stored == held, "seed \(seed) \(scope.keys)")
                }
                for (id, row) in round.rows.enumerated() {
                    let sees = enlarged.sees(tenant: row.tenant, audience: round.table.read.audience(of: row.column))
                    let writes = enlarged.sees(tenant: row.tenant, audience: round.table.write.audience(of: row.column))
                    for (found, how) in readable where found.contains(id) != sees {
                        Issue.record("seed \(seed): \(how) of \(round.table) \(scope.keys) \(row): Swift says \(sees)")
                    }
                    for (found, how) in writable where found.contains(id) != writes {
                        Issue.record(
                            "seed \(seed): \(how) of \(round.table) \(scope.keys) \(row): Swift says \(writes)")
                    }
                    cases += 2
                    visible += (sees ? 1 : 0) + (writes ? 1 : 0)
                }
            }
        }
        #expect(cases >= 100_000)
        // A generator that never meets a visible row would prove nothing.
        #expect(visible > cases / 20)
        #expect(visible < cases * 19 / 20)
    }

    /// What a policy would let through and the statement's own predicate would not, and the other way round.
    @Test func forgedRows_andForgedScopes_areRefused() throws {
        let table = Table("notes", read: ["user:{user_id}"], write: ["user:{user_id}"])
        let stores = try Stores(
            Migration(
                "0001_notes",
                sql: ["CREATE TABLE notes (id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, user_id TEXT NOT NULL) STRICT"]
            ),
            tables: [table])
        defer { stores.close() }
        let (mine, other) = (Scope(tenant: "t", keys: ["user:u1"]), Scope(tenant: "other", keys: ["user:u1"]))
        try stores.postgres.writeAndWait { db in
            try db.enter(mine)
            try db.run("INSERT INTO \(table, writableBy: mine) (id, tenant, user_id) VALUES (1, 't', 'u1')")
        }
        for forged in [("t", "u2"), ("other", "u1")] {
            #expect(throws: DatabaseError.self) {
                try stores.postgres.writeAndWait { db in
                    try db.enter(mine)
                    // Without the statement's own wall.
                    try db.run(
                        "INSERT INTO notes (id, tenant, user_id) VALUES (2, \(forged.0), \(forged.1))")
                }
            }
        }
        for scope in [nil, other, Scope(tenant: "t", keys: ["user:u2"]), Scope(tenant: "", keys: ["user:u1"])] {
            let seen = try stores.postgres.read { db in
                try db.enter(scope)
                return try db.integer("SELECT count(*) FROM notes")
            }
            #expect(seen == 0, "\(scope?.keys ?? [])")
            try stores.postgres.writeAndWait { db in
                try db.enter(scope)
                let changed = try db.run("UPDATE notes SET user_id = user_id")
                let removed = try db.run("DELETE FROM notes")
                #expect(changed == 0)
                #expect(removed == 0)
            }
        }
        // One statement's opening is not the next one's.
        try stores.postgres.read { db in
            let all = try db.integer("SELECT count(*) FROM \(table, unscoped: .audit("a test counts"))")
            let afterwards = try db.integer("SELECT count(*) FROM notes")
            #expect(all == 1)
            #expect(afterwards == 0)
        }
    }

    /// `psql` as the service's own login, which sets no scope, sees nothing in any table.
    @Test func sessionWithoutAScope_seesNothing() throws {
        let table = Table("notes", read: ["user:{user_id}", "everyone"], write: [])
        let bookkeeping = Table("records", read: [], write: [])
        let stores = try Stores(
            Migration(
                "0001_notes",
                sql: [
                    "CREATE TABLE notes (id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, user_id TEXT NOT NULL) STRICT",
                    "CREATE TABLE records (id INTEGER PRIMARY KEY) STRICT",
                ]), tables: [table, bookkeeping])
        defer { stores.close() }
        try stores.postgres.writeAndWait { db in
            let why = Unscoped.audit("a test writes")
            try db.run("INSERT INTO \(table, unscoped: why) (id, tenant, user_id) VALUES (1, 't', 'u1'), (2, '', '')")
            try db.run("INSERT INTO \(bookkeeping, unscoped: why) (id) VALUES (1)")
        }
        let server = try PostgresServer.shared()
        for name in ["notes", "records"] {
            let seen = try server.run(["SELECT count(*) FROM \(name)"], as: "bellhop", in: stores.database)
            #expect(seen == "0", "\(name)")
            // Nor does the owner: the policies are forced on everybody who can be held.
            let owned = try server.run(["SELECT count(*) FROM \(name)"], as: "bellhop_owner", in: stores.database)
            #expect(owned == "0", "\(name)")
        }
        #expect(try server.run(["SELECT count(*) FROM notes"], in: stores.database) == "2")
    }

    /// Queries of many callers travel together: each sees what its own scope opens, also where the statement itself asks
    /// for another's rows; and one that cannot be answered takes nobody else's answer along.
    @Test func queriesThatTravelTogether_neverMixTheirScopes() async throws {
        let table = Table("notes", read: ["user:{user_id}", "shop:{shop_id}"], write: [])
        let stores = try Stores(
            Migration(
                "0001_notes",
                sql: [
                    """
                    CREATE TABLE notes (
                      id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, user_id TEXT NOT NULL, shop_id TEXT) STRICT
                    """
                ]), tables: [table])
        defer { stores.close() }
        let scopes = (0..<20).map { index in
            Scope(
                tenant: index % 2 == 0 ? "t" : "other",
                keys: index % 3 == 0 ? ["user:u\(index)", "shop:s"] : ["user:u\(index)"])
        }
        try stores.postgres.writeAndWait { db in
            for (index, scope) in scopes.enumerated() {
                try db.run(
                    """
                    INSERT INTO \(table, unscoped: .audit("a test writes")) (id, tenant, user_id)
                    VALUES (\(index), \(scope.tenant), \("u\(index)"))
                    """)
            }
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for round in 0..<1_000 {
                let (asker, owner) = (round % 20, round % 7 == 0 ? (round + 5) % 20 : round % 20)
                let isBroken = round % 50 == 0
                let sql: SQL =
                    isBroken
                    ? "SELECT id / (id - id) FROM \(table, visibleTo: scopes[owner])"
                    : "SELECT id FROM \(table, visibleTo: scopes[owner])"
                let store = stores.postgres
                group.addTask {
                    let found: Result<[Int], any Error> = await withCheckedContinuation { continuation in
                        do throws(StoreBusy) {
                            try store.query(sql, as: scopes[asker]) { result in
                                continuation.resume(
                                    returning: Result { try result.get().rows { try $0.integer(0) } })
                            }
                        } catch {
                            continuation.resume(returning: .failure(error))
                        }
                    }
                    if isBroken, asker == owner {
                        #expect((try? found.get()) == nil)
                    } else {
                        let ids = try found.get()
                        #expect(ids == (asker == owner ? [owner] : []))
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    @Test func serviceIsRefused_asARoleThatCouldPassBy() throws {
        let stores = try Stores(Migration("0001_nothing", sql: []), tables: [])
        defer { stores.close() }
        let server = try PostgresServer.shared()
        try server.run([
            """
            DO $$ BEGIN CREATE ROLE bellhop_passing LOGIN BYPASSRLS IN ROLE bellhop_service;
            EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$
            """
        ])
        for user in ["postgres", "bellhop_owner", "bellhop_passing"] {
            let url = try DatabaseURL(server.url(user, stores.database))
            do throws(DatabaseError) {
                _ = try Store.open(url)
                Issue.record("\(user) may serve")
            } catch {
                #expect(error.code == .role, "\(error)")
                #expect(error.detail.contains("CREATE ROLE bellhop LOGIN"), "\(error)")
            }
        }
    }

    @Test func settingsOfAScope_areOneForEachKind_andCannotBeConfused() {
        let tables = [
            Table("a", read: ["user:{user_id}", "shop:{s}:staff", "everyone"], write: ["x:{a}:{b}"]),
            Table("b", read: ["user:{owner}"], write: ["user_:{u}"]),
        ]
        let vocabulary = ScopeVocabulary(tables)
        #expect(vocabulary.kinds.count == 5)
        // What memberships are found by is asked for too.
        let held = Table("c", read: [RandomSeat.entry("a")], write: [])
        #expect(ScopeVocabulary([held]).kinds.map(\.setting) == ["bellhop.key.club._", "bellhop.key.user._"])
        let settings = vocabulary.settings(
            of: Scope(
                tenant: "t",
                keys: [
                    "user:u\"1\\", "user:b%3Ac", "shop:s1:staff", "shop:s1", "everyone", "x:a:b", "x:a%3Ab:c",
                    "user_:z",
                ]))
        #expect(
            settings == [
                "bellhop.tenant": "t", "bellhop.key.user._": "{\"b:c\",\"u\\\"1\\\\\"}",
                "bellhop.key.shop._.staff": "{\"s1\"}", "bellhop.key.everyone": "{\"\"}",
                "bellhop.key.x._._": "{\"3:a:bc\",\"1:ab\"}", "bellhop.key.user_5f._": "{\"z\"}",
            ])
    }
}

/// The same tables in SQLite and in PostgreSQL, where the service's own login reads and writes.
struct Stores {
    let sqlite: Store
    let postgres: Store
    let database: String

    init(_ migration: Migration, tables: [Table], options: (inout StoreOptions) -> Void = { _ in }) throws {
        sqlite = try Store.open(.memory)
        try sqlite.migrate([migration])
        let server = try PostgresServer.shared()
        database = try server.makeDatabase()
        var owning = StoreOptions()
        owning.access = .owner
        let owner = try Store.open(DatabaseURL(server.url("bellhop_owner", database)), options: owning, tables: tables)
        defer { owner.close() }
        try owner.migrate([migration], tables: tables)
        try server.makeLogin()
        var serving = StoreOptions()
        options(&serving)
        postgres = try Store.open(DatabaseURL(server.url("bellhop", database)), options: serving, tables: tables)
    }

    func close() {
        sqlite.close()
        postgres.close()
        try? PostgresServer.shared().drop(database)
    }

    func insert(_ rows: [RandomRow], into table: Table) throws {
        for store in [sqlite, postgres] {
            try store.writeAndWait { db in
                for (id, row) in rows.enumerated() {
                    try db.run(
                        """
                        INSERT INTO \(table, unscoped: .bookkeeping("test")) VALUES
                        (\(id), \(row.tenant), \(row.a), \(row.b), \(row.c))
                        """)
                }
            }
        }
    }

    func readable(_ table: Table, _ scope: Scope) throws -> [(Set<Int>, String)] {
        let statement: SQL = "SELECT id FROM \(table, visibleTo: scope)"
        let bare = SQL(unchecked: "SELECT id FROM \(table.name)")
        func ids(_ store: Store, _ sql: SQL) throws -> Set<Int> {
            try store.read { db in
                try db.enter(scope)
                return Set(try db.rows(sql) { try $0.integer(0) })
            }
        }
        return [
            (try ids(sqlite, statement), "SQLite's reading"), (try ids(postgres, bare), "the policy's reading"),
            (try ids(postgres, statement), "PostgreSQL's reading"),
        ]
    }

    func writable(_ table: Table, _ scope: Scope) throws -> [(Set<Int>, String)] {
        func ids(_ store: Store) throws -> Set<Int> {
            try store.writeAndWait { db in
                try db.enter(scope)
                return Set(
                    try db.rows("UPDATE \(table, writableBy: scope) SET id = id RETURNING id") { try $0.integer(0) })
            }
        }
        return [(try ids(sqlite), "SQLite's writing"), (try ids(postgres), "PostgreSQL's writing")]
    }
}

extension Scope {
    /// No claim with a control character becomes a key.
    fileprivate var withoutNulls: Scope { Scope(tenant: tenant, keys: keys.filter { !$0.contains("%00") }) }
}

extension RandomRow {
    var holdsNull: Bool { [a, b, c].contains { $0?.utf8.contains(0) == true } }
}
