import Database

/// Random secrets of this database, created once, so that signatures survive a restart.
enum ServiceSecrets {
    static let secrets = ServiceTable("service_secrets", person: .nothing("keys of the service"))

    static let migration = Migration(
        "0001_secrets",
        sql: ["CREATE TABLE service_secrets (name TEXT NOT NULL PRIMARY KEY, secret BLOB NOT NULL) STRICT"])

    /// Returns the stored secret, or creates one with 256 bits of the system's random generator.
    static func secret(named name: String, in db: DatabaseConnection) throws -> [UInt8] {
        if let known = try find(named: name, in: db) { return known }
        let secret = (0..<32).map { _ in UInt8.random(in: .min ... .max) }
        // Another replica may create it at the same moment. Then this waits for it, and both use that one.
        try db.run(
            """
            INSERT INTO \(secrets) (name, secret) VALUES (\(name), \(secret))
            ON CONFLICT (name) DO NOTHING
            """)
        return try find(named: name, in: db) ?? secret
    }

    /// Returns the stored secret; nil if it was not created yet.
    static func find(named name: String, in db: DatabaseConnection) throws -> [UInt8]? {
        try db.row("SELECT secret FROM \(secrets) WHERE name = \(name)") { try $0.blob(0) }
    }
}
