import Rows
import Values

/// A kind of shared topic, such as `queue:{shopId}`.
struct TopicKind: Sendable {
    let prefix: String
    /// The state that a stream is sent when it joins, as an event's name and data; nil: there is none.
    let initial: @Sendable (Transaction, _ id: String) throws -> (String, [UInt8])?
}

/// A table of the service as subscriptions name it.
struct WatchedTable: Sendable, Hashable {
    let schema: String
    let table: String
    let columns: ColumnTypes
}

/// All tables that streams can subscribe to: those that the file declares, and those of the service.
struct SubscribableTables: Sendable {
    let catalog: TableCatalog
    let watched: [WatchedTable]

    func contains(schema: String, table: String) -> Bool {
        catalog.find(schema: schema, table: table) != nil || find(schema, table) != nil
    }

    /// The columns that filters may name; nil where the file does not say which there are.
    func columns(schema: String, table: String) -> ColumnTypes? {
        if let declared = catalog.find(schema: schema, table: table) { return declared.types }
        return find(schema, table)?.columns
    }

    private func find(_ schema: String, _ table: String) -> WatchedTable? {
        watched.first { $0.schema == schema && $0.table == table }
    }
}

/// A state of one user, stored nowhere: the next one replaces it, and who opens a stream is sent the present one.
struct OwnState: Sendable {
    let tenant: ID<Tenant>
    /// Whose streams: a key of their scopes.
    let key: String
    let name: String
    let collapse: UInt64
    let data: [UInt8]
}
