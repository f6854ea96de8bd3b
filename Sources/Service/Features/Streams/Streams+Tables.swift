import Database
import Rows
import Values

extension StreamsFeature {
    /// Bookkeeping of the service: nobody reads or writes these rows as a caller.
    static let revocations = Table("revocations", read: [], write: [])

    static let migrations = [
        Migration(
            id: "0001_streams",
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

    private static let keeping = Unscoped.bookkeeping("revocations belong to the service, not to a user")

    /// What is past its time goes; nothing depends on when.
    static let tidying = Tick(name: "streams-tidying", everySeconds: 600) { tx in
        try StreamTickets.removeExpired(tx)
        let oldest = tx.now.adding(seconds: -StreamLimits.revocationDays * 86400)
        try tx.db.run(
            """
            DELETE FROM \(revocations, unscoped: keeping)
            WHERE tenant = \(tx.tenant) AND created_at < \(oldest.microseconds)
            """)
    }

    // MARK: Revocations

    static func insertRevocation(_ revocation: Revocation, at now: Timestamp, in connection: Connection) throws {
        let (tenant, kind, subject, moment) =
            switch revocation {
            case .token(let tenant, let id): (tenant, "token", id, Int64(0))
            case .session(let tenant, let id): (tenant, "session", id, Int64(0))
            case .user(let tenant, let id, let moment): (tenant, "user", id.text, moment.microseconds)
            }
        try connection.run(
            """
            INSERT INTO \(revocations, unscoped: keeping) (tenant, kind, subject, issued_before, created_at)
            VALUES (\(tenant), \(kind), \(subject), \(moment), \(now.microseconds))
            ON CONFLICT (tenant, kind, subject) DO UPDATE SET
                issued_before = CASE WHEN excluded.issued_before > revocations.issued_before
                    THEN excluded.issued_before ELSE revocations.issued_before END,
                created_at = excluded.created_at
            """)
    }

    /// All that are stored, for the list in memory, at start.
    static func revocations(in connection: Connection) throws -> [Revocation] {
        try connection.rows(
            "SELECT tenant, kind, subject, issued_before FROM \(revocations, unscoped: keeping)"
        ) { row in
            let (tenant, subject) = (try row.text(0), try row.text(2))
            return switch try row.text(1) {
            case "token": .token(tenant: tenant, id: subject)
            case "session": .session(tenant: tenant, id: subject)
            default:
                .user(
                    tenant: tenant, id: ID(subject),
                    issuedBefore: Timestamp(microseconds: Int64(try row.integer(3))))
            }
        }
    }
}
