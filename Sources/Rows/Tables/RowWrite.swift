import Values

/// The kind of a write to a row.
public enum RowOperation: String, Sendable, Hashable, CaseIterable {
    case insert, update, delete
}

/// A write to one row, with the data that declarations of tables need.
///
/// - An insert has no old row, a delete no new one.
/// - The old row of an update or delete may consist of the primary key alone, because databases send no more unless
///   configured to (`REPLICA IDENTITY FULL`). Missing columns are taken from stored memberships if available.
/// - A column that is absent from the new row has not changed, unless it is among ``withheldColumns``.
public struct RowWrite: Sendable, Hashable {
    public typealias Row = [String: JSONValue]

    public let operation: RowOperation
    public let old: Row?
    public let new: Row?
    /// The writing user, if the message or its headers name one; otherwise the declared columns are read.
    public let actorId: String?
    public let originId: String?
    /// Columns that the sender left out of the new row although they may have changed.
    public let withheldColumns: Set<String>

    public init(
        _ operation: RowOperation, old: Row?, new: Row?, actorId: String? = nil, originId: String? = nil,
        withheldColumns: Set<String> = []
    ) {
        self.operation = operation
        self.old = operation == .insert ? nil : old
        self.new = operation == .delete ? nil : new
        self.actorId = actorId
        self.originId = originId
        self.withheldColumns = withheldColumns
    }
}

extension RowWrite.Row {
    /// Returns the row completed with another row's columns. Most rows are complete, and then nothing is copied.
    func completed(by other: Self, except withheld: Set<String> = []) -> Self {
        guard other.keys.contains(where: { index(forKey: $0) == nil }) else { return self }
        var row = self
        for (column, value) in other where row[column] == nil && !withheld.contains(column) { row[column] = value }
        return row
    }
}

extension JSONValue {
    /// The value as a segment of a key. Nil for a value that cannot name anything: null, the empty text, a fraction, a
    /// list, an object, or a text longer than ``TableLimits/keyValueBytesMax``. Nil also for a text with U+0000:
    /// PostgreSQL cannot store it, so such a row would make the whole delivery fail.
    ///
    /// Integers and texts of the same digits make the same key, as in a token's claims.
    var keyText: String? {
        switch self {
        case .string(let text):
            text.isEmpty || text.utf8.count > TableLimits.keyValueBytesMax || text.utf8.contains(0) ? nil : text
        case .integer(let number): "\(number)"
        case .bool(let flag): flag ? "true" : "false"
        case .null, .number, .array, .object: nil
        }
    }

    /// Whether two values of a column are the same. Numbers are compared by value, regardless of spelling, and an id
    /// that is stored as text equals the number of the same digits.
    func isSameColumnValue(as other: JSONValue) -> Bool {
        switch (self, other) {
        case (.integer(let left), .number(let right)): Double(left) == right
        case (.number(let left), .integer(let right)): left == Double(right)
        case (.string(let text), .integer(let number)), (.integer(let number), .string(let text)): text == "\(number)"
        // Compares bytes, not canonically equivalent texts, as databases do.
        case (.string(let left), .string(let right)): left.hasBytes(of: right)
        default: self == other
        }
    }
}
