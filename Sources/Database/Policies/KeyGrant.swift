import Visibility

/// A rule under which rows of the service grant keys to a caller, in addition to the keys of its token.
///
/// A user with a row in `conversation_members` has the key `conversation:{conversation_id}`. The rule is declared once,
/// in the policy that needs such a key:
///
/// ```swift
/// let members = Table("conversation_members", read: ["user:{user_id}"], write: ["user:{user_id}"])
/// let messages = Table(
///     "messages",
///     read: [.granted("conversation:{conversation_id}", by: members, member: "user_id", of: "conversation_id")], …)
/// ```
///
/// The SQL predicate, PostgreSQL's policy, and `keys(of:in:)` for decisions without SQL are derived from it. A
/// grant begins and ends with its row, in the transaction that writes the row.
///
/// It is a class because of the cycle: a policy refers to a grant, which refers to a table, which has policies.
public final class KeyGrant: Sendable {
    public let table: Table
    /// The caller's key to its own rows of the table: `user:{user_id}`.
    public let holder: AudienceTemplate
    /// The key that a row grants: `conversation:{conversation_id}`, over the members' own column.
    public let grantedKey: AudienceTemplate
    let memberColumn: String
    let ofColumn: String

    init(_ template: AudienceTemplate, by table: Table, member: String, of column: String) {
        precondition(template.columns.count == 1, "a membership key must have exactly one column: \(template)")
        guard let holder = try? AudienceTemplate("user:{\(member)}"), isSQLIdentifier(column) else {
            preconditionFailure("\(member) or \(column) cannot be a column of \(table.name)")
        }
        // The subquery runs with the caller's own rights, so rows of the members' table that are hidden from
        // the caller would not count. A table whose policy itself asks for grants would recurse without end
        // (PostgreSQL refuses such policies).
        precondition(
            table.read.templates.contains(holder) && table.read.entries.allSatisfy { $0.grant == nil },
            "\(table.name) must let users read their own rows by \(holder), without a membership")
        self.table = table
        self.holder = holder
        grantedKey = template.over(column)
        memberColumn = member
        ofColumn = column
    }

    /// Returns `EXISTS (SELECT 1 FROM members …)`: one lookup in the members' index for each tested row.
    ///
    /// - Parameters:
    ///   - tenant: The expression that the tenant is compared with.
    ///   - comparison: The comparison of the member's column, from `= ?` on.
    ///   - column: The row's own column, qualified, because the members' table may have a column of the same name.
    func existsClause(tenant: String, comparison: String, column: String) -> String {
        // The alias of the members' table in the query. No other table or alias of the service begins with `_`.
        let alias = "_held"
        return """
            EXISTS (SELECT 1 FROM \(table.name) AS \(alias) WHERE \(alias).\(table.tenantColumn) = \(tenant) \
            AND \(alias).\(memberColumn) \(comparison) AND \(alias).\(ofColumn) = \(column))
            """
    }
}
