import Visibility

/// Keys that a caller has because rows of the service grant them, beside those that its token brings.
///
/// Whoever has a row in `conversation_members` has `conversation:{conversation_id}`. It is declared once, where a
/// policy asks for such a key:
///
/// ```swift
/// let members = Table("conversation_members", read: ["user:{user_id}"], write: ["user:{user_id}"])
/// let messages = Table(
///     "messages",
///     read: [.granted("conversation:{conversation_id}", by: members, member: "user_id", of: "conversation_id")], …)
/// ```
///
/// From it come the SQL predicate, PostgreSQL's policy, and `keys(of:in:)` for whoever decides without SQL. A
/// membership begins and ends with its row, in the transaction that writes it.
///
/// A class, because a policy has it and it has a table, which has policies.
public final class Membership: Sendable {
    public let table: Table
    /// The key by which the caller sees its own rows of the table: `user:{user_id}`.
    public let holder: AudienceTemplate
    /// The key that a row gives: `conversation:{conversation_id}`, over the members' own column.
    public let given: AudienceTemplate
    let memberColumn: String
    let ofColumn: String

    init(_ template: AudienceTemplate, by table: Table, member: String, of column: String) {
        precondition(template.columns.count == 1, "a key that is held has one column: \(template)")
        guard let holder = try? AudienceTemplate("user:{\(member)}"), isSQLIdentifier(column) else {
            preconditionFailure("\(member) or \(column) cannot be a column of \(table.name)")
        }
        // The question is asked with the caller's own rights: what the members' table hid from it, it would not have.
        // And a table that itself asked for memberships would ask without end (PostgreSQL refuses such policies).
        precondition(
            table.read.templates.contains(holder) && table.read.entries.allSatisfy { $0.membership == nil },
            "\(table.name) must show everybody their own rows, by \(holder), and ask for no membership itself")
        self.table = table
        self.holder = holder
        given = template.over(column)
        memberColumn = member
        ofColumn = column
    }

    /// `EXISTS (SELECT 1 FROM members …)`: one look into the members' index for each row that is asked about.
    ///
    /// - Parameters:
    ///   - tenant: what the tenant is compared with.
    ///   - comparison: the comparison of the member's column, from `= ?` on.
    ///   - column: the row's own column, with its table's name: the members' table may have one of the same name.
    func question(tenant: String, comparison: String, column: String) -> String {
        // The name of the members' table within the question; no table or alias of ours begins with `_`.
        let alias = "_held"
        return """
            EXISTS (SELECT 1 FROM \(table.name) AS \(alias) WHERE \(alias).\(table.tenantColumn) = \(tenant) \
            AND \(alias).\(memberColumn) \(comparison) AND \(alias).\(ofColumn) = \(column))
            """
    }
}

/// One way to a table's rows: a template, which rows have its key, and the rows that give it to users whose tokens do not.
public struct PolicyEntry: Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    public let template: AudienceTemplate
    /// Nil: tokens alone bring the key.
    public let membership: Membership?
    /// What must stand in a row's column for the row to have the key; nil: each row has it.
    public let condition: Condition?

    /// That a word stands in a column.
    public struct Condition: Sendable {
        public let column: String
        public let value: String

        /// In SQL, as it stands there.
        func text(prefix: String) -> String { "\(prefix)\(column) = '\(value)'" }
    }

    init(_ template: AudienceTemplate, membership: Membership? = nil, condition: Condition? = nil) {
        self.template = template
        self.membership = membership
        self.condition = condition
    }

    public init(stringLiteral text: String) { self.init(AudienceTemplate(stringLiteral: text)) }

    /// The key, for rows with the word in the column: `.when("everyone", "visibility", is: "public")`.
    ///
    /// The condition narrows which rows have the key, and not what the key means: it is the same wherever it stands.
    ///
    /// - Parameter value: lower-case letters, digits, `_` and `-`, since it stands in SQL.
    public static func when(_ template: AudienceTemplate, _ column: String, is value: String) -> PolicyEntry {
        let isPlain = value.utf8.allSatisfy { byte in
            (97...122).contains(byte) || (48...57).contains(byte) || byte == UInt8(ascii: "_")
                || byte == UInt8(ascii: "-")
        }
        precondition(isSQLIdentifier(column) && isPlain && !value.isEmpty, "no condition of SQL: \(column) is \(value)")
        return PolicyEntry(template, condition: Condition(column: column, value: value))
    }

    /// The columns it looks at.
    var columns: [String] { template.columns + (condition.map { [$0.column] } ?? []) }

    /// The key of one row, or nil when a column it needs is null or it does not meet the condition.
    func key(of row: (String) -> String?) -> String? {
        if let condition {
            // Bytes, as the database compares.
            guard let value = row(condition.column), value.utf8.elementsEqual(condition.value.utf8) else { return nil }
        }
        return template.key(of: row)
    }

    /// As the catalog's page shows it.
    public var description: String {
        if let condition { return "\(template) when \(condition.column) is \(condition.value)" }
        return membership.map { "\(template) held by \($0.table.name)" } ?? template.description
    }

    /// A key of the row that the caller need not bring: it is granted to whoever has a row in the members' table.
    ///
    /// - Parameters:
    ///   - template: over the columns of the table whose policy this is.
    ///   - table: it shows everybody their own rows, by the plain template `user:{member}`. An index on its tenant,
    ///     member and `column` answers the question with one look.
    ///   - member: the column of the members' table that names the user.
    ///   - column: the column of the members' table that is compared with the template's.
    public static func granted(
        _ template: AudienceTemplate, by table: Table, member: String, of column: String
    ) -> PolicyEntry {
        PolicyEntry(template, membership: Membership(template, by: table, member: member, of: column))
    }
}
