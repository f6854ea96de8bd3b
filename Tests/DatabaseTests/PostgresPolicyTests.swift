import PostgresServer
import TestSupport
import Testing
import Values

@testable import Database

/// The visibility rule as PostgreSQL's row-level security, compared with the rule in Swift and in SQLite.
@Suite(.timed) struct PostgresPolicyTests {
    /// Compares decisions about rows, 100,000 in CI. Four results must agree: Swift's `sees`, SQLite's predicate,
    /// PostgreSQL's policy alone, and PostgreSQL's policy together with the predicate.
    @Test func theRule_isTheSame_inSwift_SQLite_andPostgreSQL() throws {
        let seed = randomSeed()
        var random = SeededGenerator(seed: seed)
        let count = effort(quick: 5, full: 25, long: 100)
        let tables = (0..<count).map { Table("t\($0)", read: .random(&random), write: .random(&random)) }
        let definitions = tables.map { Migration.Step.both(RandomRow.definition(of: $0)) }
        let migration = Migration("0001_rounds", sql: [.both(RandomSeat.definition)] + definitions)
        let stores = try Stores(migration, tables: [RandomSeat.table] + tables)
        defer { stores.close() }
        // PostgreSQL cannot store U+0000 in text. The service refuses such a row before it reaches the database.
        let seats = (0..<120).map { _ in RandomSeat(&random) }.filter { !$0.row.hasNull }
        for store in stores.both {
            try store.writeAndWait { db in for seat in seats { try seat.insert(in: db) } }
        }
        var decisions = PolicyDecisions()
        for table in tables {
            let rows = (0..<80).map { _ in RandomRow(&random) }.filter { !$0.hasNull }
            for store in stores.both { try store.writeAndWait { try RandomRow.insert(rows, into: table, in: $0) } }
            for _ in 0..<28 {
                let scope = Scope.random(&random, rows: rows, table: table).withoutNulls
                let granted = RandomSeat.keys(of: scope, from: seats)
                for store in stores.both {
                    let stored = try store.read { db in
                        try db.enter(scope)
                        return Set(try RandomSeat.grant.keys(of: scope, in: db))
                    }
                    #expect(stored == granted, "seed \(seed) \(scope.keys)")
                }
                decisions.compare(
                    rows, of: table, to: Scope(tenant: scope.tenant, keys: scope.keys.union(granted)),
                    readable: try stores.readable(table, scope),
                    writable: try stores.writable(table, scope), "seed \(seed): \(scope.keys)")
            }
        }
        decisions.expect(atLeast: 4_000 * tables.count)
    }

    private static let notes = Table("notes", read: ["user:{user_id}"], write: ["user:{user_id}"])
    private static let mine = Scope(tenant: "t", keys: ["user:u1"])

    /// Returns both databases with one note of `u1`.
    private static func storesWithANote() throws -> Stores {
        let migration = Migration(
            "0001_notes",
            sql: ["CREATE TABLE notes (id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, user_id TEXT NOT NULL) STRICT"])
        let stores = try Stores(migration, tables: [notes])
        try stores.postgres.writeAndWait { db in
            try db.enter(mine)
            try db.run("INSERT INTO \(notes, writableBy: mine) (id, tenant, user_id) VALUES (1, 't', 'u1')")
        }
        return stores
    }

    /// The policy refuses forged rows in a statement without a predicate.
    @Test func forgedRows_areRefused() throws {
        let stores = try Self.storesWithANote()
        defer { stores.close() }
        for forged in [("t", "u2"), ("other", "u1")] {
            #expect(throws: DatabaseError.self) {
                try stores.postgres.writeAndWait { db in
                    try db.enter(Self.mine)
                    try db.run("INSERT INTO notes (id, tenant, user_id) VALUES (2, \(forged.0), \(forged.1))")
                }
            }
        }
    }

    @Test func forgedScopes_findNothing() throws {
        let stores = try Self.storesWithANote()
        defer { stores.close() }
        let forged = [("other", "u1"), ("t", "u2"), ("", "u1")].map { Scope(tenant: ID($0), keys: ["user:\($1)"]) }
        for scope in [nil] + forged {
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
        // A statement's exemption does not carry over to the next statement.
        try stores.postgres.read { db in
            let all = try db.integer("SELECT count(*) FROM \(Self.notes, unscoped: .audit("a test counts"))")
            let afterwards = try db.integer("SELECT count(*) FROM notes")
            #expect(all == 1)
            #expect(afterwards == 0)
        }
    }

    /// `psql` with the service's own login sets no scope and sees no row in any table.
    @Test func sessionWithoutAScope_seesNothing() throws {
        let table = Table("notes", read: ["user:{user_id}", "everyone"], write: [])
        let bookkeeping = ServiceTable("records")
        let stores = try Stores(
            Migration(
                "0001_notes",
                sql: [
                    "CREATE TABLE notes (id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, user_id TEXT NOT NULL) STRICT",
                    "CREATE TABLE records (id INTEGER PRIMARY KEY) STRICT",
                ]), tables: [table, bookkeeping.table])
        defer { stores.close() }
        try stores.postgres.writeAndWait { db in
            let why = Unscoped.audit("a test writes")
            try db.run("INSERT INTO \(table, unscoped: why) (id, tenant, user_id) VALUES (1, 't', 'u1'), (2, '', '')")
            try db.run("INSERT INTO \(bookkeeping) (id) VALUES (1)")
        }
        let server = try PostgresServer.shared()
        for name in ["notes", "records"] {
            let seen = try server.run(["SELECT count(*) FROM \(name)"], as: "bellhop", in: stores.database)
            #expect(seen == "0", "\(name)")
            // The owner sees no rows either: the policies are forced on every role to which they can apply.
            let owned = try server.run(["SELECT count(*) FROM \(name)"], as: "bellhop_owner", in: stores.database)
            #expect(owned == "0", "\(name)")
        }
        #expect(try server.run(["SELECT count(*) FROM notes"], in: stores.database) == "2")
    }

    /// Queries of many callers share a round trip. Each returns only rows of its caller's scope, even if the
    /// statement asks for another user's rows. A query that fails does not affect the answers of the others.
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
                    VALUES (\(index), \(scope.tenant.text), \("u\(index)"))
                    """)
            }
        }
        try await concurrently(0..<1_000) { round in
            let (asker, owner) = (round % 20, round % 7 == 0 ? (round + 5) % 20 : round % 20)
            let isBroken = round % 50 == 0
            let column = SQL(unchecked: isBroken ? "id / (id - id)" : "id")
            let sql: SQL = "SELECT \(column) FROM \(table, visibleTo: scopes[owner])"
            let found = await Self.ids(sql, in: stores.postgres, as: scopes[asker])
            if isBroken, asker == owner {
                #expect((try? found.get()) == nil)
            } else {
                let ids = try found.get()
                #expect(ids == (asker == owner ? [owner] : []))
            }
        }
    }

    private static func ids(_ sql: SQL, in store: DatabaseStore, as scope: Scope) async -> Result<[Int], any Error> {
        await withCheckedContinuation { continuation in
            do throws(StoreBusy) {
                try store.query(sql, as: scope) { result in
                    continuation.resume(returning: Result { try result.get().rows { try $0.integer(0) } })
                }
            } catch {
                continuation.resume(returning: .failure(error))
            }
        }
    }

    @Test func roleThatBypassesPolicies_isRefused() throws {
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
            let error = #expect(throws: DatabaseError.self) { _ = try DatabaseStore.open(url) }
            #expect(error?.code == .role)
            #expect(error?.detail.contains("CREATE ROLE bellhop LOGIN") == true)
        }
    }

    @Test func settingsOfAScope_areOneForEachKind_andCannotBeConfused() {
        let tables = [
            Table("a", read: ["user:{user_id}", "shop:{s}:staff", "everyone"], write: ["x:{a}:{b}"]),
            Table("b", read: ["user:{owner}"], write: ["user_:{u}"]),
        ]
        let vocabulary = ScopeVocabulary(tables)
        #expect(vocabulary.kinds.count == 5)
        // The vocabulary includes the keys that policies use to find memberships.
        let clubs = Table("c", read: [RandomSeat.entry("a")], write: [])
        #expect(ScopeVocabulary([clubs]).kinds.map(\.setting) == ["bellhop.key.club._", "bellhop.key.user._"])
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

/// The same tables in SQLite and PostgreSQL. On PostgreSQL, reads and writes use the service's own login.
struct Stores {
    let sqlite: DatabaseStore
    let postgres: DatabaseStore
    let database: String

    init(_ migration: Migration, tables: [Table], options: (inout StoreOptions) -> Void = { _ in }) throws {
        sqlite = try DatabaseStore.open(.memory)
        try sqlite.migrate([migration])
        let server = try PostgresServer.shared()
        database = try server.makeDatabase()
        var owning = StoreOptions()
        owning.access = .owner
        let owner = try DatabaseStore.open(
            DatabaseURL(server.url("bellhop_owner", database)), options: owning, tables: tables)
        defer { owner.close() }
        try owner.migrate([migration], tables: tables)
        try server.makeLogin()
        var serving = StoreOptions()
        options(&serving)
        postgres = try DatabaseStore.open(
            DatabaseURL(server.url("bellhop", database)), options: serving, tables: tables)
    }

    func close() {
        sqlite.close()
        postgres.close()
        try? PostgresServer.shared().drop(database)
    }

    var both: [DatabaseStore] { [sqlite, postgres] }

    func readable(_ table: Table, _ scope: Scope) throws -> [(Set<Int>, String)] {
        [
            (try table.readable(to: scope, in: sqlite), "SQLite's reading"),
            (try table.readable(to: scope, in: postgres, isBare: true), "the policy's reading"),
            (try table.readable(to: scope, in: postgres), "PostgreSQL's reading"),
        ]
    }

    func writable(_ table: Table, _ scope: Scope) throws -> [(Set<Int>, String)] {
        [
            (try table.writable(by: scope, in: sqlite), "SQLite's writing"),
            (try table.writable(by: scope, in: postgres), "PostgreSQL's writing"),
        ]
    }
}

extension Scope {
    /// A claim with a control character never becomes a key.
    fileprivate var withoutNulls: Scope { Scope(tenant: tenant, keys: keys.filter { !$0.contains("%00") }) }
}

extension RandomRow {
    var hasNull: Bool { [a, b, c].contains { $0?.utf8.contains(0) == true } }
}
