import Database
import Values

/// A table in the order of an id, for walks that look at some rows in each transaction.
struct WalkedTable: Sendable {
    let table: Table
    let column: SQL
    let why: Unscoped

    init(_ table: Table, by column: SQL, _ why: Unscoped) {
        (self.table, self.column, self.why) = (table, column, why)
    }
}

extension Transaction {
    /// Returns the last id of the next rows of a table of the tenant; nil behind the last row.
    func lastID(after place: String?, of count: Int, in walked: WalkedTable) throws -> String? {
        let column = walked.column
        return try db.row(
            """
            SELECT max(\(column)) FROM (SELECT \(column) FROM \(walked.table, within: tenant, walked.why)
                WHERE \(column) > \(place ?? "") ORDER BY \(column) LIMIT \(count)) AS next
            """
        ) { try $0.optionalText(0) } ?? nil
    }

    /// Looks for the first of the next rows that satisfies a condition.
    ///
    /// - Parameter condition: About the row `walked`.
    /// - Returns: The id of that row, and the last id of the rows; nil behind the last row.
    func look<Item>(
        after place: String?, of count: Int, in walked: WalkedTable, where condition: SQL
    ) throws -> (found: ID<Item>?, last: String)? {
        guard let last = try lastID(after: place, of: count, in: walked) else { return nil }
        let column = walked.column
        let found: ID<Item>? = try db.row(
            """
            SELECT walked.\(column) FROM \(walked.table, within: tenant, walked.why) AS walked
            WHERE walked.\(column) > \(place ?? "") AND walked.\(column) <= \(last)
                AND \(condition)
            ORDER BY walked.\(column) LIMIT 1
            """
        ) { try $0.id(0) }
        return (found, last)
    }
}
