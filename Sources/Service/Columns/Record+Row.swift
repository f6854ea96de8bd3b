import Database
import Values

// The members of records as columns of SQL statements. The texts are created once and stay the same, because prepared
// statements are found by their text.

extension Record {
    /// Returns the columns in the order of the members: `id, user_id, …`.
    ///
    /// - Parameter alias: The name of the table in the statement.
    static func columns(of alias: String? = nil) -> SQL {
        SQL(unchecked: columnNames.map { name in alias.map { "\($0).\(name)" } ?? name }.joined(separator: ", "))
    }

    /// Returns the assignments of ON CONFLICT DO UPDATE: `name = excluded.name, …`.
    static func replacement(keeping kept: Set<String>) -> SQL {
        let replaced = columnNames.filter { !kept.contains($0) }
        return SQL(unchecked: replaced.map { "\($0) = excluded.\($0)" }.joined(separator: ", "))
    }

    static var columnNames: [String] {
        var names = ColumnNames()
        var empty = Self()
        empty.visit(&names)
        return names.names
    }

    /// Reads the columns of a row, in the order of the members.
    init(row: Row) throws { try self.init(row: row, from: 0) }

    /// Reads consecutive columns of a row, beginning with an index.
    init(row: Row, from first: Int) throws {
        var members = RowMembers(row: row, index: first)
        self.init()
        visit(&members)
        if let fault = members.fault { throw fault }
    }

    /// The values in the order of the columns, as binds: `?, ?, …`.
    var values: SQL {
        var row = RowValues()
        row.append(self)
        let places = repeatElement("?", count: row.values.count).joined(separator: ", ")
        return SQL(unchecked: places, binds: row.values)
    }
}

/// The values of rows, one after the other.
struct RowValues {
    private(set) var values: [SQLValue] = []

    mutating func reserveCapacity(_ count: Int) { values.reserveCapacity(count) }

    mutating func append(_ value: some SQLBindable) { values.append(value.sqlValue) }

    mutating func append(_ record: some Record) { record.visitUnchanged(&self) }
}

extension RowValues: MemberVisitor, ColumnWriter {
    mutating func member(_: StaticString, in column: StaticString?, _ value: inout some MemberValue) {
        value.write(column: &self)
    }

    mutating func hidden(_: StaticString, in column: StaticString?, _ value: inout some MemberValue) {
        value.write(column: &self)
    }

    mutating func derived(_: StaticString, _: @autoclosure () -> some JSONWritable) {}

    mutating func null() { values.append(.null) }
    mutating func text(_ value: String) { values.append(.text(value)) }
    mutating func integer(_ value: Int64) { values.append(.integer(value)) }
    mutating func real(_ value: Double) { values.append(.real(value)) }
    mutating func utf8(_ value: [UInt8]) { values.append(.utf8(value)) }
}

/// The visitor that assigns the columns of a row to the members. It keeps the first error, because `visit` does not
/// throw.
private struct RowMembers: MemberVisitor {
    let row: Row
    var index: Int
    var fault: (any Error)?

    mutating func member(_: StaticString, in _: StaticString?, _ value: inout some MemberValue) {
        read(&value)
    }

    mutating func hidden(_: StaticString, in _: StaticString?, _ value: inout some MemberValue) {
        read(&value)
    }

    mutating func derived(_: StaticString, _: @autoclosure () -> some JSONWritable) {}

    private mutating func read<Value: MemberValue>(_ value: inout Value) {
        do { value = try Value(column: Column(row: row, index: index)) } catch { fault = fault ?? error }
        index += 1
    }

    private struct Column: ColumnReader {
        let row: Row
        let index: Int

        var isNull: Bool { row.isNull(index) }
        func text() throws -> String { try row.text(index) }
        func integer() throws -> Int { try row.integer(index) }
        func bool() throws -> Bool { try row.bool(index) }
        func real() throws -> Double { try row.real(index) }
        func bytes() throws -> [UInt8] { try row.bytes(index) }
        func unknownValue() -> any Error { row.unknownValue(index) }
    }
}

/// The visitor that collects the names of the columns: those given, and the others in snake case.
private struct ColumnNames: MemberVisitor {
    var names: [String] = []

    mutating func member(_ name: StaticString, in column: StaticString?, _: inout some MemberValue) {
        append(name, column)
    }

    mutating func hidden(_ name: StaticString, in column: StaticString?, _: inout some MemberValue) {
        append(name, column)
    }

    mutating func derived(_: StaticString, _: @autoclosure () -> some JSONWritable) {}

    private mutating func append(_ name: StaticString, _ column: StaticString?) {
        let snake = "\(name)".map { $0.isUppercase ? "_\($0.lowercased())" : "\($0)" }.joined()
        names.append(column.map { "\($0)" } ?? snake)
    }
}
