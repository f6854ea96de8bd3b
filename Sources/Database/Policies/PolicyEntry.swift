import Visibility

/// One entry of a policy: a template, a condition for the rows that have its key, and the rows that grant the
/// key to users whose tokens lack it.
public struct PolicyEntry: Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    public let template: AudienceTemplate
    /// Nil if only tokens carry the key.
    public let grant: KeyGrant?
    /// The condition on a row for it to have the key; nil if every row has it.
    public let condition: Condition?

    /// A condition that a column equals a word.
    public struct Condition: Sendable {
        public let column: String
        public let value: String

        /// Returns the condition in SQL.
        func text(prefix: String) -> String { "\(prefix)\(column) = '\(value)'" }
    }

    init(_ template: AudienceTemplate, grant: KeyGrant? = nil, condition: Condition? = nil) {
        self.template = template
        self.grant = grant
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
        precondition(
            isSQLIdentifier(column) && isPlain && !value.isEmpty, "not a valid SQL condition: \(column) is \(value)")
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
        return grant.map { "\(template) granted by \($0.table.name)" } ?? template.description
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
        PolicyEntry(template, grant: KeyGrant(template, by: table, member: member, of: column))
    }
}
