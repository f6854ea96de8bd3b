import Rows
import Values

/// A table of the service, as subscriptions name it.
struct WatchedTable: Sendable, Hashable {
    let schema: String
    let table: String
    let columns: ColumnTypes
    /// The set of the table if that is off; nil if streams can subscribe.
    private(set) var off: FeatureSet?

    init(schema: String, table: String, columns: ColumnTypes) {
        (self.schema, self.table, self.columns) = (schema, table, columns)
    }

    func off(_ set: FeatureSet) -> WatchedTable {
        var table = self
        table.off = set
        return table
    }
}

/// All tables to which streams can subscribe: the declared ones, and the service's own.
struct SubscribableTables: Sendable {
    let catalog: TableCatalog
    let watched: [WatchedTable]
    /// Whether the set of the declared tables is on.
    let hasRows: Bool

    /// Refuses subscriptions to tables of sets that are off.
    func requireOn(_ subscriptions: [TableSubscription]) throws(Failure) {
        var sets: [FeatureSet] = []
        var fields: [Failure.Field] = []
        for (index, subscription) in subscriptions.enumerated() {
            let own = find(subscription.schema, subscription.table)
            guard let set = own == nil ? (hasRows ? nil : FeatureSet.rows) : own?.off else { continue }
            sets.append(set)
            fields.append(Failure.Field("/tables/\(index)/table", Failure.offDetail(set)))
        }
        if let set = sets.first { throw .off(set, at: fields) }
    }

    func contains(schema: String, table: String) -> Bool {
        catalog.find(schema: schema, table: table) != nil || find(schema, table) != nil
    }

    /// Returns the columns that filters may name; nil if the file does not list them.
    func columns(schema: String, table: String) -> ColumnTypes? {
        if let declared = catalog.find(schema: schema, table: table) { return declared.types }
        return find(schema, table)?.columns
    }

    private func find(_ schema: String, _ table: String) -> WatchedTable? {
        watched.first { $0.schema == schema && $0.table == table }
    }
}
