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
/// membership begins and ends with its row, in the transaction that writes the row.
///
/// It is a class because of the cycle: a policy refers to a membership, which refers to a table, which has policies.
public final class Membership: Sendable {
    public let table: Table
    /// The caller's key to its own rows of the table: `user:{user_id}`.
    public let holder: AudienceTemplate
    /// The key that a row grants: `conversation:{conversation_id}`, over the members' own column.
    public let given: AudienceTemplate
    let memberColumn: String
    let ofColumn: String

    init(_ template: AudienceTemplate, by table: Table, member: String, of column: String) {
        precondition(template.columns.count == 1, "a key that is held has one column: \(template)")
        guard let holder = try? AudienceTemplate("user:{\(member)}"), isSQLIdentifier(column) else {
            preconditionFailure("\(member) or \(column) cannot be a column of \(table.name)")
        }
        // The membership query runs with the caller's own rights, so rows of the members' table that are hidden from
        // the caller would not count. A table whose policy itself asks for memberships would recurse without end
        // (PostgreSQL refuses such policies).
        precondition(
            table.read.templates.contains(holder) && table.read.entries.allSatisfy { $0.membership == nil },
            "\(table.name) must show everybody their own rows, by \(holder), and ask for no membership itself")
        self.table = table
        self.holder = holder
        given = template.over(column)
        memberColumn = member
        ofColumn = column
    }

    /// Returns `EXISTS (SELECT 1 FROM members …)`: one lookup in the members' index for each tested row.
    ///
    /// - Parameters:
    ///   - tenant: The expression that the tenant is compared with.
    ///   - comparison: The comparison of the member's column, from `= ?` on.
    ///   - column: The row's own column, qualified, because the members' table may have a column of the same name.
    func question(tenant: String, comparison: String, column: String) -> String {
        // The alias of the members' table in the query. No other table or alias of the service begins with `_`.
        let alias = "_held"
        return """
            EXISTS (SELECT 1 FROM \(table.name) AS \(alias) WHERE \(alias).\(table.tenantColumn) = \(tenant) \
            AND \(alias).\(memberColumn) \(comparison) AND \(alias).\(ofColumn) = \(column))
            """
    }
}

/// One entry of a policy: a template, a condition for the rows that have its key, and the membership that grants the
/// key to users whose tokens lack it.
public struct PolicyEntry: Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    public let template: AudienceTemplate
    /// Nil if only tokens carry the key.
    public let membership: Membership?
    /// The condition on a row for it to have the key; nil if every row has it.
    public let condition: Condition?

    /// A condition that a column equals a word.
    public struct Condition: Sendable {
        public let column: String
        public let value: String

        /// Returns the condition in SQL.
        func text(prefix: String) -> String { "\(prefix)\(column) = '\(value)'" }
    }

    init(_ template: AudienceTemplate, membership: Membership? = nil, condition: Condition? = nil) {
        self.template = template
        self.membership = membership
        self.condition = condition
    }

    public init(stringLiteral text: String) { self.init(AudienceTemplate(stringLiteral: text)) }

    /// Returns an entry for rows with this word in the column: `.when("everyone", "visibility", is: "public")`.
    ///
    /// The condition narrows the set of rows that have the key. It does not change the meaning of the key, which is the
    /// same everywhere.
    ///
    /// - Parameter value: Lower-case letters, digits, `_` and `-`, because the value is embedded in SQL.
    public static func when(_ template: AudienceTemplate, _ column: String, is value: String) -> PolicyEntry {
        let isPlain = value.utf8.allSatisfy { byte in
            (97...122).contains(byte) || (48...57).contains(byte) || byte == UInt8(ascii: "_")
                || byte == UInt8(ascii: "-")
        }
        precondition(isSQLIdentifier(column) && isPlain && !value.isEmpty, "no condition of SQL: \(column) is \(value)")
        return PolicyEntry(template, condition: Condition(column: column, value: value))
    }

    /// The columns that the entry reads.
    var columns: [String] { template.columns + (condition.map { [$0.column] } ?? []) }

    /// Returns the key of one row; nil if a required column is null, or the row does not meet the condition.
    func key(of row: (String) -> String?) -> String? {
        if let condition {
            // Compares bytes, as the database does.
            guard let value = row(condition.column), value.utf8.elementsEqual(condition.value.utf8) else { return nil }
        }
        return template.key(of: row)
    }

    /// The entry in the form that the catalog's page shows.
    public var description: String {
        if let condition { return "\(template) when \(condition.column) is \(condition.value)" }
        return membership.map { "\(template) held by \($0.table.name)" } ?? template.description
    }

    /// Returns an entry whose key the caller's token need not carry: every user with a row in the members' table has
    /// it.
    ///
    /// - Parameters:
    ///   - template: A template over the columns of the policy's own table.
    ///   - table: The members' table. It shows all users their own rows, by the plain template `user:{member}`. An
    ///     index on its tenant, member and `column` answers the query with one lookup.
    ///   - member: The column of the members' table that names the user.
    ///   - column: The column of the members' table that is compared with the template's column.
    public static func granted(
        _ template: AudienceTemplate, by table: Table, member: String, of column: String
    ) -> PolicyEntry {
        PolicyEntry(template, membership: Membership(template, by: table, member: member, of: column))
    }
}
