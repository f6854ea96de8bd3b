import Database
import Rows
import Values

/// The position up to which an app's log is taken in. It is stored in the same transaction as the data, so that nothing
/// is taken in twice.
struct SourcePosition: Sendable, Hashable {
    /// The identity of the log (``SourceIdentity``), or the mark of a slot that is being created.
    var source: String
    /// All transactions that were committed before this position are taken in.
    var lsn: LSN
    /// The number of changes that are taken in of the transaction that was committed at this position.
    var taken = 0
    /// The tables with memberships that were read, each with its state (``SourceServer/states(of:by:)``) before it was
    /// read.
    var tables: [String: String]
    /// The publication of the tables (``SourcePublication``); nil before the first is known.
    var publication: String?

    static let feature = Feature(name: "source", set: .rows, tables: [positions.table], migrations: [migration])

    static let positions = ServiceTable("source_positions", person: .nothing("positions in the app's log"))

    static let migration = Migration(
        "0001_source_positions",
        sql: [
            """
            CREATE TABLE source_positions (
                slot TEXT NOT NULL PRIMARY KEY,
                source TEXT NOT NULL,
                lsn INTEGER NOT NULL,
                taken INTEGER NOT NULL,
                tables TEXT NOT NULL,
                publication TEXT,
                stored_at INTEGER NOT NULL
            ) STRICT
            """
        ])

    static func read(slot: String, in db: DatabaseConnection) throws -> SourcePosition? {
        try db.row(
            """
            SELECT source, lsn, taken, tables, publication FROM \(positions) WHERE slot = \(slot)
            """
        ) { row in
            SourcePosition(
                source: try row.text(0), lsn: LSN(rawValue: UInt64(bitPattern: Int64(try row.integer(1)))),
                taken: try row.integer(2), tables: Self.tables(reading: try row.text(3)),
                publication: try row.optionalText(4))
        }
    }

    /// Stores it in place of the position that the reader knows.
    ///
    /// A second reader that is still running cannot take in the same data again: it finds another position.
    ///
    /// - Throws: ``Moved`` if another position is stored.
    func store(replacing known: SourcePosition?, slot: String, at now: Timestamp, in db: DatabaseConnection) throws {
        try db.lock(["bellhop:source"])
        guard try Self.read(slot: slot, in: db) == known else { throw Moved() }
        try db.run(
            """
            INSERT INTO \(Self.positions) (slot, source, lsn, taken, tables, publication, stored_at)
            VALUES (\(slot), \(source), \(Int64(bitPattern: lsn.rawValue)), \(taken),
                \(tables.map { "\($1) \($0)" }.sorted().joined(separator: "\n")), \(publication), \(now))
            ON CONFLICT (slot) DO UPDATE SET source = excluded.source, lsn = excluded.lsn, taken = excluded.taken,
                tables = excluded.tables, publication = excluded.publication, stored_at = excluded.stored_at
            """)
    }

    /// Reads lines of a state and a table.
    private static func tables(reading text: String) -> [String: String] {
        var tables: [String: String] = [:]
        for line in text.split(separator: "\n") {
            guard let space = line.firstIndex(of: " ") else { continue }
            tables[String(line[line.index(after: space)...])] = String(line[..<space])
        }
        return tables
    }

    /// Another reader has stored a position meanwhile.
    struct Moved: Error, CustomStringConvertible {
        let description = "another replica has already read further"
    }

    private static let (first, again) = ("making ", "making again ")

    /// Returns the mark that is stored before a slot is created. It ends with a unique number, so that a replica that
    /// is creating the slot notices if another replica has started to do so.
    static func making(isFirst: Bool) -> SourcePosition {
        SourcePosition(
            source: "\(isFirst ? first : again)\(UInt64.random(in: 1...UInt64.max))", lsn: LSN(rawValue: 0), tables: [:]
        )
    }

    /// Returns the position in the form that ``SourceContinuity`` evaluates.
    ///
    /// - Parameter publication: The current publication of the tables.
    static func continuity(
        of position: SourcePosition?, _ publication: SourcePublication
    ) -> SourceContinuity.Position {
        guard let position else { return .none }
        if position.source.hasPrefix(again) { return .making(isFirst: false) }
        if position.source.hasPrefix(first) { return .making(isFirst: true) }
        let before = position.publication.map { SourcePublication($0) }
        return .read(
            source: position.source, lsn: position.lsn, wasPublished: before.map(publication.continues) ?? true)
    }

    /// Whether a change is before this position, given the commit position of its transaction and its number in it.
    func includes(_ place: LSN, _ number: Int) -> Bool { place < lsn || (place == lsn && number <= taken) }
}
