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
/// A class, because a template holds it and it holds templates.
public final class Membership: Sendable, Hashable {
    /// The members' table and its tenant's column.
    public let table: String
    public let tenantColumn: String
    /// The key by which the caller sees its own rows of the table: `user:{user_id}`.
    public let holder: AudienceTemplate
    /// The key that a row gives: `conversation:{conversation_id}`, over the members' own column.
    public let given: AudienceTemplate
    public let memberColumn: String
    public let ofColumn: String

    /// - Parameters:
    ///   - template: a key with exactly one column.
    ///   - holder: the template of the members' own rows, over `member`.
    public init(
        _ template: AudienceTemplate, table: String, tenantColumn: String, holder: AudienceTemplate, member: String,
        of column: String
    ) {
        precondition(template.columns.count == 1, "a key that is held has one column: \(template)")
        self.table = table
        self.tenantColumn = tenantColumn
        self.holder = holder
        given = template.over(column)
        memberColumn = member
        ofColumn = column
    }

    public static func == (left: Membership, right: Membership) -> Bool {
        left.table == right.table && left.given == right.given && left.memberColumn == right.memberColumn
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(table)
        hasher.combine(given)
    }
}

extension AudienceTemplate {
    /// The same key, held by whoever the membership names too.
    public func held(by membership: Membership) -> AudienceTemplate {
        precondition(self.membership == nil, "a key is held by one table: \(self)")
        var held = self
        held.membership = membership
        return held
    }
}
