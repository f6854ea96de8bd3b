import Rows
import Values
import Visibility

/// A kind of shared topic, such as `queue:{shopId}`.
struct TopicKind: Sendable {
    let prefix: String
    /// Of whose keys a stream must have one to name such a topic; empty for topics that everybody may name, of which each
    /// sees what is visible to them.
    let audience: [AudienceTemplate]
    /// The state that a stream is sent when it joins, as an event's name and data; nil: there is none.
    let initial: @Sendable (Transaction, _ id: String) throws -> (String, [UInt8])?

    init(
        prefix: String, initial: @escaping @Sendable (Transaction, _ id: String) throws -> (String, [UInt8])?
    ) {
        self.prefix = prefix
        audience = []
        self.initial = initial
    }

    /// Topics of an app: their state is the app's own.
    init(_ declaration: TopicDeclaration) {
        prefix = declaration.prefix
        audience = declaration.audience
        initial = { _, _ in nil }
    }
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
