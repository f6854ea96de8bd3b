/// The current row of a statement. It is valid only inside the callback that receives it; later use is a programmer's
/// error.
///
/// Columns are read by index, in the order of the SELECT. Every getter throws `DatabaseError.Code.column` if the column
/// is null (unless the getter's name says `optional`) or has another type: a stored number is never silently read as
/// text.
public struct Row {
    private let source: RowSource
    private let generation: UInt64
    /// The number of columns, without the hidden ones at the end: the owners of the row, and the check of its write
    /// policy.
    public let count: Int

    init(_ source: RowSource, hiddenColumns: Int) {
        self.source = source
        generation = source.generation
        count = source.columnCount - hiddenColumns
    }

    // MARK: Columns

    public func text(_ index: Int) throws -> String {
        try text(index, of: type(at: index))
    }

    public func integer(_ index: Int) throws -> Int {
        try require(.integer, "an integer", type(at: index), at: index)
        return Int(source.columns.integer(at: index))
    }

    /// Returns a real number. An integer counts as real, because SQLite stores `2.0` as an integer if it can.
    public func real(_ index: Int) throws -> Double {
        let found = type(at: index)
        if found != .integer { try require(.real, "a real", found, at: index) }
        return source.columns.real(at: index)
    }

    public func bool(_ index: Int) throws -> Bool {
        switch try integer(index) {
        case 0: return false
        case 1: return true
        case let other: throw mismatch(index, "0 or 1, not \(other)")
        }
    }

    public func blob(_ index: Int) throws -> [UInt8] {
        try require(.blob, "a blob", type(at: index), at: index)
        return Array(source.columns.bytes(at: index, isText: false))
    }

    /// Returns the bytes of a blob, or the UTF-8 of a text (stored JSON that is sent unchanged).
    public func bytes(_ index: Int) throws -> [UInt8] {
        let found = type(at: index)
        if found != .text { try require(.blob, "a text or a blob", found, at: index) }
        return Array(source.columns.bytes(at: index, isText: found == .text))
    }

    public func optionalText(_ index: Int) throws -> String? {
        let found = type(at: index)
        return found == .null ? nil : try text(index, of: found)
    }

    public func optionalInteger(_ index: Int) throws -> Int? { isNull(index) ? nil : try integer(index) }
    public func optionalBytes(_ index: Int) throws -> [UInt8]? { isNull(index) ? nil : try bytes(index) }

    /// Returns the value in the form in which it can be bound again.
    public func value(_ index: Int) -> SQLValue {
        switch type(at: index) {
        case .null: .null
        case .integer: .integer(source.columns.integer(at: index))
        case .real: .real(source.columns.real(at: index))
        case .text: .text(String(decoding: source.columns.bytes(at: index, isText: true), as: UTF8.self))
        case .blob: .blob(Array(source.columns.bytes(at: index, isText: false)))
        }
    }

    /// Returns the name of a column.
    public func name(_ index: Int) -> String { source.columns.name(at: index) }

    public func isNull(_ index: Int) -> Bool { type(at: index) == .null }

    /// Returns the error for a value of the right type that is not one of the values that the column may hold.
    public func unknownValue(_ index: Int) -> DatabaseError {
        DatabaseError(.corrupt, "column \(source.columns.name(at: index)) holds an unknown value", sql: source.text)
    }

    // MARK: Checks

    /// Returns whether the row, as it was written, satisfies the write policy. The hidden last column says so, in a
    /// statement that the policy is woven into.
    func isWithinPolicy() throws -> Bool {
        source.columns.integer(at: source.columnCount - 1) == 1
    }

    /// Returns the owners of the row, from the first hidden columns; an owner is nil for a null.
    func users(_ number: Int) throws -> [String?] {
        try (count..<count + number).map { index in
            let found = source.columns.type(at: index)
            return found == .null ? nil : try text(index, of: found)
        }
    }

    private func type(at index: Int) -> SQLValueType {
        precondition(generation == source.generation, "a row must not be used after its callback: \(source.text)")
        precondition(index >= 0 && index < count, "there is no column \(index): \(source.text)")
        return source.columns.type(at: index)
    }

    private func text(_ index: Int, of found: SQLValueType) throws -> String {
        try require(.text, "a text", found, at: index)
        return String(decoding: source.columns.bytes(at: index, isText: true), as: UTF8.self)
    }

    private func require(_ expected: SQLValueType, _ what: String, _ found: SQLValueType, at index: Int) throws {
        if found != expected {
            throw mismatch(index, "\(what), not \(found == .null ? "null" : "a value of another type")")
        }
    }

    private func mismatch(_ index: Int, _ what: String) -> DatabaseError {
        DatabaseError(.column, "column \(source.columns.name(at: index)) must hold \(what)", sql: source.text)
    }
}

/// The type of a column's value in one row.
enum SQLValueType: Sendable {
    case null, integer, real, text, blob
}

/// The columns of the current row, in an engine.
protocol RowColumns: AnyObject {
    /// Returns the name of a column, for an error.
    func name(at index: Int) -> String
    func type(at index: Int) -> SQLValueType
    func integer(at index: Int) -> Int64
    func real(at index: Int) -> Double
    /// Returns the bytes of a text or blob. They are valid until the next row.
    func bytes(at index: Int, isText: Bool) -> UnsafeRawBufferPointer
}

/// The source of rows: an SQLite statement positioned on one, or a PostgreSQL result that contains them.
final class RowSource {
    let text: String
    let columns: any RowColumns
    var columnCount: Int
    /// Counts rows and executions, to detect a `Row` that outlives its callback.
    private(set) var generation: UInt64 = 0

    init(text: String, _ columns: any RowColumns, count: Int) {
        (self.text, self.columns, columnCount) = (text, columns, count)
    }

    func nextRow() { generation &+= 1 }
}
