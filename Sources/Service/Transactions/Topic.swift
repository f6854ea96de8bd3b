import Rows
import Values
import Visibility

/// A kind of shared topic, such as `queue:{shopId}`.
struct TopicKind: Sendable {
    let prefix: String
    /// Keys that allow subscribing; empty for public topics. Subscribers of a public topic receive only visible events.
    let audience: [AudienceTemplate]
    /// Returns the initial state for a stream that subscribes, as an event's name and data, or nil.
    let initial: @Sendable (Transaction, _ id: String) throws -> (String, [UInt8])?

    init(
        prefix: String, initial: @escaping @Sendable (Transaction, _ id: String) throws -> (String, [UInt8])?
    ) {
        self.prefix = prefix
        audience = []
        self.initial = initial
    }

    /// Creates the kind of an app's topics, whose state the app manages.
    init(_ declaration: TopicDeclaration) {
        prefix = declaration.prefix
        audience = declaration.audience
        initial = { _, _ in nil }
    }
}

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

/// A state of one user that is not stored. The next one replaces it, and a stream that opens receives the current one.
struct OwnState: Sendable {
    let tenant: ID<Tenant>
    /// The key of the scopes whose streams receive it.
    let key: String
    let name: String
    let collapse: UInt64
    let data: [UInt8]
}
