import Visibility

/// Keys that a caller holds because rows of the service say so, beside those that its token brings.
///
/// Whoever has a row in `conversation_members` holds `conversation:{conversation_id}`. It is declared once, where a
/// policy asks for such a key:
///
/// ```swift
/// let members = Table("conversation_members", read: ["user:{user_id}"], write: ["user:{user_id}"])
/// let messages = Table(
///     "messages",
///     read: [.held("conversation:{conversation_id}", by: members, member: "user_id", of: "conversation_id")], …)
/// ```
///
/// From it come the SQL predicate, PostgreSQL's policy, and `keys(of:in:)` for whoever decides without SQL. A
/// membership begins and ends with its row, in the transaction that writes it.
///
/// A class, because a policy holds it and it holds a table, which has policies.
public final class Membership: Sendable, Hashable {
    let table: Table
    /// The key by which the caller sees its own rows of the table: `user:{user_id}`.
    let holder: AudienceTemplate
    /// The key that a row gives: `conversation:{conversation_id}`, over the members' own column.
    let given: AudienceTemplate
    let memberColumn: String
    let ofColumn: String

    init(_ template: AudienceTemplate, by table: Table, member: String, of column: String) {
        precondition(template.columns.count == 1, "a key that is held has one column: \(template)")
        guard let holder = try? AudienceTemplate("user:{\(member)}"), isSQLIdentifier(column) else {
            preconditionFailure("\(member) or \(column) cannot be a column of \(table.name)")
        }
        // The question is asked with the caller's own rights: what the members' table hid from it, it would not hold.
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

    public static func == (left: Membership, right: Membership) -> Bool {
        left.table == right.table && left.given == right.given && left.memberColumn == right.memberColumn
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(table.name)
        hasher.combine(given)
    }

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
            EXISTS (SELECT 1 FROM \(table.name) AS \(alias) WHERE \(alias).\(table.tenantColumn) = \(tenant) \
            AND \(alias).\(memberColumn) \(isMember) AND \(alias).\(ofColumn) = \(column))
            """
    }

    /// The keys that a scope's owner holds by this membership, at most `limit` of them.
    public func keys(of scope: Scope, in db: Connection, limit: Int = .max) throws -> [String] {
        let members = scope.keys.sorted().compactMap { holder.columnValues(of: $0)?.first }
        guard !members.isEmpty else { return [] }
        let named = SQL(unchecked: ofColumn)
        let held = try db.rows(
            """
            SELECT \(named) FROM \(table, visibleTo: scope)
            WHERE \(SQL(unchecked: memberColumn)) IN \(values: members) LIMIT \(limit)
            """
        ) { row in try row.optionalText(0) }
        return held.compactMap { value in given.key { _ in value } }
    }
}

/// One way to a table's rows: a template, and the rows that give its key to users whose tokens do not.
public struct PolicyEntry: Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
    public let template: AudienceTemplate
    /// Nil: tokens alone bring the key.
    public let membership: Membership?

    public init(_ template: AudienceTemplate) {
        self.template = template
        membership = nil
    }

    public init(stringLiteral text: String) { self.init(AudienceTemplate(stringLiteral: text)) }

    private init(_ template: AudienceTemplate, _ membership: Membership) {
        self.template = template
        self.membership = membership
    }

    /// As the catalog's page shows it.
    public var description: String {
        membership.map { "\(template) held by \($0.table.name)" } ?? template.description
    }

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
    ) -> PolicyEntry {
        PolicyEntry(template, Membership(template, by: table, member: member, of: column))
    }
}

extension Scope {
    /// The scope with more keys: what its owner holds by memberships, for those who decide without SQL.
    public func adding(_ more: some Sequence<String>) -> Scope { Scope(tenant: tenant, keys: keys.union(more)) }
}
