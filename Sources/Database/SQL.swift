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
    public private(set) var text: String
    public private(set) var binds: [SQLValue]
    private(set) var target: WriteTarget?
    /// The tables that the statement names without a scope, and those it names with one.
    private(set) var unscoped: [String] = []
    private(set) var scoped: [String] = []

    init(text: String, binds: [SQLValue]) {
        self.text = text
        self.binds = binds
    }

    /// A text that nobody checks. For text of our own making only (a column chosen from a fixed list), never for
    /// anything that came from outside.
    public init(unchecked text: String, binds: [SQLValue] = []) {
        self.init(text: text, binds: binds)
    }

    public init(stringLiteral text: String) {
        self.init(text: text, binds: [])
    }

    public init(stringInterpolation: StringInterpolation) {
        var interpolation = stringInterpolation
        interpolation.nameSubquery(before: "")
        text = interpolation.text
        binds = interpolation.binds
        target = interpolation.target
        unscoped = interpolation.unscoped
        scoped = interpolation.scoped
    }

    /// The fragments in a row: `SQL.joined(conditions, separator: " AND ")`.
    public static func joined(_ fragments: some Sequence<SQL>, separator: SQL) -> SQL {
        var result = SQL(text: "", binds: [])
        var isFirst = true
        for fragment in fragments {
            if !isFirst { result.append(separator) }
            result.append(fragment)
            isFirst = false
        }
        return result
    }

    /// What follows VALUES, of many rows: `(?, ?), (?, ?)`. Their values stand one after the other.
    public static func rows(of values: some Collection<SQLValue>, columns: Int) -> SQL {
        precondition(columns > 0 && !values.isEmpty && values.count % columns == 0, "a row has \(columns) values")
        let row = "(" + Array(repeating: "?", count: columns).joined(separator: ", ") + ")"
        let text = Array(repeating: row, count: values.count / columns).joined(separator: ", ")
        return SQL(text: text, binds: Array(values))
    }

    public mutating func append(_ other: SQL) {
        if let theirs = other.target {
            precondition(target == nil, "a statement writes one table: \(text)")
            target = theirs.shifted(textBy: text.utf8.count, bindsBy: binds.count)
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
    let textOffset: Int
    /// The number of binds before it.
    let bindOffset: Int

    func shifted(textBy textShift: Int, bindsBy bindShift: Int) -> WriteTarget {
        WriteTarget(
            verb: verb, table: table, scope: scope, textOffset: textOffset + textShift,
            bindOffset: bindOffset + bindShift)
    }
}
