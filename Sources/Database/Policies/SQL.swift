import Values

/// An SQL text in which every interpolated value is a bind and every table name carries its policy.
///
/// ```swift
/// let unseen: SQL = "seen_at IS NULL"
/// try db.rows("SELECT * FROM \(notifications, visibleTo: scope) WHERE user_id = \(userId) AND \(unseen)") { … }
/// try db.run("UPDATE \(notifications, writableBy: scope) SET seen_at = \(now) WHERE id = \(id)")
/// ```
///
/// | interpolation | becomes |
/// |---|---|
/// | `\(value)` | a bind |
/// | `\(values: list)` | `(?, ?, …)`; for no values a subquery without rows, so `IN` and `NOT IN` stay correct |
/// | `\(fragment)` | the text and the binds of another `SQL` |
/// | `\(table, visibleTo: scope)` | a subquery of the visible rows, named like the table or by a following `AS` |
/// | `\(table, writableBy: scope)` | after `UPDATE`, `DELETE FROM`, `INSERT INTO`: the bare name, the policy woven in (see `woven`); elsewhere as `visibleTo`, by the write policy |
/// | `\(table, of: user, in: tenant)` | as `writableBy`, for the rows of one user: work of the service for that user |
/// | `\(table, within: tenant, .reaction("why"))` | the same for the rows of one tenant |
/// | `\(table, unscoped: .bookkeeping("why"))` | the bare name: work that spans tenants |
/// | `\(serviceTable)` | the bare name of a table whose rows name no tenant |
///
/// `visibleTo`, `writableBy`, `of` and `within` add their condition themselves, and PostgreSQL checks it once more by
/// row-level security. A statement stays in one tenant.
///
/// A `String` is always a bind. The only way to text made at run time is `SQL(unchecked:)`.
public struct SQL: ExpressibleByStringInterpolation, Sendable {
    public internal(set) var text: String
    public internal(set) var binds: [SQLValue]
    var target: WriteTarget?
    /// The tables that the statement names without a scope, and the tables that it names with a scope.
    var unscoped: [String] = []
    var scoped: [String] = []
    /// The tenant in which the statement stays; nil if no table is named within a tenant, or of a user.
    var fence: Fence?

    /// Creates SQL from an unchecked text. Use it only for text of our own (a column chosen from a fixed list), never
    /// for anything from outside.
    public init(unchecked text: String, binds: [SQLValue] = []) {
        self.text = text
        self.binds = binds
    }

    public init(stringLiteral text: String) {
        self.init(unchecked: text)
    }

    public init(stringInterpolation: StringInterpolation) {
        var interpolation = stringInterpolation
        interpolation.nameSubquery(before: "")
        self = interpolation.sql
    }

    /// Joins fragments: `SQL.joined(conditions, separator: " AND ")`.
    public static func joined(_ fragments: some Sequence<SQL>, separator: SQL) -> SQL {
        var result = SQL(unchecked: "")
        var isFirst = true
        for fragment in fragments {
            if !isFirst { result.append(separator) }
            result.append(fragment)
            isFirst = false
        }
        return result
    }

    /// Joins the conditions that are not nil with AND; `TRUE` if all are nil.
    public static func all(_ conditions: [SQL?]) -> SQL {
        let present = conditions.compactMap(\.self)
        return present.isEmpty ? "TRUE" : joined(present, separator: " AND ")
    }

    /// Returns the statement with values for its parameters. For a statement whose text is created once, with `?` as
    /// placeholders.
    public func binding(_ values: any SQLBindable...) -> SQL {
        precondition(binds.isEmpty, "the statement must not have bound values: \(text)")
        var statement = self
        statement.binds = values.map(\.sqlValue)
        return statement
    }

    /// Returns a statement that was created with the tenant ``Values/ID/boundLater``, with the real tenant.
    ///
    /// - Parameter values: The values of the other parameters.
    public func binding(within tenant: ID<Tenant>, _ values: any SQLBindable...) -> SQL {
        precondition(binds.isEmpty, "the statement must not have bound values: \(text)")
        var statement = self
        statement.binds = values.map(\.sqlValue)
        // The places are ascending, so each insertion is already at its final place.
        for place in fence?.places ?? [] { statement.binds.insert(.text(tenant.text), at: place) }
        statement.fence?.tenant = tenant
        statement.fence?.places = []
        return statement
    }

    /// Whether the statement only reads.
    var isQuery: Bool { text.utf8.starts(with: "SELECT".utf8) }
    /// Whether the statement may store its values.
    var isStoring: Bool { !isQuery && !text.utf8.starts(with: "DELETE".utf8) }

    public mutating func append(_ other: SQL) {
        if let theirs = other.target {
            precondition(target == nil, "a statement may write only one table: \(text)")
            target = theirs
            target?.textOffset += text.utf8.count
            target?.bindOffset += binds.count
        }
        if var theirs = other.fence {
            if !theirs.places.isEmpty { theirs.places = theirs.places.map { $0 + parameters } }
            enter(theirs)
        }
        text += other.text
        binds += other.binds
        unscoped += other.unscoped
        scoped += other.scoped
    }

    /// The number of parameters in the text.
    var parameters: Int { text.utf8.count { $0 == UInt8(ascii: "?") } }

    /// Joins a fence to the statement's own. All fences of a statement name the same tenant, and at most one user.
    mutating func enter(_ other: Fence) {
        guard let own = fence else { return fence = other }
        precondition(own.tenant == other.tenant, "a statement must stay in one tenant: \(text)")
        precondition(
            own.user == nil || other.user == nil || own.user == other.user,
            "a statement must stay in the rows of one user: \(text)")
        fence?.user = own.user ?? other.user
        fence?.within += other.within
        fence?.owned += other.owned
        fence?.places += other.places
    }

    public static func + (left: SQL, right: SQL) -> SQL {
        var sum = left
        sum.append(right)
        return sum
    }
}

/// The tenant, or the user of a tenant, in whose rows a statement stays.
struct Fence: Sendable {
    var tenant: ID<Tenant>
    var user: ID<User>?
    /// The names of the tables in which it may touch all rows of the tenant.
    var within: [String] = []
    /// The names of the tables in which it may touch the rows of the user.
    var owned: [String] = []
    /// The parameters that are bound to the tenant later, in ascending order, among all parameters of the text.
    var places: [Int] = []
}

extension ID where Entity == Tenant {
    /// The tenant of a statement whose text is created once. Each use binds the real one
    /// (``Database/SQL/binding(within:_:)``, ``Database/Insertion``). No row belongs to it.
    public static let boundLater: ID = "\u{0}"

    var isBoundLater: Bool { text.utf8.first == 0 }
}

/// The table that a statement writes, the rows that it may touch, and the position after the name.
struct WriteTarget: Sendable {
    enum Verb: Sendable {
        case insert, update, delete
    }

    enum Rows: Sendable {
        case of(Scope)
        /// All rows of the tenant of the statement's fence.
        case ofTenant
        /// The rows of the user of the statement's fence.
        case ofUser
    }

    let verb: Verb
    let table: Table
    let rows: Rows
    /// The UTF-8 offset after the table's name.
    var textOffset: Int
    /// The number of binds before the position.
    var bindOffset: Int
}
