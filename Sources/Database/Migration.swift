import Crypto
import Foundation

/// One step of the schema: applied once, in order, and never changed afterwards.
public struct Migration: Sendable, Hashable {
    /// `0001_notifications`: unique in the whole product.
    public let id: String
    /// The statements, in SQLite's form.
    public let sql: [String]

    public init(_ id: String, sql: [String]) {
        self.id = id
        self.sql = sql
    }

    public init(id: String, sql: [String]) {
        self.init(id, sql: sql)
    }

    /// SHA-256 over the statements, each with its length in front, so that no two lists read the same.
    var checksum: String {
        var hash = SHA256()
        for statement in sql {
            hash.update(data: Array("\(statement.utf8.count):".utf8))
            hash.update(data: Array(statement.utf8))
        }
        let digits = Array("0123456789abcdef")
        return hash.finalize().reduce(into: "") { text, byte in
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
    }
}

extension Store {
    private static let createHistory: SQL = """
        CREATE TABLE IF NOT EXISTS schema_migrations (
          position INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, checksum TEXT NOT NULL,
          applied_at INTEGER NOT NULL) STRICT
        """

    /// Applies the migrations that the database does not have, all or none, and tells which.
    ///
    /// - Throws: `.schema` when an applied migration was changed since, or one is unknown to this build (the
    ///   database belongs to a newer version); then nothing is done.
    @discardableResult
    public func migrate(_ migrations: [Migration]) throws -> [String] {
        let applied = try writeAndWait { connection in
            try connection.run(Self.createHistory)
            let pending = try Self.pending(migrations, in: connection)
            for migration in pending {
                try Self.apply(migration, to: connection)
                let now = Int(Date().timeIntervalSince1970 * 1_000_000)
                try connection.run(
                    """
                    INSERT INTO schema_migrations (id, checksum, applied_at)
                    VALUES (\(migration.id), \(migration.checksum), \(now))
                    """)
            }
            return pending.map(\.id)
        }
        if !applied.isEmpty { dropReaders() }
        return applied
    }

    private static func apply(_ migration: Migration, to connection: Connection) throws(DatabaseError) {
        for statement in migration.sql {
            do {
                try connection.runScript(statement)
            } catch {
                throw DatabaseError(error.code, "migration \(migration.id): \(error.detail)", sql: statement)
            }
        }
    }

    /// The migrations that `migrate` would apply. Changes nothing.
    public func pendingMigrations(_ migrations: [Migration]) throws -> [String] {
        try read { connection in
            let hasHistory = try connection.exists(
                "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'schema_migrations'")
            guard hasHistory else { return migrations.map(\.id) }
            return try Self.pending(migrations, in: connection).map(\.id)
        }
    }

    private static func pending(_ migrations: [Migration], in connection: Connection) throws -> [Migration] {
        var known: [String: Migration] = [:]
        for migration in migrations {
            precondition(known.updateValue(migration, forKey: migration.id) == nil, "two migrations \(migration.id)")
        }
        let history = try connection.rows("SELECT id, checksum FROM schema_migrations ORDER BY position") { row in
            (id: try row.text("id"), checksum: try row.text("checksum"))
        }
        for entry in history {
            guard let migration = known[entry.id] else {
                throw DatabaseError(
                    .schema,
                    """
                    the database has migration \(entry.id), which this version does not know: it belongs to a newer one
                    """)
            }
            guard migration.checksum == entry.checksum else {
                throw DatabaseError(
                    .schema, "migration \(entry.id) is not the one that was applied: its text was changed since")
            }
            known[entry.id] = nil
        }
        return migrations.filter { known[$0.id] != nil }
    }
}
