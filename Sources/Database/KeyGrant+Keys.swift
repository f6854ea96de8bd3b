import Visibility

extension KeyGrant {
    /// Returns the keys that the rows grant to a scope's owner, at most `limit` of them.
    public func keys(of scope: Scope, in db: DatabaseConnection, limit: Int = .max) throws -> [String] {
        let members = scope.keys.sorted().compactMap { holder.columnValues(of: $0)?.first }
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

extension Scope {
    /// Returns the scope with the additional keys that rows grant to its owner. For decisions without SQL.
    public func adding(_ more: some Sequence<String>) -> Scope { Scope(tenant: tenant, keys: keys.union(more)) }
}
