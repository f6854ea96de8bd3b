import Cryptography
import Foundation

/// One step of the schema. It is applied once, in order, and never changed afterwards.
public struct Migration: Sendable, Hashable {
    /// A statement for one engine or for both.
    public enum Step: Sendable, Hashable, ExpressibleByStringInterpolation {
        /// Written for SQLite, and translated for PostgreSQL; see `TableDefinition`.
        case both(String)
        case sqlite(String)
        case postgreSQL(String)

        public init(stringLiteral text: String) { self = .both(text) }

        func text(for engine: DatabaseEngine) -> String? {
            switch (self, engine) {
            case (.both(let text), .sqlite), (.sqlite(let text), .sqlite), (.postgreSQL(let text), .postgreSQL): text
            case (.both(let text), .postgreSQL): TableDefinition.postgreSQL(text)
            case (.sqlite, .postgreSQL), (.postgreSQL, .sqlite): nil
            }
        }
    }

    /// The id, such as `0001_notifications`; unique in the whole product.
    public let id: String
    public let steps: [Step]

    public init(_ id: String, sql steps: [Step]) {
        self.id = id
        self.steps = steps
    }

    public func statements(for engine: DatabaseEngine) -> [String] { steps.compactMap { $0.text(for: engine) } }

    /// Returns the SHA-256 of an engine's statements, each preceded by its length, so that different lists cannot have
    /// the same input.
    func checksum(for engine: DatabaseEngine) -> String { Self.checksum(of: statements(for: engine)) }

    static func checksum(of statements: [String]) -> String {
        var hash = SHA256()
        for statement in statements {
            hash.update("\(statement.utf8.count):".utf8)
            hash.update(statement.utf8)
        }
        return hash.finalize().map { String(format: "%02x", $0) }.joined()
    }
}

/// The translation of a table or index definition to PostgreSQL.
///
/// One text serves both engines if only the names of types differ. Both compare texts byte by byte (`COLLATE "C"`),
/// because cursors and ids rely on it, and a server's locale must not change an order.
enum TableDefinition {
    private static let types = [
        "INTEGER": "BIGINT", "REAL": "DOUBLE PRECISION", "BLOB": "BYTEA", "TEXT": "TEXT COLLATE \"C\"",
    ]

    /// Keys that the database numbers, each once.
    private static let numbered = (
        sqlite: "INTEGER PRIMARY KEY AUTOINCREMENT", postgreSQL: "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
    )

    static func postgreSQL(_ text: String) -> String {
        guard text.hasPrefix("CREATE TABLE") else { return text }
        var body = text.replacing(numbered.sqlite, with: numbered.postgreSQL)
        // PostgreSQL is always strict, and does not store a table in the order of its key.
        for suffix in [" STRICT, WITHOUT ROWID", " WITHOUT ROWID", " STRICT"] where body.hasSuffix(suffix) {
            body.removeLast(suffix.count)
            break
        }
        var result = ""
        var word = ""
        func flush() {
            result += types[word] ?? word
            word = ""
        }
        for character in body {
            if character.isLetter || character == "_" || character.isNumber {
                word.append(character)
            } else {
                flush()
                result.append(character)
            }
        }
        flush()
        return result
    }
}

extension DatabaseStore {
    /// Applies all migrations that the database lacks, in one transaction, and returns them.
    ///
    /// On PostgreSQL it also updates the policies to match the tables. The store must have been opened by a role with
    /// that right (`.owner`). Several processes may run it at once.
    ///
    /// - Throws: `.schema` if an applied migration was changed, or is unknown to this build (the database belongs to a
    ///   newer version). Then nothing is done.
    @discardableResult
    public func migrate(_ migrations: [Migration], tables: [Table] = []) throws -> [String] {
        let applied = try writeAndWait { [backend] connection in
            try backend.prepareMigrations(in: connection)
            try connection.run(Self.createHistory(for: connection.engine))
            let pending = try Self.pending(migrations, in: connection)
            for migration in pending {
                try Self.apply(migration, to: connection)
                try Self.note(migration.id, checksum: migration.checksum(for: connection.engine), in: connection)
            }
            try backend.finishMigrations(of: tables, in: connection)
            return pending.map(\.id)
        }
        if !applied.isEmpty { backend.schemaChanged() }
        return applied
    }

    /// Returns the statement that creates the history. PostgreSQL numbers rows by an identity column, SQLite by its
    /// integer key.
    private static func createHistory(for engine: DatabaseEngine) -> SQL {
        switch engine {
        case .sqlite:
            """
            CREATE TABLE IF NOT EXISTS schema_migrations (
              position INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, checksum TEXT NOT NULL,
              applied_at INTEGER NOT NULL) STRICT
            """
        case .postgreSQL:
            """
            CREATE TABLE IF NOT EXISTS schema_migrations (
              position BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id TEXT NOT NULL UNIQUE,
              checksum TEXT NOT NULL, applied_at BIGINT NOT NULL)
            """
        }
    }

    private static func note(_ id: String, checksum: String, in connection: DatabaseConnection) throws {
        let now = Int(Date().timeIntervalSince1970 * 1_000_000)
        try connection.run(
            "INSERT INTO schema_migrations (id, checksum, applied_at) VALUES (\(id), \(checksum), \(now))")
    }

    private static func apply(_ migration: Migration, to connection: DatabaseConnection) throws {
        for statement in migration.statements(for: connection.engine) {
            do {
                try connection.runMigration(statement)
            } catch let error as DatabaseError {
                throw DatabaseError(error.code, "migration \(migration.id): \(error.detail)", sql: statement)
            }
        }
    }

    /// Returns the migrations that `migrate` would apply, without changing anything.
    public func pendingMigrations(_ migrations: [Migration]) throws -> [String] {
        try read { connection in
            // Each engine has its own catalog tables.
            let history: SQL =
                connection.engine == .sqlite
                ? "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'schema_migrations'"
                : "SELECT 1 FROM pg_class WHERE oid = to_regclass('schema_migrations')"
            guard try connection.exists(history) else { return migrations.map(\.id) }
            return try Self.pending(migrations, in: connection).map(\.id)
        }
    }

    /// The advice to the operator about an unexpected schema.
    private static let remedy = "restore an earlier backup, or start the matching version"

    private static func pending(_ migrations: [Migration], in connection: DatabaseConnection) throws -> [Migration] {
        var known: [String: Migration] = [:]
        for migration in migrations {
            precondition(
                known.updateValue(migration, forKey: migration.id) == nil, "the migration \(migration.id) exists twice")
        }
        let history = try connection.rows("SELECT id, checksum FROM schema_migrations ORDER BY position") { row in
            (id: try row.text(0), checksum: try row.text(1))
        }
        for entry in history {
            guard let migration = known[entry.id] else {
                throw DatabaseError(
                    .schema,
                    """
                    the database has the migration \(entry.id) of a newer version; \
                    one; \(remedy)
                    """)
            }
            guard migration.checksum(for: connection.engine) == entry.checksum else {
                throw DatabaseError(
                    .schema,
                    "the text of migration \(entry.id) differs from the text that was applied; \(remedy)")
            }
            known[entry.id] = nil
        }
        return migrations.filter { known[$0.id] != nil }
    }
}
