import Database
import Values

/// Walks over tables in the order of an id, some rows in each transaction.
extension Transaction {
    /// Returns the last id of the next rows of a table of the tenant; nil behind the last row.
    func lastID(
        after place: String?, of count: Int, column: SQL, in table: Table, _ why: Unscoped
    ) throws -> String? {
        try db.row(
            """
            SELECT max(\(column)) FROM (SELECT \(column) FROM \(table, within: tenant, why)
                WHERE \(column) > \(place ?? "") ORDER BY \(column) LIMIT \(count)) AS next
            """
        ) { try $0.optionalText(0) } ?? nil
    }

    /// Looks for the first of the next rows that satisfies a condition.
    ///
    /// - Parameter condition: About the row `walked`.
    /// - Returns: The id of that row, and the last id of the rows; nil behind the last row.
    func look<Item>(
        after place: String?, of count: Int, column: SQL, in table: Table, _ why: Unscoped, where condition: SQL
    ) throws -> (found: ID<Item>?, last: String)? {
        guard let last = try lastID(after: place, of: count, column: column, in: table, why) else { return nil }
        let found: ID<Item>? = try db.row(
            """
            SELECT walked.\(column) FROM \(table, within: tenant, why) AS walked
            WHERE walked.\(column) > \(place ?? "") AND walked.\(column) <= \(last)
                AND \(condition)
            ORDER BY walked.\(column) LIMIT 1
            """
        ) { try $0.id(0) }
        return (found, last)
    }
}
