import CSQLite

/// The row a statement stands on. Valid inside the callback it is given to; using it later is a programmer's error.
///
/// Every getter comes by name and by index, and throws `DatabaseError.Code.column` when the column is absent, null
/// (unless the getter says `optional`) or of another type: a stored number is never silently read as text.
public struct Row {
    private let statement: Statement
    private let generation: UInt64
    /// The number of columns, without a check column that a write policy added.
    public let count: Int

    init(_ statement: Statement, hiddenColumns: Int) {
        self.statement = statement
        generation = statement.generation
        count = statement.columnNames.count - hiddenColumns
    }

    public var columnNames: [String] { Array(statement.columnNames.prefix(count)) }

    // MARK: By name

    public func text(_ column: String) throws -> String { try text(index(of: column)) }
    public func integer(_ column: String) throws -> Int { try integer(index(of: column)) }
    public func real(_ column: String) throws -> Double { try real(index(of: column)) }
    public func bool(_ column: String) throws -> Bool { try bool(index(of: column)) }
    public func blob(_ column: String) throws -> [UInt8] { try blob(index(of: column)) }
    public func bytes(_ column: String) throws -> [UInt8] { try bytes(index(of: column)) }
    public func optionalText(_ column: String) throws -> String? { try optionalText(index(of: column)) }
    public func optionalInteger(_ column: String) throws -> Int? { try optionalInteger(index(of: column)) }
    public func optionalReal(_ column: String) throws -> Double? { try optionalReal(index(of: column)) }
    public func optionalBool(_ column: String) throws -> Bool? { try optionalBool(index(of: column)) }
    public func optionalBlob(_ column: String) throws -> [UInt8]? { try optionalBlob(index(of: column)) }
    public func optionalBytes(_ column: String) throws -> [UInt8]? { try optionalBytes(index(of: column)) }
    public func isNull(_ column: String) throws -> Bool { try isNull(index(of: column)) }
    public func value(_ column: String) throws -> SQLValue { try value(index(of: column)) }

    /// The bytes of a text or blob column without a copy; valid inside `body` only.
    public func withBytes<Result>(
        _ column: String, _ body: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result {
        try withBytes(index(of: column), body)
    }

    /// The column as an audience template needs it: its text, or nil for null.
    ///
    /// Pass it to `Policy.audience(of:)`: `table.read.audience(of: row.audienceColumn)`. An absent column or a
    /// number makes no key, which hides rather than shows.
    public func audienceColumn(_ column: String) -> String? {
        try? optionalText(column)
    }

    // MARK: By index

    public func text(_ index: Int) throws -> String {
        try require(SQLITE_TEXT, "a text", at: index)
        return statement.withBytes(at: index, isText: true) { String(decoding: $0, as: UTF8.self) }
    }

    public func integer(_ index: Int) throws -> Int {
        try require(SQLITE_INTEGER, "an integer", at: index)
        return Int(statement.integer(at: index))
    }

    /// A whole number counts as real: SQLite stores `2.0` as an integer where it can.
    public func real(_ index: Int) throws -> Double {
        if type(at: index) != SQLITE_INTEGER { try require(SQLITE_FLOAT, "a real", at: index) }
        return statement.real(at: index)
    }

    public func bool(_ index: Int) throws -> Bool {
        switch try integer(index) {
        case 0: return false
        case 1: return true
        case let other: throw mismatch(index, "0 or 1, not \(other)")
        }
    }

    public func blob(_ index: Int) throws -> [UInt8] {
        try require(SQLITE_BLOB, "a blob", at: index)
        return statement.withBytes(at: index, isText: false) { Array($0) }
    }

    /// The bytes of a blob, or the UTF-8 of a text (stored JSON that goes out as it is).
    public func bytes(_ index: Int) throws -> [UInt8] {
        try withBytes(index) { Array($0) }
    }

    public func optionalText(_ index: Int) throws -> String? { isNull(index) ? nil : try text(index) }
    public func optionalInteger(_ index: Int) throws -> Int? { isNull(index) ? nil : try integer(index) }
    public func optionalReal(_ index: Int) throws -> Double? { isNull(index) ? nil : try real(index) }
    public func optionalBool(_ index: Int) throws -> Bool? { isNull(index) ? nil : try bool(index) }
    public func optionalBlob(_ index: Int) throws -> [UInt8]? { isNull(index) ? nil : try blob(index) }
    public func optionalBytes(_ index: Int) throws -> [UInt8]? { isNull(index) ? nil : try bytes(index) }

    public func isNull(_ index: Int) -> Bool { type(at: index) == SQLITE_NULL }

    public func value(_ index: Int) throws -> SQLValue {
        switch type(at: index) {
        case SQLITE_NULL: .null
        case SQLITE_INTEGER: .integer(statement.integer(at: index))
        case SQLITE_FLOAT: .real(statement.real(at: index))
        case SQLITE_TEXT: .text(try text(index))
        default: .blob(try blob(index))
        }
    }

    public func withBytes<Result>(
        _ index: Int, _ body: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result {
        let isText = type(at: index) == SQLITE_TEXT
        if !isText { try require(SQLITE_BLOB, "a text or a blob", at: index) }
        return try statement.withBytes(at: index, isText: isText, body)
    }

    // MARK: Checks

    private func type(at index: Int) -> Int32 {
        precondition(generation == statement.generation, "a row was used after its callback: \(statement.text)")
        precondition(index >= 0 && index < count, "no column \(index): \(statement.text)")
        return statement.type(at: index)
    }

    private func index(of column: String) throws -> Int {
        guard let index = statement.index(of: column), index < count else {
            throw DatabaseError(.column, "the row has no column \(column)", sql: statement.text)
        }
        return index
    }

    private func require(_ expected: Int32, _ what: String, at index: Int) throws {
        let found = type(at: index)
        if found != expected {
            throw mismatch(index, "\(what), not \(found == SQLITE_NULL ? "null" : "a value of another type")")
        }
    }

    private func mismatch(_ index: Int, _ what: String) -> DatabaseError {
        DatabaseError(.column, "column \(statement.columnNames[index]) should hold \(what)", sql: statement.text)
    }
}
