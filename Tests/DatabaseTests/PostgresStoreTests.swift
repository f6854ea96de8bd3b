import Foundation
import PostgresServer
import Synchronization
import TestSupport
import Testing

@testable import Database

/// The guarantees of a store on PostgreSQL, with concurrent writers and lost connections.
@Suite(.timed) struct PostgresStoreTests {
    private static let items = Migration(
        "0001_items",
        sql: [
            "CREATE TABLE items (id INTEGER PRIMARY KEY, n INTEGER NOT NULL CHECK (n >= 0)) STRICT",
            "CREATE TABLE counter (id INTEGER PRIMARY KEY, newest INTEGER NOT NULL) STRICT",
            "INSERT INTO counter (id, newest) VALUES (1, 0)",
            "CREATE TABLE numbered (sequence INTEGER PRIMARY KEY, who TEXT NOT NULL) STRICT",
            "CREATE TABLE mixed (t TEXT, i INTEGER, r REAL, b BLOB) STRICT",
        ])
    private static let tables = ["items", "counter", "numbered", "mixed"].map { ServiceTable($0).table }
    private static let why = Unscoped.bookkeeping("test")

    private func makeStores(_ options: (inout StoreOptions) -> Void = { _ in }) throws -> Stores {
        try Stores(Self.items, tables: Self.tables) {
            $0.statementTimeout = Self.patience
            options(&$0)
        }
    }

    /// Longer than a service's timeout: a write may wait long beside hundreds of other tests, which is not a failure.
    private static let patience: Duration = .seconds(60)

    /// Returns another replica on the same database.
    private func replica(of stores: Stores, port: Int? = nil, _ change: (inout StoreOptions) -> Void = { _ in }) throws
        -> DatabaseStore
    {
        var options = StoreOptions()
        options.statementTimeout = Self.patience
        change(&options)
        let server = try PostgresServer.shared()
        let url = PostgresServer(port: port ?? server.port).url(
            "bellhop", stores.database, parameters: "?sslmode=disable")
        return try DatabaseStore.open(DatabaseURL(url), options: options, tables: Self.tables)
    }

    private static func count(_ store: DatabaseStore) throws -> Int {
        try store.read(isSingle: true) { try $0.integer("SELECT count(*) FROM items") ?? 0 }
    }

    // MARK: Values and errors

    @Test func everyValue_comesBackAsItWasBound() throws {
        let stores = try makeStores()
        defer { stores.close() }
        let large = String(repeating: "é", count: 100_000)
        let rows: [[SQLValue]] = [
            [.null, .null, .null, .null], [.text(""), .integer(.min), .real(0.1), .blob([])],
            [.text(large), .integer(.max), .real(-2), .blob([0, 255, 92])],
            [.text("it's ? \\ \""), .integer(0), .real(1e300), .blob([1])],
        ]
        try stores.postgres.writeAndWait { db in
            for row in rows { try db.run("INSERT INTO mixed VALUES (\(row[0]), \(row[1]), \(row[2]), \(row[3]))") }
            let found = try db.rows("SELECT t, i, r, b FROM mixed") { row in (0..<4).map { row.value($0) } }
            #expect(Set(found) == Set(rows))
            let isNull = try db.rows("SELECT t IS NULL FROM mixed ORDER BY 1") { try $0.bool(0) }
            #expect(isNull == [false, false, false, true])
        }
        let error = #expect(throws: DatabaseError.self) {
            try stores.postgres.writeAndWait { try $0.run("INSERT INTO mixed (t) VALUES (\("x\u{0}y"))") }
        }
        #expect(error?.code == .text)
    }

    /// In a read of one statement, a second round trip would be refused.
    @Test func severalQueries_takeOneRoundTrip() throws {
        let stores = try makeStores()
        defer { stores.close() }
        try stores.postgres.writeAndWait { _ = try $0.run("INSERT INTO items (id, n) VALUES (1, 10), (2, 20)") }
        let (ids, none, words) = try stores.postgres.read(isSingle: true) { db in
            try db.rows(
                RowQuery("SELECT id FROM items ORDER BY id") { try $0.integer(0) },
                RowQuery("SELECT id FROM items WHERE n = \(30)") { try $0.integer(0) },
                RowQuery("SELECT \("a") UNION ALL SELECT 'b'") { try $0.text(0) })
        }
        #expect(ids == [1, 2] && none.isEmpty && words == ["a", "b"])
    }

    @Test func failedJob_undoesItsOwnChangesOnly_evenIfItSwallowsTheError() throws {
        let stores = try makeStores()
        defer { stores.close() }
        let store = stores.postgres
        try store.writeAndWait { db in
            try db.run("INSERT INTO items (id, n) VALUES (1, 1)")
            for (sql, code) in [
                ("INSERT INTO items (id, n) VALUES (1, 2)", DatabaseError.Code.constraintUnique),
                ("INSERT INTO items (id, n) VALUES (2, -1)", .constraintCheck),
                ("INSERT INTO items (id, n) VALUES (3, NULL)", .constraintNotNull),
                ("INSERT INTO nowhere (id) VALUES (3)", .statement),
            ] {
                let found = errorCode {
                    try db.savepoint {
                        try db.run("INSERT INTO items (id, n) VALUES (10, 1)")
                        try db.savepoint { _ = try db.integer("SELECT 1") }
                        _ = try db.run(SQL(unchecked: sql))
                    }
                }
                #expect(found == code)
            }
            // The transaction continues.
            try db.savepoint { _ = try db.run("INSERT INTO items (id, n) VALUES (4, 4)") }
        }
        #expect(throws: CancellationError.self) {
            try store.writeAndWait { db in
                try db.run("INSERT INTO items (id, n) VALUES (5, 5)")
                throw CancellationError()
            }
        }
        #expect(try store.read { try $0.rows("SELECT id FROM items ORDER BY id") { try $0.integer(0) } } == [1, 4])
    }

    @Test func read_isOneState_whileOthersCommit() throws {
        let stores = try makeStores()
        defer { stores.close() }
        try stores.postgres.read { db in
            #expect(try db.integer("SELECT count(*) FROM items") == 0)
            try stores.postgres.writeAndWait { _ = try $0.run("INSERT INTO items (id, n) VALUES (1, 1)") }
            #expect(try db.integer("SELECT count(*) FROM items") == 0)
            let refused = errorCode { _ = try db.run("INSERT INTO items (id, n) VALUES (2, 1)") }
            #expect(refused != nil)
        }
        #expect(try Self.count(stores.postgres) == 1)
    }

    @Test func slowStatement_isCancelled_andTheStoreContinues() throws {
        let stores = try makeStores { $0.statementTimeout = .milliseconds(100) }
        defer { stores.close() }
        for attempt in [
            { try stores.postgres.read { try $0.exists("SELECT pg_sleep(60)") } },
            { try stores.postgres.writeAndWait { try $0.exists("SELECT pg_sleep(60)") } },
        ] as [() throws -> Bool] {
            let error = #expect(throws: DatabaseError.self) { _ = try attempt() }
            #expect(error?.isTransient == true)
        }
        #expect(try Self.count(stores.postgres) == 0)
    }

    // MARK: Concurrent writers

    /// Two replicas increment the same rows by reading and writing them. Without the lock, updates would be lost.
    @Test func locks_joinReadAndWrite_acrossReplicas() async throws {
        let stores = try makeStores()
        let other = try replica(of: stores)
        defer {
            other.close()
            stores.close()
        }
        try stores.postgres.writeAndWait { db in
            for id in 0..<4 { try db.run("INSERT INTO items (id, n) VALUES (\(id), 0)") }
        }
        try await concurrently(0..<400) { index in
            let store = index % 2 == 0 ? stores.postgres : other
            try await store.write(lane: WriteLane(index)) { db in
                // The locks are taken in both orders. The transaction that a deadlock aborts is repeated.
                for id in index % 3 == 0 ? [index % 4, (index + 1) % 4] : [(index + 1) % 4, index % 4] {
                    try db.lock(["item:\(id)"])
                    let n = try db.integer("SELECT n FROM items WHERE id = \(id)") ?? -1
                    try db.run("UPDATE items SET n = \(n + 1) WHERE id = \(id)")
                }
            }
        }
        #expect(try other.read { try $0.integer("SELECT sum(n) FROM items") } == 800)
    }

    /// Assigns the next number to each item.
    private static let numbering = GroupStep<String>(order: 0) { db, items in
        let newest =
            try db.integer("UPDATE counter SET newest = newest + \(items.count) WHERE id = 1 RETURNING newest") ?? 0
        try db.runWithCommit(
            items.enumerated().map { index, item in
                "INSERT INTO numbered (sequence, who) VALUES (\(newest - items.count + index + 1), \(item))"
            })
    }

    /// The last step of each group assigns the numbers. While one transaction has completed all but its last step,
    /// others commit. A reader never sees a number before all smaller ones.
    @Test func numbers_areCommittedInTheirOrder_withoutGaps() async throws {
        let stores = try makeStores()
        let other = try replica(of: stores)
        defer {
            other.close()
            stores.close()
        }
        let entered = Gate()
        let gate = Gate()
        // The first transaction starts long before the others and ends long after them.
        let slow = Task {
            try await stores.postgres.write(lane: .service) { db in
                try db.run("INSERT INTO items (id, n) VALUES (1, 1)")
                db.leave("slow", for: Self.numbering)
                entered.open()
                gate.wait()
            }
        }
        await Task.detached { entered.wait() }.value
        let isDone = Gate()
        let watching = Task { try await Self.watch(other, until: isDone) }
        try await concurrently(0..<500) { index in
            // Lane 1: the second writer of the first replica, and the other replica.
            let store = index % 2 == 0 ? stores.postgres : other
            try await store.write(lane: WriteLane(1)) { db in db.leave("\(index)", for: Self.numbering) }
        }
        gate.open()
        try await slow.value
        isDone.open()
        #expect(try await watching.value == 501)
        let who = try other.read { try $0.rows("SELECT who FROM numbered ORDER BY sequence") { try $0.text(0) } }
        #expect(who.last == "slow")
        #expect(Set(who).count == 501)
    }

    /// Reads the numbers after the last one seen, in a loop. Fails at the first gap.
    private static func watch(_ store: DatabaseStore, until isDone: Gate) async throws -> Int {
        var seen = 0
        while true {
            let wasDone = isDone.isOpen
            let after = seen
            let next = try await Task.detached { try Self.sequences(after: after, in: store) }.value
            #expect(next == Array((after + 1)..<(after + 1 + next.count)))
            seen += next.count
            if wasDone, next.isEmpty { return seen }
        }
    }

    private static func sequences(after: Int, in store: DatabaseStore) throws -> [Int] {
        try store.read(isSingle: true) {
            try $0.rows("SELECT sequence FROM numbered WHERE sequence > \(after) ORDER BY sequence") {
                try $0.integer(0)
            }
        }
    }

    // MARK: Lost connections

    @Test func connectionLostMidGroup_repeatsTheGroup_once() throws {
        let stores = try makeStores()
        defer { stores.close() }
        let runs = Tally()
        try stores.postgres.writeAndWait { db in
            try db.run("INSERT INTO items (id, n) VALUES (\(runs.count), 1)")
            if runs.add() == 1 {
                try db.run("SELECT pg_terminate_backend(pg_backend_pid())")
            }
        }
        #expect(runs.count == 2)
        #expect(try Self.count(stores.postgres) == 1)
    }

    /// An idle reader's connection that the server has closed is replaced without an error.
    @Test func idleConnections_closedByTheServer_areReplaced() throws {
        let stores = try makeStores { $0.readersMax = 2 }
        defer { stores.close() }
        for _ in 0..<3 {
            #expect(try Self.count(stores.postgres) == 0)
            try PostgresServer.shared().run(
                ["SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '\(stores.database)'"])
        }
        try stores.postgres.writeAndWait { _ = try $0.run("INSERT INTO items (id, n) VALUES (1, 1)") }
        #expect(try Self.count(stores.postgres) == 1)
    }

    /// The answer to a COMMIT is lost, and the store asks the server for the outcome. No write happens twice, and no
    /// completed write is reported as failed.
    @Test(arguments: [CuttingProxy.Cut.beforeCommit, .afterCommit])
    func lostAnswerToCommit_isResolvedByAQuery(_ cut: CuttingProxy.Cut) throws {
        let stores = try makeStores()
        let proxy = try CuttingProxy(to: PostgresServer.shared().port)
        let store = try replica(of: stores, port: proxy.port)
        defer {
            store.close()
            proxy.stop()
            stores.close()
        }
        let runs = Tally()
        try store.writeAndWait { db in
            let run = runs.add()
            try db.run("INSERT INTO items (id, n) VALUES (\(run), 1)")
            // Cuts only the next COMMIT; the query for the outcome passes.
            if run == 1 { proxy.arm(cut) }
        }
        #expect(proxy.cuts >= 1)
        #expect(try Self.count(stores.postgres) == 1)
        if cut == .afterCommit { #expect(runs.count == 1) }
    }

    /// Marks of killed writers are bounded in number. The mark of another replica stays, however old it seems.
    @Test func marks_ofKilledWriters_areBounded() throws {
        let stores = try makeStores()
        defer { stores.close() }
        try stores.postgres.writeAndWait { db in
            try db.run(
                """
                INSERT INTO write_marks (writer, mark)
                SELECT 'killed' || n, 'm' FROM generate_series(1, \(PostgresSchema.marksKept + 200)) AS n
                """)
        }
        func marks(_ condition: SQL) throws -> Int {
            try stores.postgres.read(isSingle: true) { db in
                try db.integer("SELECT count(*) FROM write_marks WHERE \(condition)") ?? 0
            }
        }
        try stores.postgres.writeAndWait { _ = try $0.run("INSERT INTO items (id, n) VALUES (1, 1)") }
        let other = try replica(of: stores)
        try other.writeAndWait { _ = try $0.run("INSERT INTO items (id, n) VALUES (2, 1)") }
        let own = try marks("writer NOT LIKE 'killed%'")
        #expect(own >= 2)
        other.close()
        #expect(try marks("TRUE") <= PostgresSchema.marksKept)
        #expect(try marks("writer NOT LIKE 'killed%'") >= 1)
    }

    @Test func unreachableServer_failsQuickly_asTransient() throws {
        let error = #expect(throws: DatabaseError.self) {
            _ = try DatabaseStore.open(DatabaseURL("postgres://bellhop:secret@127.0.0.1:1/none"))
        }
        #expect(error?.code == .unavailable)
        #expect(error?.isTransient == true)
        #expect(error?.description.contains("secret") == false)
        let cut = #expect(throws: DatabaseError.self) { try DatabaseURL("postgres://me:p@ss/w@h:5/db?password=x") }
        #expect(cut?.description.contains("p@ss") == false)
        #expect(try DatabaseURL("postgres://me:p%40ss@h:5/db?password=x").description == "postgres://me@h:5/db")
        let several = try DatabaseURL("postgresql://me:pw@a:1,b:2/db?connect_timeout=3")
        #expect(several.description == "postgresql://me@a:1,b:2/db")
    }

    // MARK: Migrations

    @Test func migrations_startedByManyAtOnce_areAppliedOnce() async throws {
        let server = try PostgresServer.shared()
        let database = try server.makeDatabase()
        defer { server.drop(database) }
        let url = try DatabaseURL(server.url("bellhop_owner", database))
        @Sendable func openAsOwner() throws -> DatabaseStore {
            var options = StoreOptions()
            options.access = .owner
            return try DatabaseStore.open(url, options: options, tables: Self.tables)
        }
        let applied = try await concurrently(0..<6) { _ -> [String] in
            let store = try openAsOwner()
            defer { store.close() }
            return try store.migrate([Self.items], tables: Self.tables)
        }
        #expect(Array(applied.joined()) == ["0001_items"])
        let store = try openAsOwner()
        defer { store.close() }
        let changed = Migration("0001_items", sql: ["CREATE TABLE items (id INTEGER PRIMARY KEY) STRICT"])
        for migrations in [[changed], []] {
            let error = #expect(throws: DatabaseError.self) { try store.migrate(migrations, tables: Self.tables) }
            #expect(error?.code == .schema)
        }
        let failing = Migration("0002_failing", sql: ["CREATE TABLE later (id INTEGER) STRICT", "NONSENSE"])
        #expect(throws: DatabaseError.self) { try store.migrate([Self.items, failing], tables: Self.tables) }
        #expect(try store.pendingMigrations([Self.items, failing]) == ["0002_failing"])
        #expect(try server.run(["SELECT to_regclass('later') IS NULL"], in: database) == "t")
    }

    @Test func definitions_areTranslated_toTypesAndCollationsOfPostgreSQL() {
        #expect(
            TableDefinition.postgreSQL(
                "CREATE TABLE t (a TEXT NOT NULL, b INTEGER, c REAL, d BLOB, PRIMARY KEY (a)) STRICT, WITHOUT ROWID")
                == "CREATE TABLE t (a TEXT COLLATE \"C\" NOT NULL, b BIGINT, c DOUBLE PRECISION, d BYTEA, PRIMARY KEY (a))"
        )
        #expect(TableDefinition.postgreSQL("CREATE INDEX i ON t (a)") == "CREATE INDEX i ON t (a)")
        #expect(
            TableDefinition.postgreSQL("CREATE TABLE t (a INTEGER PRIMARY KEY AUTOINCREMENT, b INTEGER) STRICT")
                == "CREATE TABLE t (a BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, b BIGINT)")
    }
}

private final class Tally: Sendable {
    private let value = Atomic<Int>(0)

    func add() -> Int { value.wrappingAdd(1, ordering: .relaxed).newValue }
    var count: Int { value.load(ordering: .relaxed) }
}
