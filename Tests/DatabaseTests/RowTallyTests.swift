import TestSupport
import Testing

@testable import Database

/// The counts of changed rows, which are the same on both engines.
@Suite(.timed) struct RowTallyTests {
    private static let notes = Table("notes", read: ["user:{user_id}"], write: ["user:{user_id}"])
    private static let marks = Table("marks", read: ["user:{user_id}"], write: ["user:{user_id}"])
    private static let why = Unscoped.bookkeeping("test")

    private static let migration = Migration(
        "0001_notes_and_marks",
        sql: ["notes", "marks"].map { name in
            .both("CREATE TABLE \(name) (id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, user_id TEXT) STRICT")
        })

    private static let statements: [SQL] = [
        "INSERT INTO \(marks, unscoped: why) (id, tenant) VALUES (1, 't'), (2, 't'), (3, 't')",
        "SELECT id FROM \(marks, unscoped: why)",
        "INSERT INTO \(notes, unscoped: why) (id, tenant) VALUES (1, 't'), (2, 't')",
        "SELECT id FROM \(notes, unscoped: why)",
        "UPDATE \(marks, unscoped: why) SET user_id = 'u' WHERE id < 3",
        "DELETE FROM \(notes, unscoped: why) WHERE id = 1",
    ]

    /// Of statements that run together, each is credited to its own table. Reads change no rows.
    @Test(arguments: [true, false]) func rows_areCreditedToTheirTables(_ isTogether: Bool) throws {
        let stores = try Stores(Self.migration, tables: [Self.notes, Self.marks])
        defer { stores.close() }
        for store in stores.both {
            let counts = try store.writeAndWait { db in
                let (tallies, before) = ([RowTally(of: ["notes"]), RowTally(of: ["marks"])], db.changedRowCount)
                let changed = try db.counting(into: tallies[0]) {
                    try isTogether ? db.run(Self.statements) : Self.statements.reduce(0) { try $0 + db.run($1) }
                }
                _ = try db.counting(into: tallies[1]) {
                    try db.run([Self.statements[1], "DELETE FROM \(Self.marks, unscoped: Self.why)"])
                }
                return [changed, db.changedRowCount - before, tallies[0].added, tallies[1].added]
            }
            #expect(counts == [8, 11, 1, -3], "\(store.engine)")
        }
    }
}
