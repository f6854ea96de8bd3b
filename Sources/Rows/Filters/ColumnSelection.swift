/// The columns that a subscription's events carry, besides the primary key.
///
/// **The primary key always belongs to a selection**, as with Supabase: without it a client could not tell which row an
/// event is about, and a `leave` would be empty. Nothing else outside of the list is ever sent.
public struct ColumnSelection: Sendable, Hashable {
    /// Sorted, each once: two selections of the same columns are equal, so that their events can be encoded once.
    public let columns: [String]

    public init(_ columns: some Sequence<String>) {
        self.columns = Set(columns).sorted()
    }

    /// The row without the columns that are neither selected nor part of the key.
    public func applied(to row: Filter.Row, primaryKey: [String]) -> Filter.Row {
        var sent: Filter.Row = [:]
        for column in columns { sent[column] = row[column] }
        for column in primaryKey { sent[column] = row[column] }
        return sent
    }
}
