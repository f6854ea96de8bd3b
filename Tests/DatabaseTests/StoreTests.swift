import Foundation
import TestSupport
import Testing
import Values

@testable import Database

@Suite(.timed) final class StoreTests: Sendable {
    private static let items = Migration(
        "0001_items",
        sql: [
            """
            CREATE TABLE items (
              id TEXT PRIMARY KEY, tenant TEXT NOT NULL, user_id TEXT NOT NULL, n INTEGER NOT NULL CHECK (n >= 0)
            ) STRICT
            """,
            "CREATE INDEX items_user ON items (tenant, user_id)",
        ])
    private let table = Table("items", read: ["user:{user_id}", "tenant:admin"], write: ["user:{user_id}"])
    private let scope = Scope(tenant: "t", keys: ["user:u1"])

    private let store: DatabaseStore

    init() throws { store = try Self.makeStore() }

    deinit { store.close() }

    private static func makeStore(_ change: (inout StoreOptions) -> Void = { _ in }) throws -> DatabaseStore {
        var options = StoreOptions()
        change(&options)
        let store = try DatabaseStore.open(.memory, options: options)
        try store.migrate([items])
        return store
    }

    private static func insert(_ id: String, user: String = "u1", n: Int = 0, into db: DatabaseConnection) throws {
        try db.run("INSERT INTO items (id, tenant, user_id, n) VALUES (\(id), \("t"), \(user), \(n))")
    }

    // MARK: Values

    @Test func everyValue_comesBackAsItWasBound() throws {
        let large = String(repeating: "é", count: 100_000)
        let values: [SQLValue] = [
            .null, .integer(.min), .integer(.max), .real(0.1), .text(""), .text("x\u{0}y"), .text(large), .blob([]),
            .blob([0, 255]),
        ]
        try store.read { db in
            for value in values + values {
                let found = try db.row("SELECT \(value)") { $0.value(0) }
                #expect(found == value)
            }
            let real = try db.row("SELECT \(2.0)") { try $0.real(0) }
            #expect(real == 2)
            let bool = try db.row("SELECT \(true)") { try $0.bool(0) }
            #expect(bool == true)
            let bytes = try db.row("SELECT '{}'") { try $0.bytes(0) }
            #expect(bytes == Array("{}".utf8))
            let null = try db.row("SELECT NULL") { try $0.optionalText(0) }
            #expect(null == .some(nil))
        }
    }

    @Test func columnOfAnotherType_isAnError_andNeverConverted() throws {
        func code(_ body: (Row) throws -> Void) throws -> DatabaseError.Code? {
            do {
                try store.read { db in
                    try db.forEach("SELECT '7' AS s, 7 AS n, NULL AS z") { row in
                        try body(row)
                        return true
                    }
                }
                return nil
            } catch let error as DatabaseError {
                return error.code
            }
        }
        #expect(try code { _ = try $0.integer(0) } == .column)
        #expect(try code { _ = try $0.text(1) } == .column)
        #expect(try code { _ = try $0.text(2) } == .column)
        #expect(try code { _ = try $0.bool(1) } == .column)
        #expect(try code { _ = try $0.optionalInteger(2) } == nil)
    }

    @Test func severalQueries_returnTheirOwnRows() throws {
        let (numbers, none, text) = try store.read { db in
            try db.rows(
                RowQuery("SELECT value FROM json_each('[1,2,3]')") { try $0.integer(0) },
                RowQuery("SELECT id FROM items") { try $0.text(0) }, RowQuery("SELECT \("a")") { try $0.text(0) })
        }
        #expect(numbers == [1, 2, 3] && none.isEmpty && text == ["a"])
    }

    @Test func statement_canRunInsideItsOwnCallback() throws {
        func numbers(_ db: DatabaseConnection, _ depth: Int) throws -> Int {
            try db.rows("SELECT value FROM json_each('[1,2,3]')") { row in
                let own = try row.integer(0)
                return try depth == 0 ? own : own * numbers(db, depth - 1)
            }.reduce(0, +)
        }
        #expect(try store.read { try numbers($0, 2) } == 216)
    }

    @Test func statementCache_isBounded_andSurvivesManyTexts() throws {
        let store = try Self.makeStore { $0.statementsMax = 4 }
        defer { store.close() }
        try store.read { db in
            for number in 0..<50 {
                let found = try db.integer(SQL(unchecked: "SELECT \(number % 10)"))
                #expect(found == number % 10)
            }
        }
    }

    @Test func misspeltColumnInDoubleQuotes_isAnError() throws {
        #expect(throws: DatabaseError.self) { try store.read { try $0.exists("SELECT \"no_such\" FROM items") } }
    }

    // MARK: Reading

    @Test func read_isOneState_whileOthersCommit() throws {
        let counts = try store.read { db in
            let before = try db.integer("SELECT count(*) FROM items")
            try store.writeAndWait { try Self.insert("a", into: $0) }
            return [before, try db.integer("SELECT count(*) FROM items")]
        }
        #expect(counts == [0, 0])
        #expect(try store.read { try $0.integer("SELECT count(*) FROM items") } == 1)
    }

    @Test func answeredWrite_isSeenByTheNextRead_onEveryThread() async throws {
        try await concurrently(0..<4) { [store] task in
            for number in 0..<100 {
                let id = "\(task)-\(number)"
                try await store.write { try Self.insert(id, into: $0) }
                #expect(try store.read { try $0.exists("SELECT 1 FROM items WHERE id = \(id)") })
            }
        }
    }

    @Test func readConnection_cannotWrite() throws {
        #expect(throws: DatabaseError.self) { try store.read { try Self.insert("a", into: $0) } }
        #expect(try store.read { try $0.integer("SELECT count(*) FROM items") } == 0)
    }

    @Test func visiblePointRead_usesThePrimaryKey_andListsUseTheTenantIndex() throws {
        let point = try store.read {
            try $0.queryPlan("SELECT * FROM \(table, visibleTo: scope) WHERE id = \("a")")
        }
        try #require(point.count == 1)
        #expect(point[0].contains("sqlite_autoindex_items_1 (id=?)"))
        let list = try store.read { try $0.queryPlan("SELECT n FROM \(table, visibleTo: scope) AS i") }
        try #require(list.count == 1)
        #expect(list[0].contains("items_user (tenant=? AND user_id=?)"))
    }

    // MARK: Writing

    @Test func failedJob_undoesItsOwnChangesOnly() throws {
        let gate = Gate()
        let results = Collected<Result<Int, any Error>>()
        // Occupies the writer, so that the next three jobs form one group.
        try store.write({ _ in gate.wait() }, completion: { _ in })
        for number in 0..<3 {
            try store.write(
                { db in
                    try Self.insert("x\(number)", into: db)
                    if number == 1 { try Self.insert("bad", n: -1, into: db) }
                    return number
                }, completion: { results.append($0) })
        }
        gate.open()
        let all = results.wait(for: 3)
        #expect(all.filter { (try? $0.get()) != nil }.count == 2)
        #expect(try store.read { try $0.rows("SELECT id FROM items ORDER BY id") { try $0.text(0) } } == ["x0", "x2"])
        #expect(store.metrics().jobsFailed == 1)
    }

    @Test func itemsOfABatch_areWrittenTogether_andTheErrorOfOneIsNoOthers() throws {
        let gate = Gate()
        let sizes = Collected<Int>()
        let results = Collected<Result<Int, any Error>>()
        let batch = BatchedWrite<Int, Int> { db, items in
            sizes.append(items.count)
            for item in items { try Self.insert("\(item)", n: item, into: db) }
            return items.map { $0 * 10 }
        }
        func write(_ items: [Int]) throws {
            for item in items { try store.write(item, in: batch) { results.append($0) } }
        }
        try store.write({ _ in gate.wait() }, completion: { _ in })
        try write([1, 2])
        // A job outside the batch, between its items.
        try store.write({ try Self.insert("single", into: $0) }, completion: { _ in results.append(.success(0)) })
        try write([3])
        gate.open()
        #expect(try Set(results.wait(for: 4).map { try $0.get() }) == [0, 10, 20, 30])
        #expect(sizes.all == [3])

        let second = Gate()
        try store.write({ _ in second.wait() }, completion: { _ in })
        // The table rejects negative numbers.
        try write([4, -5, 6])
        second.open()
        let outcomes = results.wait(for: 7).suffix(3)
        #expect(outcomes.compactMap { try? $0.get() } == [40, 60])
        #expect(sizes.all == [3, 3, 1, 1, 1])
        let stored = try store.read { try $0.rows("SELECT n FROM items ORDER BY n") { try $0.integer(0) } }
        #expect(stored == [0, 1, 2, 3, 4, 6])
    }

    @Test func jobsSeeEachOther_inOrder_andShareOneCommit() throws {
        let gate = Gate()
        let seen = Collected<Int>()
        try store.write({ _ in gate.wait() }, completion: { _ in })
        let before = store.metrics().batches
        for number in 0..<100 {
            try store.write(
                { db in
                    let count = try db.integer("SELECT count(*) FROM items") ?? -1
                    try Self.insert("\(number)", into: db)
                    return count
                }, completion: { if let count = try? $0.get() { seen.append(count) } })
        }
        gate.open()
        #expect(seen.wait(for: 100) == Array(0..<100))
        // One commit for the waiting job and one for the hundred others. On a busy machine, a group may be split by
        // time.
        #expect(store.metrics().batches - before < 50)
        #expect(store.metrics().batchJobsLargest > 1)
    }

    /// A tenant's write joins the next group, however many writes of another tenant wait.
    @Test func tenantsTakeTurns_acrossGroups() throws {
        let store = try Self.makeStore { $0.batchJobsMax = 4 }
        defer { store.close() }
        let (begun, gate) = (Gate(), Gate())
        let done = Collected<Int>()
        try store.write(
            { _ in
                begun.open()
                gate.wait()
            }, completion: { _ in })
        // Otherwise the first group could contain some of the following writes.
        begun.wait()
        for number in 0..<41 {
            let lane = WriteLane(number, group: number < 40 ? 1 : 2)
            try store.write(lane: lane, { try Self.insert("\(number)", into: $0) }) { _ in done.append(number) }
        }
        gate.open()
        #expect(done.wait(for: 41) == [0, 40] + Array(1..<40))
    }

    @Test func fullQueue_refuses_andKeepsAcceptedJobs() throws {
        let store = try Self.makeStore { $0.queueDepthMax = 8 }
        defer { store.close() }
        let gate = Gate()
        let done = Collected<Int>()
        var taken = 0
        var refused = 0
        for number in 0..<20 {
            do {
                try store.write(
                    { db in
                        gate.wait()
                        try Self.insert("\(number)", into: db)
                    }, completion: { _ in done.append(number) })
                taken += 1
            } catch {
                #expect(error.queueDepth >= 8)
                refused += 1
            }
        }
        #expect(taken == 8)
        #expect(refused == 12)
        gate.open()
        #expect(done.wait(for: 8).count == 8)
        #expect(store.metrics().refused == 12)
    }

    @Test func commitActions_runBeforeTheAnswer_andNeverForUndoneWork() throws {
        let log = Collected<String>()
        let step = GroupStep<String>(order: 0) { db, items in
            log.append("last step: \(items)")
            db.afterCommit { log.append("after it") }
        }
        try store.writeAndWait { db in
            db.afterCommit { log.append("done") }
            db.leave("done", for: step)
            _ = try? db.savepoint {
                db.afterCommit { log.append("undone") }
                db.leave("undone", for: step)
                throw CancellationError()
            }
        }
        #expect(throws: CancellationError.self) {
            try store.writeAndWait { db in
                db.afterCommit { log.append("failed") }
                db.leave("failed", for: step)
                throw CancellationError()
            }
        }
        #expect(log.all == ["last step: [\"done\"]", "done", "after it"])
    }

    private func expectRefused(_ body: @escaping @Sendable (DatabaseConnection) throws -> Void) {
        let code = errorCode { try store.writeAndWait(body) }
        #expect(code == .notPermitted)
    }

    /// Inserts a row of the scope and a row of another user.
    private func insertRows() throws {
        try store.writeAndWait { [table, scope] db in
            #expect(try db.run("INSERT INTO \(table, writableBy: scope) VALUES (\("a"), \("t"), \("u1"), 1)") == 1)
            try Self.insert("other", user: "u2", into: db)
        }
    }

    @Test func rowOutsideTheScope_isRefused_evenIfTheErrorIsSwallowed() throws {
        expectRefused { [table, scope] db in
            try db.run("INSERT INTO \(table, writableBy: scope) VALUES (\("a"), \("t"), \("u2"), 1)")
        }
        expectRefused { [table, scope] db in
            _ = try? db.run("INSERT INTO \(table, writableBy: scope) VALUES (\("a"), \("t2"), \("u1"), 1)")
        }
        try insertRows()
        // An update may not move a row out of the scope.
        expectRefused { [table, scope] db in
            try db.run("UPDATE \(table, writableBy: scope) SET user_id = \("u2") WHERE id = \("a")")
        }
    }

    @Test func rowOutsideTheScope_isInvisibleToWrites() throws {
        try insertRows()
        try store.writeAndWait { [table, scope] db in
            #expect(try db.run("UPDATE \(table, writableBy: scope) SET n = 5 WHERE id = \("other") OR 1 = 1") == 1)
            #expect(try db.run("DELETE FROM \(table, writableBy: scope) WHERE id = \("other")") == 0)
            let upserted = try db.run(
                """
                INSERT INTO \(table, writableBy: scope) (id, tenant, user_id, n) VALUES (\("other"), \("t"), \("u1"), 9)
                ON CONFLICT (id) DO UPDATE SET n = excluded.n, user_id = excluded.user_id
                """)
            #expect(upserted == 0)
            let returned = try db.rows(
                "UPDATE \(table, writableBy: scope) SET n = n + 1 WHERE id = \("a") RETURNING id, n"
            ) { row in
                #expect(row.count == 2)
                return try row.integer(1)
            }
            #expect(returned == [6])
        }
        #expect(try store.read { try $0.integer("SELECT n FROM items WHERE id = 'other'") } == 0)
    }

    @Test func asyncWrites_fromManyTasks_areAllStored() async throws {
        let numbers = try await concurrently(0..<1000) { [store] number in
            try await store.write { db in
                try Self.insert("\(number)", into: db)
                return number
            }
        }
        #expect(numbers.reduce(0, +) == 499_500)
        #expect(try store.read { try $0.integer("SELECT count(*) FROM items") } == 1000)
        let metrics = store.metrics()
        #expect(metrics.queueDepth == 0)
        #expect(metrics.commitSecondsBuckets.reduce(0, +) == metrics.batches)
    }

    @Test func close_runsQueuedJobs_thenRefuses() throws {
        let directory = try TemporaryDirectory()
        let url = DatabaseURL.file(directory.file("a.sqlite"))
        let store = try DatabaseStore.open(url)
        try store.migrate([Self.items])
        let done = Collected<Bool>()
        for number in 0..<50 {
            try store.write({ try Self.insert("\(number)", into: $0) }, completion: { _ in done.append(true) })
        }
        store.close()
        store.close()
        #expect(done.all.count == 50)
        #expect(throws: DatabaseError.self) { try store.writeAndWait { try Self.insert("late", into: $0) } }
        #expect(throws: DatabaseError.self) { try store.read { _ in } }
        let again = try DatabaseStore.open(url)
        defer { again.close() }
        #expect(try again.read { try $0.integer("SELECT count(*) FROM items") } == 50)
        #expect(try again.integrityCheck() == [])
    }

    @Test func checkpoints_boundTheWAL_underSteadyWrites() throws {
        let directory = try TemporaryDirectory()
        var options = StoreOptions()
        options.checkpointPages = 20
        options.checkpointPagesMax = 60
        let store = try DatabaseStore.open(.file(directory.file("a.sqlite")), options: options)
        defer { store.close() }
        try store.migrate([Self.items])
        for number in 0..<400 {
            try store.writeAndWait { try Self.insert("\(number)", into: $0) }
            #expect(try store.read { try $0.exists("SELECT 1 FROM items WHERE id = \("\(number)")") })
        }
        let metrics = store.metrics()
        #expect(metrics.checkpoints > 0)
        #expect(metrics.checkpointsFailed == 0)
        // 400 commits of about 4 pages would be 1,600.
        #expect(metrics.walPages < 400)
    }

    @Test func memoryDatabase_leavesNothingBehind() throws {
        let store = try Self.makeStore()
        let path = store.path
        #expect(FileManager.default.fileExists(atPath: path))
        store.close()
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test func memoryDatabaseOfAKilledProcess_isSwept_andALivingOneIsNot() throws {
        let living = try Self.makeStore()
        defer { living.close() }
        let parent = URL(fileURLWithPath: living.path).deletingLastPathComponent().deletingLastPathComponent()
        let orphan = parent.appending(path: "bellhop-memory-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: orphan, withIntermediateDirectories: true)
        try Data("1\n".utf8).write(to: orphan.appending(path: "owner.lock"))
        let next = try Self.makeStore()
        defer { next.close() }
        #expect(!FileManager.default.fileExists(atPath: orphan.path))
        #expect(FileManager.default.fileExists(atPath: living.path))
    }

    @Test func checkpointAndSize_measureTheFileOnDisk() throws {
        try store.writeAndWait { db in for number in 0..<500 { try Self.insert("\(number)", into: db) } }
        let before = store.sizeBytes
        try store.checkpoint()
        #expect(store.sizeBytes > 0)
        #expect(store.sizeBytes < before)
        #expect(try store.integrityCheck() == [])
    }
}
