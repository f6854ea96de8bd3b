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
/// | `\(values: list)` | `(?, ?, …)`; for no values a subquery without rows, so that `IN` and `NOT IN` both mean what they say |
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
    /// The tables that the statement names without a scope, and those it names with one.
    var unscoped: [String] = []
    var scoped: [String] = []

    /// A text that nobody checks. For text of our own making only (a column chosen from a fixed list), never for
    /// anything that came from outside.
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

    /// The fragments in a row: `SQL.joined(conditions, separator: " AND ")`.
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

    /// The conditions that are there, all of which must hold; without any `TRUE`.
    public static func all(_ conditions: [SQL?]) -> SQL {
        let present = conditions.compactMap(\.self)
        return present.isEmpty ? "TRUE" : joined(present, separator: " AND ")
    }

    /// The statement with values for its parameters: for one whose text is made once, with `?` where they go.
    public func binding(_ values: any SQLBindable...) -> SQL {
        precondition(binds.isEmpty, "its values stand in it: \(text)")
        var statement = self
        statement.binds = values.map(\.sqlValue)
        return statement
    }

    public mutating func append(_ other: SQL) {
        if let theirs = other.target {
            precondition(target == nil, "a statement writes one table: \(text)")
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

/// The table a statement writes under a scope, and where its name ends.
struct WriteTarget: Sendable {
    enum Verb: Sendable {
        case insert, update, delete
    }

    let verb: Verb
    let table: Table
    let scope: Scope
    /// UTF-8 offset behind the table's name.
    var textOffset: Int
    /// The number of binds before it.
    var bindOffset: Int
}
