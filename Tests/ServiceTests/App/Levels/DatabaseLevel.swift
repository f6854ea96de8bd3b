import Database
import Foundation
import PostgresServer
import TestSupport
import Testing

@testable import Database
@testable import Service

/// The schema of a database at an earlier version, with its migrations and rows in every table, stored in
/// `Tests/Fixtures/Databases`.
struct DatabaseLevel: Sendable, CustomStringConvertible {
    static let folder = repository.appendingPathComponent("Tests/Fixtures/Databases")

    let number: Int
    /// The applied migrations, each with the checksums of its texts (``line(of:)``).
    let lines: [String]
    /// The position of Ada's stream before the rest of her events.
    let cursor: String
    /// SQL that creates the rows in a database with only the migrations applied.
    let rows: String

    var description: String { "level \(number)" }

    /// All stored levels, oldest first.
    static let all = Result {
        try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
            .filter { $0.pathExtension == "sql" }.map(DatabaseLevel.init(reading:)).sorted { $0.number < $1.number }
    }

    private init(reading file: URL) throws {
        let text = try String(contentsOf: file, encoding: .utf8)
        number = try #require(Int(file.deletingPathExtension().lastPathComponent))
        func entries(_ name: String) -> [String] {
            let mark = "-- \(name): "
            return text.split(separator: "\n").filter { $0.hasPrefix(mark) }.map { String($0.dropFirst(mark.count)) }
        }
        lines = entries("migration")
        cursor = try #require(entries("cursor").first)
        rows = text
    }

    /// The ids of the applied migrations.
    var migrations: [String] { lines.map { String($0.prefix { $0 != " " }) } }

    /// Returns the id of a migration with the checksums of its texts.
    static func line(of migration: Migration) -> String {
        let (sqlite, postgres) = (migration.checksum(for: .sqlite), migration.checksum(for: .postgreSQL))
        return "\(migration.id) sqlite:\(sqlite) postgres:\(postgres)"
    }

    private var applied: [Migration] { Catalog.migrations.filter { migrations.contains($0.id) } }

    /// Creates a SQLite file at this level.
    func makeFile(in directory: TemporaryDirectory) throws -> TestDatabase {
        let database = TestDatabase(url: "sqlite:\(directory.file("earlier.sqlite"))", name: nil)
        let store = try DatabaseStore.open(DatabaseURL(database.url), tables: Catalog.tables)
        defer { store.close() }
        try store.migrate(applied)
        // The tables are in alphabetical order, so references are checked after all rows exist.
        try store.writeAndWait { [rows] in try $0.runMigration("PRAGMA defer_foreign_keys = ON;\n" + rows) }
        return database
    }

    /// Creates a database at this level on the server and updates it with `bellhop migrate`, as the current service
    /// requires.
    func makeServerDatabase() throws -> TestDatabase {
        let server = try PostgresServer.shared()
        let name = try server.makeDatabase()
        let owner = server.url("bellhop_owner", name)
        try Self.migrate(owner, applied)
        // Runs as a superuser, because policies do not apply to it and it may defer the checks of references. Rows keep
        // their numbers. Bytes have another syntax in PostgreSQL.
        let rows =
            "SET session_replication_role = replica;\n"
            + rows.replacing(") VALUES (", with: ") OVERRIDING SYSTEM VALUE VALUES (")
        try server.run([rows.replacing(/X'(?<hex>[0-9A-F]*)'/) { "'\\x\($0.output.hex)'" }], in: name)
        _ = try Operations.migrate(TestService.settings(["database": owner, "jwtSecret": TestService.secret]))
        try server.makeLogin()
        return TestDatabase(url: server.url("bellhop", name), name: name)
    }

    private static func migrate(_ owner: String, _ migrations: [Migration]) throws {
        var options = StoreOptions()
        options.access = .owner
        let store = try DatabaseStore.open(DatabaseURL(owner), options: options, tables: Catalog.tables)
        defer { store.close() }
        let tables = try tables(of: migrations)
        try store.migrate(migrations, tables: Catalog.tables.filter { tables[$0.name] != nil })
    }

    /// Returns the tables that the migrations create, with their columns.
    static func tables(of migrations: [Migration]) throws -> [String: [String]] {
        let store = try DatabaseStore.open(DatabaseURL("sqlite::memory:"), tables: Catalog.tables)
        defer { store.close() }
        try store.migrate(migrations)
        let columns = try store.read { db in
            try db.rows(
                """
                SELECT t.name, c.name FROM sqlite_schema AS t JOIN pragma_table_info(t.name) AS c
                WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%' AND t.name <> 'schema_migrations'
                ORDER BY t.name, c.cid
                """
            ) { (table: try $0.text(0), column: try $0.text(1)) }
        }
        return Dictionary(grouping: columns, by: \.table).mapValues { $0.map(\.column) }
    }
}

// MARK: Storing a level

extension DatabaseLevel {
    /// Writes the stored rows of a service. Fails if a table is empty.
    static func store(_ number: Int, cursor: String, of service: TestService) async throws {
        let tables = try tables(of: Catalog.migrations).sorted { $0.key < $1.key }
        var lines = Catalog.migrations.map { "-- migration: \(line(of: $0))" } + ["-- cursor: \(cursor)"]
        // In one transaction, because periodic work would delete what remains.
        let stored = try await service.app.store.write { db in
            for statement in LevelStory.chapters.flatMap(\.remaining) { _ = try db.run(SQL(unchecked: statement)) }
            return try tables.map { table, columns in
                let quoted = columns.map { "quote(\($0))" }.joined(separator: " || ', ' || ")
                return try db.rows(SQL(unchecked: "SELECT \(quoted) FROM \(table)")) { try $0.text(0) }
            }
        }
        for ((table, columns), rows) in zip(tables, stored) {
            #expect(!rows.isEmpty, "\(table) has no row at level \(number)")
            // Some migrations leave a row in the table.
            lines.append("DELETE FROM \(table);")
            for row in rows {
                lines.append("INSERT INTO \(table) (\(columns.joined(separator: ", "))) VALUES (\(row));")
            }
        }
        let text = lines.joined(separator: "\n") + "\n"
        try text.write(to: folder.appendingPathComponent("\(number).sql"), atomically: true, encoding: .utf8)
    }
}
