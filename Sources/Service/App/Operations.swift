import Database
import MicroHTTP
import Values

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

    /// What ``migrate(_:)`` would apply, each migration with its statements. Changes nothing, and makes no file.
    public static func pendingMigrations(_ settings: Settings) throws -> [(id: String, statements: [String])] {
        let engine = settings.database.engine
        var pending = Set(Catalog.migrations.map(\.id))
        do {
            let store = try openToRead(settings)
            defer { store.close() }
            pending = Set(try store.pendingMigrations(Catalog.migrations))
        } catch let error as DatabaseError where engine == .sqlite && error.code == .cannotOpen {
            // There is no such file yet.
        }
        return Catalog.migrations.filter { pending.contains($0.id) }.map { ($0.id, $0.statements(for: engine)) }
    }

    private static func openToRead(_ settings: Settings) throws -> Store {
        var options = settings.storeOptions
        options.access = .readOnly
        return try Store.open(settings.database, options: options, tables: Catalog.tables)
    }

    /// Copies the database into a file, beside a running service: what was answered with 201 before the call is in it.
    public static func backUp(_ settings: Settings, to path: String) throws {
        try requireFile(settings, "pg_dump copies it: see Docs/operations.md")
        try Store.copy(settings.database, to: path, prepare: makeAnother)
    }

    /// Puts a copy in the place of the database of a service that is stopped.
    ///
    /// - Returns: where the database that was there is now; nil if there was none.
    public static func restore(_ settings: Settings, from path: String) throws -> String? {
        try requireFile(settings, "pg_restore fills it: see Docs/operations.md")
        let moment = Clock.system.now().rfc3339.prefix(19).filter { $0.isLetter || $0.isNumber }
        return try Store.replace(settings.database, by: path, keepingAs: ".before-\(moment)") { copy in
            // A file of something else, or of a later version, is refused by its migrations.
            let pending = try copy.pendingMigrations(Catalog.migrations)
            guard pending.count < Catalog.migrations.count else {
                throw DatabaseError(.schema, "\(path) is no database of Bellhop")
            }
            try makeAnother(copy)
        }
    }

    /// A sound copy, whose log has a name of its own from the first start on.
    private static func makeAnother(_ copy: Store) throws {
        let damage = try copy.integrityCheck()
        guard damage.isEmpty else {
            throw DatabaseError(.corrupt, "the copy is damaged: \(damage.joined(separator: "; "))")
        }
        try copy.writeAndWait { try EventLog.forgetEpoch(in: $0) }
    }

    private static func requireFile(_ settings: Settings, _ remedy: String) throws {
        guard settings.database.engine == .postgreSQL else { return }
        throw DatabaseError(.url, "\(settings.database) is a server: \(remedy)")
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
        let store = try openToRead(settings)
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
