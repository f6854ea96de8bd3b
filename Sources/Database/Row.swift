/// The row a statement stands on. Valid inside the callback it is given to; using it later is a programmer's error.
///
/// Every getter comes by name and by index, and throws `DatabaseError.Code.column` when the column is absent, null
/// (unless the getter says `optional`) or of another type: a stored number is never silently read as text.
public struct Row {
    private let statement: RowSource
    private let generation: UInt64
    /// The number of columns, without a check column that a write policy added.
    public let count: Int

    init(_ statement: RowSource, hiddenColumns: Int) {
        self.statement = statement
        generation = statement.generation
        count = statement.columnCount - hiddenColumns
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
        try require(.text, "a text", at: index)
        return String(decoding: statement.bytes(at: index, isText: true), as: UTF8.self)
    }

    public func integer(_ index: Int) throws -> Int {
        try require(.integer, "an integer", at: index)
        return Int(statement.integer(at: index))
    }

    /// A whole number counts as real: SQLite stores `2.0` as an integer where it can.
    public func real(_ index: Int) throws -> Double {
        if type(at: index) != .integer { try require(.real, "a real", at: index) }
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
        try require(.blob, "a blob", at: index)
        return Array(statement.bytes(at: index, isText: false))
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

    public func isNull(_ index: Int) -> Bool { type(at: index) == .null }

    public func value(_ index: Int) throws -> SQLValue {
        switch type(at: index) {
        case .null: .null
        case .integer: .integer(statement.integer(at: index))
        case .real: .real(statement.real(at: index))
        case .text: .text(try text(index))
        default: .blob(try blob(index))
        }
    }

    public func withBytes<Result>(
        _ index: Int, _ body: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result {
        let isText = type(at: index) == .text
        if !isText { try require(.blob, "a text or a blob", at: index) }
        return try body(statement.bytes(at: index, isText: isText))
    }

    // MARK: Checks

    /// Whether the row, as it was written, lies within the write policy: the hidden last column of a woven statement.
    func isWithinPolicy() throws -> Bool {
        statement.integer(at: statement.columnCount - 1) == 1
    }

    private func type(at index: Int) -> ColumnType {
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

    private func require(_ expected: ColumnType, _ what: String, at index: Int) throws {
        let found = type(at: index)
        if found != expected {
            throw mismatch(index, "\(what), not \(found == .null ? "null" : "a value of another type")")
        }
    }

    private func mismatch(_ index: Int, _ what: String) -> DatabaseError {
        DatabaseError(.column, "column \(statement.columnNames[index]) should hold \(what)", sql: statement.text)
    }
}

/// What a column holds in one row.
enum ColumnType: Sendable {
    case null, integer, real, text, blob
}

/// What stands behind a row: a statement of SQLite that stands on it, or a result of PostgreSQL that holds it.
class RowSource {
    final let text: String
    final var columnCount = 0
    /// Read when somebody asks by name.
    final lazy var columnNames: [String] = readNames()
    /// Counts rows and executions, so that a `Row` that outlives its callback is noticed.
    final private(set) var generation: UInt64 = 0
    /// Where the next name is probably found: readers ask for columns in the order they selected them.
    private final var nextColumn = 0

    init(text: String) {
        self.text = text
    }

    final func nextRow() {
        generation &+= 1
        nextColumn = 0
    }

    final func index(of column: String) -> Int? {
        let names = columnNames
        var candidate = nextColumn < names.count ? nextColumn : 0
        for _ in 0..<names.count {
            if names[candidate] == column {
                nextColumn = candidate + 1
                return candidate
            }
            candidate += 1
            if candidate == names.count { candidate = 0 }
        }
        return nil
    }

    func readNames() -> [String] { preconditionFailure("each source names its columns") }
    func type(at index: Int) -> ColumnType { preconditionFailure("each source tells its columns' types") }
    func integer(at index: Int) -> Int64 { preconditionFailure("each source gives its numbers") }
    func real(at index: Int) -> Double { preconditionFailure("each source gives its numbers") }
    /// The bytes of a text or blob; valid until the next row.
    func bytes(at index: Int, isText: Bool) -> UnsafeRawBufferPointer {
        preconditionFailure("each source gives its bytes")
    }
}
