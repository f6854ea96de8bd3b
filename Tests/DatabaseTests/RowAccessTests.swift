import TestSupport
import Testing
import Values

@testable import Database

/// The record of what a caller does to rows of other users.
@Suite(.timed) struct RowAccessTests {
    private static let notes = Table(
        "notes", read: ["user:{user_id}", "tenant:admin"], write: ["user:{user_id}", "tenant:admin"])
    private static let admin = Scope(tenant: "t", keys: ["user:kim", "tenant:admin"])

    private static let migration = Migration(
        "0001_notes",
        sql: [
            """
            CREATE TABLE notes (id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, user_id TEXT, body TEXT NOT NULL) STRICT
            """
        ])

    /// Runs a body as kim, an administrator, on both engines, with notes of kim, of ada, and without a user. Returns
    /// the acts, which must be equal.
    private func acts(
        readable: Set<String> = [], most: Int = 100, _ body: @escaping @Sendable (DatabaseConnection) throws -> Void
    ) throws -> (acts: [String], omitted: Int) {
        let stores = try Stores(Self.migration, tables: [Self.notes])
        defer { stores.close() }
        let found = try stores.both.map { store in
            try store.writeAndWait { db in
                let accesses = RowAccesses(of: "kim", readable: readable, countMax: most)
                try db.enter(Self.admin)
                for (id, user) in [(1, "kim"), (2, "ada"), (3, nil)] {
                    try Self.insert(id, user, db)
                }
                try db.recording(into: accesses) { try body(db) }
                // Not recorded.
                try Self.insert(100, "eve", db)
                let acts = accesses.all.map { "\($0.verb) \($0.table) \($0.user?.text ?? "-")" }
                return (acts: acts, omitted: accesses.omitted)
            }
        }
        #expect(found[0] == found[1])
        return found[0]
    }

    private static func insert(_ id: Int, _ user: String?, _ db: DatabaseConnection) throws {
        try db.run(
            """
            INSERT INTO \(notes, writableBy: admin) (id, tenant, user_id, body) VALUES (\(id), 't', \(user), 'text')
            """)
    }

    @Test func writes_areRecordedByUser() throws {
        let found = try acts { db in
            try Self.insert(4, "ben", db)
            try Self.insert(5, "kim", db)
            try db.run("UPDATE \(Self.notes, writableBy: Self.admin) SET body = 'new' WHERE id < 4")
            #expect(try db.run("DELETE FROM \(Self.notes, writableBy: Self.admin) AS n WHERE n.id IN (1, 4)") == 2)
            try db.run("UPDATE \(Self.notes, writableBy: Self.admin) SET body = 'new' WHERE id = 50")
        }
        #expect(
            Set(found.acts) == ["insert notes ben", "update notes ada", "update notes -", "delete notes ben"])
    }

    @Test func returnedColumns_stayTheSame() throws {
        _ = try acts { db in
            let rows = try db.rows(
                "UPDATE \(Self.notes, writableBy: Self.admin) SET body = 'new' WHERE id = 2 RETURNING id, body"
            ) { row in
                #expect(row.count == 2)
                return "\(try row.integer(0)) \(try row.text(1))"
            }
            #expect(rows == ["2 new"])
            let removed = try db.rows(
                "DELETE FROM \(Self.notes, writableBy: Self.admin) WHERE id = 2 RETURNING body"
            ) { row in
                #expect(row.count == 1)
                return try row.text(0)
            }
            #expect(removed == ["new"])
        }
    }

    @Test func undoneWrites_areForgotten() throws {
        let found = try acts { db in
            try Self.insert(4, "ben", db)
            try? db.savepoint {
                try Self.insert(5, "cem", db)
                throw CancellationError()
            }
            try db.savepoint { try Self.insert(6, "dan", db) }
        }
        #expect(found.acts == ["insert notes ben", "insert notes dan"])
    }

    @Test func reads_areRecordedByTable() throws {
        let count: SQL = "SELECT count(*) FROM \(Self.notes, visibleTo: Self.admin)"
        #expect(try acts(readable: ["notes"]) { _ = try $0.integer(count) }.acts == ["read notes -"])
        #expect(try acts { _ = try $0.integer(count) }.acts.isEmpty)
        #expect(Self.notes.opensOthers(to: ["tenant:admin"]))
        #expect(!Self.notes.opensOthers(to: ["user:kim", "everyone"]))
    }

    /// One statement may write rows of any number of users.
    @Test func users_areNamedUpToALimit_andThenCounted() throws {
        let found = try acts(most: 3) { db in
            for index in 0..<6 { try Self.insert(10 + index, "u\(index)", db) }
            try Self.insert(20, "u1", db)
        }
        #expect(found.acts == ["insert notes u0", "insert notes u1", "insert notes u2"])
        #expect(found.omitted == 3)
    }
}
