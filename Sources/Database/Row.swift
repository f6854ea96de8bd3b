/// The current row of a statement. It is valid only inside the callback that receives it; later use is a programmer's
/// error.
///
/// Columns are read by index, in the order of the SELECT. Every getter throws `DatabaseError.Code.column` if the column
/// is null (unless the getter's name says `optional`) or has another type: a stored number is never silently read as
/// text.
public struct Row {
    private let statement: RowSource
    private let generation: UInt64
    /// The number of columns, without the check column of a write policy.
    public let count: Int

    init(_ statement: RowSource, hiddenColumns: Int) {
        self.statement = statement
        generation = statement.generation
        count = statement.columnCount - hiddenColumns
    }

    // MARK: Columns

    public func text(_ index: Int) throws -> String {
        try require(.text, "a text", at: index)
        return String(decoding: statement.bytes(at: index, isText: true), as: UTF8.self)
    }

    public func integer(_ index: Int) throws -> Int {
        try require(.integer, "an integer", at: index)
        return Int(statement.integer(at: index))
    }

    /// Returns a real number. An integer counts as real, because SQLite stores `2.0` as an integer if it can.
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

    /// Returns the bytes of a blob, or the UTF-8 of a text (stored JSON that is sent unchanged).
    public func bytes(_ index: Int) throws -> [UInt8] {
        let isText = type(at: index) == .text
        if !isText { try require(.blob, "a text or a blob", at: index) }
        return Array(statement.bytes(at: index, isText: isText))
    }

    public func optionalText(_ index: Int) throws -> String? { isNull(index) ? nil : try text(index) }
    public func optionalInteger(_ index: Int) throws -> Int? { isNull(index) ? nil : try integer(index) }
    public func optionalBytes(_ index: Int) throws -> [UInt8]? { isNull(index) ? nil : try bytes(index) }

    public func isNull(_ index: Int) -> Bool { type(at: index) == .null }

    /// Returns the error for a value of the right type that is not one of the values that the column may hold.
    public func unknownValue(_ index: Int) -> DatabaseError {
        DatabaseError(.corrupt, "column \(statement.columnNames[index]) holds an unknown value", sql: statement.text)
    }

    // MARK: Checks

    /// Returns whether the row, as it was written, satisfies the write policy. This is the hidden last column of a
    /// woven statement.
    func isWithinPolicy() throws -> Bool {
        statement.integer(at: statement.columnCount - 1) == 1
    }

    private func type(at index: Int) -> SQLValueType {
        precondition(generation == statement.generation, "a row must not be used after its callback: \(statement.text)")
        precondition(index >= 0 && index < count, "there is no column \(index): \(statement.text)")
        return statement.type(at: index)
    }

    private func require(_ expected: SQLValueType, _ what: String, at index: Int) throws {
        let found = type(at: index)
        if found != expected {
            throw mismatch(index, "\(what), not \(found == .null ? "null" : "a value of another type")")
        }
    }

    private func mismatch(_ index: Int, _ what: String) -> DatabaseError {
        DatabaseError(.column, "column \(statement.columnNames[index]) must hold \(what)", sql: statement.text)
    }
}

/// The type of a column's value in one row.
enum SQLValueType: Sendable {
    case null, integer, real, text, blob
}

/// The source of a row: an SQLite statement positioned on it, or a PostgreSQL result that contains it.
class RowSource {
    final let text: String
    final var columnCount = 0
    /// Read only for an error that names a column.
    final lazy var columnNames: [String] = readNames()
    /// Counts rows and executions, to detect a `Row` that outlives its callback.
    final private(set) var generation: UInt64 = 0

    init(text: String) {
        self.text = text
    }

    final func nextRow() { generation &+= 1 }

    func readNames() -> [String] { preconditionFailure("a subclass must override the column names") }
    func type(at index: Int) -> SQLValueType { preconditionFailure("a subclass must override the column types") }
    func integer(at index: Int) -> Int64 { preconditionFailure("a subclass must override the reading of numbers") }
    func real(at index: Int) -> Double { preconditionFailure("a subclass must override the reading of numbers") }
    /// Returns the bytes of a text or blob. They are valid until the next row.
    func bytes(at index: Int, isText: Bool) -> UnsafeRawBufferPointer {
        preconditionFailure("a subclass must override the reading of bytes")
    }
}
