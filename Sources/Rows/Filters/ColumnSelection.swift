/// The columns of a subscription's events, in addition to the primary key.
///
/// **The primary key always belongs to a selection**, as with Supabase. Without it, a client could not identify the row
/// of an event, and a `leave` would be empty. No other column outside the list is ever sent.
public struct ColumnSelection: Sendable, Hashable {
    /// Sorted and unique. Selections of the same columns are equal, so their events can be encoded once.
    public let columns: [String]

    public init(_ columns: some Sequence<String>) {
        self.columns = Set(columns).sorted()
    }

    /// Returns the row without the columns that are neither selected nor part of the key.
    public func applied(to row: Filter.Row, primaryKey: [String]) -> Filter.Row {
        var sent: Filter.Row = [:]
        for column in columns { sent[column] = row[column] }
        for column in primaryKey { sent[column] = row[column] }
        return sent
    }
}
