import Visibility

extension Membership {
    /// The name of the members' table within the question; no table or alias of ours begins with `_`.
    private static let alias = "_held"

    /// `EXISTS (SELECT 1 FROM members …)`: one look into the members' index for each row that is asked about.
    ///
    /// - Parameters:
    ///   - tenant: what the tenant is compared with.
    ///   - isMember: the condition on the member's column, from `= ?` on.
    ///   - column: the row's own column, with its table's name: the members' table may have one of the same name.
    func question(tenant: String, isMember: String, column: String) -> String {
        let alias = Self.alias
        return """
            EXISTS (SELECT 1 FROM \(table) AS \(alias) WHERE \(alias).\(tenantColumn) = \(tenant) \
            AND \(alias).\(memberColumn) \(isMember) AND \(alias).\(ofColumn) = \(column))
            """
    }

    /// The keys that a scope's owner holds by this membership, at most `limit` of them.
    public func keys(of scope: Scope, in db: Connection, limit: Int = .max) throws -> [String] {
        let members = scope.keys.sorted().compactMap { holder.columnValues(of: $0)?.first }
        guard !members.isEmpty else { return [] }
        let named = SQL(unchecked: ofColumn)
        // What the caller's own rows are, its key alone decides.
        let table = Table(table, tenantColumn: tenantColumn, read: [holder], write: [])
        let held = try db.rows(
            """
            SELECT \(named) FROM \(table, visibleTo: scope)
            WHERE \(SQL(unchecked: memberColumn)) IN \(values: members) LIMIT \(limit)
            """
        ) { row in try row.optionalText(0) }
        return held.compactMap { value in given.key { _ in value } }
    }
}

extension AudienceTemplate {
    /// A key of the row that the caller need not bring: it is held by whoever has a row in the members' table.
    ///
    /// - Parameters:
    ///   - template: over the columns of the table whose policy this is.
    ///   - table: it shows everybody their own rows, by the plain template `user:{member}`. An index on its tenant,
    ///     member and `column` answers the question with one look.
    ///   - member: the column of the members' table that names the user.
    ///   - column: the column of the members' table that is compared with the template's.
    public static func held(
        _ template: AudienceTemplate, by table: Table, member: String, of column: String
    ) -> AudienceTemplate {
        guard let holder = try? AudienceTemplate("user:{\(member)}"), isSQLIdentifier(member), isSQLIdentifier(column)
        else { preconditionFailure("\(member) or \(column) cannot be a column of \(table.name)") }
        // The question is asked with the caller's own rights: what the members' table hid from it, it would not hold.
        // And a table that itself asked for memberships would ask without end (PostgreSQL refuses such policies).
        precondition(
            table.read.templates.contains(holder) && table.read.templates.allSatisfy { $0.membership == nil },
            "\(table.name) must show everybody their own rows, by \(holder), and ask for no membership itself")
        return template.held(
            by: Membership(
                template, table: table.name, tenantColumn: table.tenantColumn, holder: holder, member: member,
                of: column))
    }
}

extension Scope {
    /// The scope with more keys: what its owner holds by memberships, for those who decide without SQL.
    public func adding(_ more: some Sequence<String>) -> Scope { Scope(tenant: tenant, keys: keys.union(more)) }
}
