import Visibility

/// The rule for reading, or writing, the rows of a table: a list of audience templates. A caller needs a key for any
/// one of them.
public struct Policy: Sendable, ExpressibleByArrayLiteral, CustomStringConvertible {
    /// Shared, so that cached predicates can identify a policy by reference.
    final class Entries: Sendable {
        let list: [PolicyEntry]

        init(_ list: [PolicyEntry]) {
            self.list = list
        }
    }

    let body: Entries

    public var entries: [PolicyEntry] { body.list }
    public var templates: [AudienceTemplate] { body.list.map(\.template) }

    public init(_ entries: [PolicyEntry]) {
        body = Entries(entries)
    }

    public init(arrayLiteral entries: PolicyEntry...) {
        self.init(entries)
    }

    public var description: String {
        body.list.map(\.description).joined(separator: ", ")
    }

    /// Returns the keys of one row. They are stamped on its events, and passed to `Scope.sees`.
    ///
    /// - Parameter row: Returns the text of a column, or nil for SQL's null. A template with a null column makes no
    ///   key.
    public func audience(of row: (String) -> String?) -> [String] {
        var keys: [String] = []
        for entry in body.list {
            if let key = entry.key(of: row), !keys.contains(key) { keys.append(key) }
        }
        return keys
    }
}
