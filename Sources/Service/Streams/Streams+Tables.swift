import Crypto
import Database
import Domain

extension StreamsFeature {
    /// Bookkeeping of the service: nobody reads or writes these rows as a caller.
    static let tickets = Table("stream_tickets", read: [], write: [])
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

    private static let keeping = Unscoped.bookkeeping("tickets and revocations belong to the service, not to a user")

    /// What is past its time goes; nothing depends on when.
    static let tidying = Tick(name: "streams-tidying", everySeconds: 600) { tx in
        try tx.db.run(
            """
            DELETE FROM \(tickets, unscoped: keeping)
            WHERE tenant = \(tx.tenant) AND expires_at <= \(tx.now.microseconds)
            """)
        let oldest = tx.now.adding(seconds: -StreamLimits.revocationDays * 86400)
        try tx.db.run(
            """
            DELETE FROM \(revocations, unscoped: keeping)
            WHERE tenant = \(tx.tenant) AND created_at < \(oldest.microseconds)
            """)
    }

    // MARK: Tickets

    /// Only the hash is stored: whoever reads the database cannot open a stream with what they find. A ticket has 256
    /// random bits, so a plain hash needs no salt.
    static func hash(_ ticket: String) -> [UInt8] { Array(SHA256.hash(data: Array(ticket.utf8))) }

    static func insertTicket(_ ticket: String, topics: [String], expiresAt: Timestamp, _ tx: Transaction) throws {
        let caller = tx.caller
        let scope = String(decoding: jsonArray(caller.claimed.sorted()), as: UTF8.self)
        let topics = String(decoding: jsonArray(topics), as: UTF8.self)
        try tx.db.run(
            """
            INSERT INTO \(tickets, unscoped: keeping)
                (hash, tenant, user_id, role, is_service, tier, scope, token_id, session_id, token_issued_at,
                 token_expires_at, topics, expires_at)
            VALUES (\(hash(ticket)), \(caller.tenant), \(caller.userId.text), \(caller.role), \(caller.isService),
                \(caller.tier), \(scope), \(caller.tokenId), \(caller.sessionId), \(caller.issuedAt.microseconds),
                \(caller.expiresAt.microseconds), \(topics), \(expiresAt.microseconds))
            """)
    }

    /// Takes the ticket out of the table, so that it opens one stream and no second one; nil if it is unknown, used or
    /// expired.
    static func redeemTicket(
        _ ticket: String, at now: Timestamp, in connection: Connection
    ) throws -> (caller: Caller, topics: [String])? {
        try connection.row(
            """
            DELETE FROM \(tickets, unscoped: keeping)
            WHERE hash = \(hash(ticket)) AND expires_at > \(now.microseconds)
            RETURNING tenant, user_id, role, is_service, tier, scope, token_id, session_id, token_issued_at,
                token_expires_at, topics
            """
        ) { row in
            let tenant = try row.text(0)
            let caller = Caller(
                tenant: tenant, userId: ID(try row.text(1)), role: try row.text(2), isService: try row.integer(3) != 0,
                tier: try row.optionalText(4),
                scope: Scope(tenant: tenant, keys: Set(try strings(row.text(5)))), tokenId: try row.optionalText(6),
                sessionId: try row.optionalText(7), issuedAt: Timestamp(microseconds: Int64(try row.integer(8))),
                expiresAt: Timestamp(microseconds: Int64(try row.integer(9))))
            return (caller, try strings(row.text(10)))
        }
    }

    private static func jsonArray(_ texts: [String]) -> [UInt8] {
        var writer = JSONWriter()
        writer.array(texts)
        return writer.bytes
    }

    private static func strings(_ json: String) throws -> [String] {
        guard case .array(let values) = try JSONValue(parsing: Array(json.utf8)) else { return [] }
        return values.compactMap { value in if case .string(let text) = value { text } else { nil } }
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

    /// All that are kept, for the list in memory, at start.
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
