import Visibility

extension KeyGrant {
    /// Returns the keys that the rows grant to a scope's owner, at most `limit` of them.
    public func keys(of scope: Scope, in db: DatabaseConnection, limit: Int = .max) throws -> [String] {
        let members = scope.columnValues(of: holder).compactMap(\.first)
        guard !members.isEmpty else { return [] }
        let named = SQL(unchecked: ofColumn)
        let values = try db.rows(
            """
            SELECT \(named) FROM \(table, visibleTo: scope)
            WHERE \(SQL(unchecked: memberColumn)) IN \(values: members) LIMIT \(limit)
            """
        ) { row in try row.optionalText(0) }
        return values.compactMap { value in grantedKey.key { _ in value } }
    }
}
