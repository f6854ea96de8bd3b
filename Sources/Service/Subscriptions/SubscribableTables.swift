import Rows

/// A table of the service, as subscriptions name it.
struct WatchedTable: Sendable, Hashable {
    let schema: String
    let table: String
    let columns: ColumnTypes
}

/// All tables to which streams can subscribe: the declared ones, and the service's own.
struct SubscribableTables: Sendable {
    let catalog: TableCatalog
    let watched: [WatchedTable]

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
