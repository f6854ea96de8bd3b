import Database
import Rows
import Values

/// How far an app's log is taken in: stored in the very transaction of what was taken, so that nothing is taken twice.
struct SourcePosition: Sendable, Hashable {
    /// Whose log it is (``SourceIdentity``), or the mark of a slot that is being made.
    var source: String
    /// What was committed before it is taken in.
    var lsn: LSN
    /// Of the transaction that was committed there so many changes are.
    var taken = 0
    /// The tables with memberships that were read as they stood.
    var tables: Set<String>

    static let positions = Table("source_positions", read: [], write: [])

    static let migration = Migration(
        "0002_source_positions",
        sql: [
            """
            CREATE TABLE source_positions (
                slot TEXT NOT NULL PRIMARY KEY,
                source TEXT NOT NULL,
                lsn INTEGER NOT NULL,
                taken INTEGER NOT NULL,
                tables TEXT NOT NULL,
                stored_at INTEGER NOT NULL
            ) STRICT
            """
        ])

    private static let bookkeeping = Unscoped.bookkeeping("how far the app's log is read is nobody's row")

    static func read(slot: String, in db: Connection) throws -> SourcePosition? {
        try db.row(
            """
            SELECT source, lsn, taken, tables FROM \(positions, unscoped: bookkeeping) WHERE slot = \(slot)
            """
        ) { row in
            SourcePosition(
                source: try row.text(0), lsn: LSN(rawValue: UInt64(bitPattern: Int64(try row.integer(1)))),
                taken: try row.integer(2), tables: Set(try row.text(3).split(separator: "\n").map(String.init)))
        }
    }

    /// Stores it in the place of the one that the reader knows.
    ///
    /// A second reader that still runs cannot take the same again: whoever comes later finds another position.
    ///
    /// - Throws: ``Moved`` where another one is stored.
    func store(replacing known: SourcePosition?, slot: String, at now: Timestamp, in db: Connection) throws {
        try db.lock(["bellhop:source"])
        guard try Self.read(slot: slot, in: db) == known else { throw Moved() }
        try db.run(
            """
            INSERT INTO \(Self.positions, unscoped: Self.bookkeeping) (slot, source, lsn, taken, tables, stored_at)
            VALUES (\(slot), \(source), \(Int64(bitPattern: lsn.rawValue)), \(taken),
                \(tables.sorted().joined(separator: "\n")), \(now))
            ON CONFLICT (slot) DO UPDATE SET source = excluded.source, lsn = excluded.lsn, taken = excluded.taken,
                tables = excluded.tables, stored_at = excluded.stored_at
            """)
    }

    /// Another reader has stored a position meanwhile.
    struct Moved: Error, CustomStringConvertible {
        let description = "another replica has read on"
    }

    private static let (first, again) = ("making ", "making again ")

    /// The mark that is stored before a slot is made. It ends with a number of its own, so that whoever makes the slot
    /// notices that another replica has begun to.
    static func making(isFirst: Bool) -> SourcePosition {
        SourcePosition(
            source: "\(isFirst ? first : again)\(UInt64.random(in: 1...UInt64.max))", lsn: LSN(rawValue: 0), tables: [])
    }

    /// What ``SourceContinuity`` goes by.
    static func continuity(of position: SourcePosition?) -> SourceContinuity.Position {
        guard let position else { return .none }
        if position.source.hasPrefix(again) { return .making(isFirst: false) }
        if position.source.hasPrefix(first) { return .making(isFirst: true) }
        return .read(source: position.source, lsn: position.lsn)
    }

    /// Whether a change is behind it: of the transaction that was committed at a place, by its number in it.
    func hasTaken(_ place: LSN, _ number: Int) -> Bool { place < lsn || (place == lsn && number <= taken) }
}
