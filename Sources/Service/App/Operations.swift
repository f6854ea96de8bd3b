import Database
import MicroHTTP

/// What the commands ask of the service without running it.
public enum Operations {
    /// The lines of `bellhop routes`.
    public static var routes: [(method: String, pattern: String, access: String, feature: String)] {
        var routes = [(method: "GET", pattern: StreamRoute.pattern, access: "bearer", feature: "streams")]
        for feature in Catalog.features() {
            routes += feature.endpoints.map { ($0.method.rawValue, $0.pattern, $0.access.rawValue, feature.name) }
        }
        return routes.sorted { ($0.pattern, $0.method) < ($1.pattern, $1.method) }
    }

    /// The lines of `bellhop policies`: who may read and write the rows of a table.
    public static var policies: [(table: String, read: [String], write: [String])] {
        Catalog.tables.map { table in
            (table.name, table.read.entries.map(\.description), table.write.entries.map(\.description))
        }
    }

    /// The same page as PostgreSQL's row-level security.
    public static var policyStatements: [String] { RowLevelSecurity.statements(for: Catalog.tables) }

    /// Brings the database up to date; gives the migrations that were applied. On PostgreSQL the URL must be of a role
    /// that may make tables, which the service's must not be.
    public static func migrate(_ settings: Settings) throws -> [String] {
        var options = settings.storeOptions
        if settings.database.engine == .postgreSQL { options.access = .owner }
        let store = try Store.open(settings.database, options: options, tables: Catalog.tables)
        defer { store.close() }
        return try store.migrate(Catalog.migrations, tables: Catalog.tables)
    }

    /// Whether what has failed may succeed later without anybody changing it.
    public static func passes(_ error: any Error) -> Bool {
        guard let error = error as? DatabaseError else { return false }
        return error.isTransient && error.cause?.isTransient ?? true
    }

    /// Why something has failed, for a person at the terminal: without the code that programs switch on.
    public static func reason(of error: any Error) -> String {
        (error as? DatabaseError).map { "database: \($0.reason)" } ?? "\(error)"
    }

    /// Recounts everything that is stored as a number; gives every difference. Works beside a running service.
    public static func check(_ settings: Settings) throws -> [String] {
        var options = settings.storeOptions
        options.access = .readOnly
        let store = try Store.open(settings.database, options: options, tables: Catalog.tables)
        defer { store.close() }
        let pending = try store.pendingMigrations(Catalog.migrations)
        guard pending.isEmpty else { return pending.map { "migration \($0) is not applied: run bellhop migrate" } }
        let damage = try store.integrityCheck().map { "the file is damaged: \($0)" }
        // One read, so that all audits look at one state of the database.
        return try damage
            + store.read { db in
                try Catalog.features().flatMap(\.audits).flatMap { audit in
                    try audit.run(db).map { "\(audit.name): \($0)" }
                }
            }
    }
}
