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
    /// Nil if it names none, as most fragments.
    var tables: TablesReference?
    /// The tenant of a statement that was created with ``Values/ID/boundLater``.
    var tenant: ID<Tenant>?

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
        for place in tables?.value.fence?.places ?? [] { statement.binds.insert(.text(tenant.text), at: place) }
        statement.tenant = tenant
        return statement
    }

    /// Whether the statement only reads.
    var isQuery: Bool { text.utf8.starts(with: "SELECT".utf8) }
    /// Whether the statement may store its values.
    var isStoring: Bool { !isQuery && !text.utf8.starts(with: "DELETE".utf8) }

    public mutating func append(_ other: SQL) {
        if other.tables != nil { nameTables(of: other) }
        text += other.text
        binds += other.binds
    }

    /// Names the tables of a fragment before it is appended.
    private mutating func nameTables(of other: SQL) {
        if var theirs = other.target {
            precondition(target == nil, "a statement may write only one table: \(text)")
            theirs.textOffset += text.utf8.count
            theirs.bindOffset += binds.count
            name { $0.target = theirs }
        }
        if var theirs = other.fence {
            if !theirs.places.isEmpty { theirs.places = theirs.places.map { $0 + parameters } }
            enter(theirs)
        }
        name {
            $0.unscoped += other.unscoped
            $0.scoped += other.scoped
        }
    }

    /// Joins a fence to the statement's own.
    mutating func enter(_ other: Fence) {
        name { [text] in
            if $0.fence == nil { $0.fence = other } else { $0.fence?.join(other, of: text) }
        }
    }

    /// The number of parameters in the text.
    var parameters: Int { text.utf8.count { $0 == UInt8(ascii: "?") } }

    public static func + (left: SQL, right: SQL) -> SQL {
        var sum = left
        sum.append(right)
        return sum
    }
}
