/// A statement that inserts rows, in the forms in which it is run: of 1, 2, 4 and so on up to 64 rows at once
/// (``RowParts``). They are made once, for as long as the process runs.
public struct Insertion: Sendable {
    /// 64 rows: some hundred binds, of which PostgreSQL takes 65,535 and SQLite 32,766.
    private static let rowsAtOnceBits = 6

    private let columns: Int
    /// By the logarithm of the number of rows; without binds.
    private let forms: [SQL]

    /// - Parameters:
    ///   - into: what stands before VALUES, and names `columns` columns.
    ///   - rest: what follows the rows, such as ON CONFLICT and RETURNING. Neither has values yet; the rest may have places
    ///     for some.
    public init(_ into: SQL, columns: Int, _ rest: SQL = "") {
        precondition(columns > 0 && into.binds.isEmpty && rest.binds.isEmpty, "the rows alone have values")
        self.columns = columns
        let row = "(" + Array(repeating: "?", count: columns).joined(separator: ", ") + ")"
        forms = (0...Self.rowsAtOnceBits).map { bits in
            let rows = SQL(unchecked: Array(repeating: row, count: 1 << bits).joined(separator: ", "))
            return "\(into) VALUES \(rows) \(rest)"
        }
    }

    /// The statements that insert rows whose values stand one after the other; none for no rows.
    ///
    /// - Parameter restValues: the values of what follows the rows.
    public func statements(of values: consuming [SQLValue], followedBy restValues: [SQLValue] = []) -> [SQL] {
        precondition(values.count % columns == 0, "a row has \(columns) values")
        let parts = RowParts.ranges(of: values.count / columns, most: 1 << Self.rowsAtOnceBits)
        guard parts.count == 1 else {
            return parts.map { rows in
                var statement = forms[rows.count.trailingZeroBitCount]
                statement.binds = values[rows.lowerBound * columns..<rows.upperBound * columns] + restValues
                return statement
            }
        }
        // The values become those of the one statement, without a copy.
        var statement = forms[parts[0].count.trailingZeroBitCount]
        statement.binds = values
        statement.binds += restValues
        return [statement]
    }
}
