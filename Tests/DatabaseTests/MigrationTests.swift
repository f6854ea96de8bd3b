import TestSupport
import Testing

@testable import Database

@Suite(.timed) struct MigrationTests {
    private let first = Migration("0001_a", sql: ["CREATE TABLE a (id INTEGER PRIMARY KEY) STRICT"])
    private let second = Migration(
        "0002_b", sql: ["CREATE TABLE b (id INTEGER PRIMARY KEY) STRICT", "CREATE INDEX b_id ON b (id)"])

    @Test func migrations_areAppliedOnce_inOrder() throws {
        let store = try DatabaseStore.open(.memory)
        defer { store.close() }
        #expect(try store.pendingMigrations([first, second]) == ["0001_a", "0002_b"])
        #expect(try store.migrate([first]) == ["0001_a"])
        #expect(try store.pendingMigrations([first, second]) == ["0002_b"])
        #expect(try store.migrate([first, second]) == ["0002_b"])
        #expect(try store.migrate([first, second]) == [])
    }

    @Test func changedMigration_isRefused_withoutAnyEffect() throws {
        let store = try DatabaseStore.open(.memory)
        defer { store.close() }
        try store.migrate([first])
        let changed = Migration("0001_a", sql: ["CREATE TABLE a (id TEXT PRIMARY KEY) STRICT"])
        expectSchemaError("0001_a") { try store.migrate([changed, second]) }
        #expect(try store.pendingMigrations([first, second]) == ["0002_b"])
    }

    @Test func databaseOfANewerVersion_isRefused() throws {
        let store = try DatabaseStore.open(.memory)
        defer { store.close() }
        try store.migrate([first, second])
        expectSchemaError("0002_b") { try store.migrate([first]) }
    }

    @Test func failingMigration_leavesTheSchemaAsItWas_andIsNamed() throws {
        let store = try DatabaseStore.open(.memory)
        defer { store.close() }
        let broken = Migration("0003_c", sql: ["CREATE TABLE c (id INTEGER) STRICT", "CREATE TABEL d (id)"])
        let error = #expect(throws: DatabaseError.self) { try store.migrate([first, broken]) }
        #expect(error?.code == .statement)
        #expect(error?.detail.contains("0003_c") == true)
        #expect(try store.pendingMigrations([first]) == ["0001_a"])
        #expect(try store.read { try !$0.exists("SELECT 1 FROM sqlite_schema WHERE name IN ('a', 'c')") })
    }

    @Test func checksum_dependsOnTheStatements_notOnlyTheirText() {
        func checksum(_ steps: [Migration.Step]) -> String { Migration("x", sql: steps).checksum(for: .sqlite) }
        #expect(checksum(["ab", "c"]) != checksum(["a", "bc"]))
        #expect(checksum(["abc"]).count == 64)
        // A statement for another engine does not change the checksum.
        #expect(checksum(["abc", .postgreSQL("x")]) == checksum(["abc"]))
    }

    private func expectSchemaError(_ id: String, _ body: () throws -> Void) {
        do {
            try body()
            Issue.record("an invalid history was accepted")
        } catch let error as DatabaseError {
            #expect(error.code == .schema)
            #expect(error.detail.contains(id))
        } catch {
            Issue.record(error)
        }
    }
}
