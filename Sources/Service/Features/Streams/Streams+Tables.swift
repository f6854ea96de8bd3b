import Database
import Values

extension StreamsFeature {
    /// Records of the service, which no caller reads or writes.
    static let revocations = Table(
        "revocations", read: [], write: [],
        person: .rows(by: ["kind", "subject"], [.deleted("subject", where: "kind = 'user'")], isExported: false))

    static let migrations = [
        Migration(
            "0001_streams",
            sql: [
                """
                CREATE TABLE stream_tickets (
                    hash BLOB NOT NULL PRIMARY KEY,
                    tenant TEXT NOT NULL,
                    user_id TEXT NOT NULL,
                    role TEXT NOT NULL,
                    is_service INTEGER NOT NULL,
                    tier TEXT,
                    scope TEXT NOT NULL,
                    token_id TEXT,
                    session_id TEXT,
                    token_issued_at INTEGER NOT NULL,
                    token_expires_at INTEGER NOT NULL,
                    topics TEXT NOT NULL,
                    expires_at INTEGER NOT NULL
                )
                """,
                "CREATE INDEX stream_tickets_expiry ON stream_tickets (tenant, expires_at)",
                """
                CREATE TABLE revocations (
                    tenant TEXT NOT NULL,
                    kind TEXT NOT NULL,
                    subject TEXT NOT NULL,
                    issued_before INTEGER NOT NULL,
                    created_at INTEGER NOT NULL,
                    PRIMARY KEY (tenant, kind, subject)
                )
                """,
            ])
    ]

    private static let bookkeeping = Unscoped.bookkeeping("revocations belong to the service, not to a user")

    /// Deletes expired rows; nothing depends on when it runs.
    static let pruning = Tick.forgetting(name: "streams-tidying", everySeconds: 600) { age, tx in
        try StreamTickets.removeExpired(age, tx)
        try Backends.removeExpired(age, of: tx.tenant, in: tx.db)
        // A revocation is kept longer than every token that it could concern.
        let days = max(Limits.tokenDays, tx.settings.serviceTokenDays)
        try tx.db.run(
            """
            DELETE FROM \(revocations, within: tx.tenant, bookkeeping)
            WHERE created_at < \(age.end(ofDays: days))
            """)
    }

    // MARK: Revocations

    static func insertRevocation(_ revocation: Revocation, at now: Timestamp, in connection: DatabaseConnection) throws
    {
        try connection.run(
            """
            INSERT INTO \(revocations, within: revocation.tenant, bookkeeping) (tenant, kind, subject, issued_before, created_at)
            VALUES (\(revocation.tenant), \(revocation.kind.rawValue), \(revocation.subject),
                \(revocation.issuedBefore?.microseconds ?? 0), \(now))
            ON CONFLICT (tenant, kind, subject) DO UPDATE SET
                issued_before = CASE WHEN excluded.issued_before > revocations.issued_before
                    THEN excluded.issued_before ELSE revocations.issued_before END,
                created_at = excluded.created_at
            """)
        if revocation.kind == .user { connection.noteInsertion(into: revocations, of: revocation.subject) }
    }

    /// Deletes a revocation; returns false if it does not exist.
    static func deleteRevocation(_ revocation: Revocation, in connection: DatabaseConnection) throws -> Bool {
        try connection.run(
            """
            DELETE FROM \(revocations, within: revocation.tenant, bookkeeping)
            WHERE kind = \(revocation.kind.rawValue)
                AND subject = \(revocation.subject)
            """) > 0
    }

    /// Returns all stored revocations, for the list in memory, at start.
    static func revocations(in connection: DatabaseConnection) throws -> [Revocation] {
        try connection.rows(
            "SELECT tenant, kind, subject, issued_before FROM \(revocations, unscoped: bookkeeping)"
        ) { row in
            let kind = Revocation.Kind(rawValue: try row.text(1)) ?? .user
            return Revocation(
                tenant: try row.id(0), kind: kind, subject: try row.text(2),
                issuedBefore: kind == .user || kind == .person ? try row.moment(3) : nil)
        }
    }
}
