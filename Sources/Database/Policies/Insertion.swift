import Values

/// A statement that inserts rows, prepared in forms of 1, 2, 4 and so on up to 64 rows (``RowParts``). The forms are
/// created once per process.
public struct Insertion: Sendable {
    /// 64 rows have some hundred binds; PostgreSQL accepts 65,535 and SQLite 32,766.
    private static let rowsAtOnceBits = 6

    public let columns: Int
    /// The statements by the logarithm of the number of rows, without binds.
    private let forms: [SQL]

    /// Creates the forms.
    ///
    /// - Parameters:
    ///   - into: The text before VALUES, which names `columns` columns.
    ///   - rest: The text after the rows, such as ON CONFLICT and RETURNING. Neither text has values yet; `rest` may
    ///     have placeholders.
    public init(_ into: SQL, columns: Int, _ rest: SQL = "") {
        precondition(columns > 0 && into.binds.isEmpty && rest.binds.isEmpty, "only the rows may have values")
        self.columns = columns
        let row = "(" + Array(repeating: "?", count: columns).joined(separator: ", ") + ")"
        forms = (0...Self.rowsAtOnceBits).map { bits in
            let rows = SQL(unchecked: Array(repeating: row, count: 1 << bits).joined(separator: ", "))
            return "\(into) VALUES \(rows) \(rest)"
        }
    }

    /// Returns the statements that insert rows, given their concatenated values. Returns an empty list without rows.
    ///
    /// - Parameters:
    ///   - tenant: The tenant of the rows, if the table is named within ``Values/ID/boundLater``.
    ///   - restValues: The values of the text after the rows.
    public func statements(
        of values: consuming [SQLValue], within tenant: ID<Tenant>? = nil, followedBy restValues: [SQLValue] = []
    ) -> [SQL] {
        precondition(values.count % columns == 0, "a row must have \(columns) values")
        let parts = RowParts.ranges(of: values.count / columns, most: 1 << Self.rowsAtOnceBits)
        guard parts.count == 1 else {
            return parts.map { rows in
                var statement = form(rows.count, within: tenant)
                statement.binds = values[rows.lowerBound * columns..<rows.upperBound * columns] + restValues
                return statement
            }
        }
        // Moves the values into the single statement, without a copy.
        var statement = form(parts[0].count, within: tenant)
        statement.binds = values
        statement.binds += restValues
        return [statement]
    }

    private func form(_ rows: Int, within tenant: ID<Tenant>?) -> SQL {
        var statement = forms[rows.trailingZeroBitCount]
        statement.tenant = tenant
        return statement
    }
}
