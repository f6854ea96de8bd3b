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
/// | `\(table, unscoped: .reaction("why"))` | the bare name |
///
/// A `String` is always a bind. The only way to text made at run time is `SQL(unchecked:)`.
public struct SQL: ExpressibleByStringInterpolation, Sendable {
    public internal(set) var text: String
    public internal(set) var binds: [SQLValue]
    var target: WriteTarget?
    /// The tables that the statement names without a scope, and the tables that it names with a scope.
    var unscoped: [String] = []
    var scoped: [String] = []

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
        text += other.text
        binds += other.binds
        unscoped += other.unscoped
        scoped += other.scoped
    }

    public static func + (left: SQL, right: SQL) -> SQL {
        var sum = left
        sum.append(right)
        return sum
    }
}

/// The table that a statement writes under a scope, and the position after its name.
struct WriteTarget: Sendable {
    enum Verb: Sendable {
        case insert, update, delete
    }

    let verb: Verb
    let table: Table
    let scope: Scope
    /// The UTF-8 offset after the table's name.
    var textOffset: Int
    /// The number of binds before the position.
    var bindOffset: Int
}
