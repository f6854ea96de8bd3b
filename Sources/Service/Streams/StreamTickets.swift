import Cryptography
import Database
import Values

/// Tickets for EventSource, which cannot send headers. Each ticket opens one stream.
enum StreamTickets {
    static let table = Table(
        "stream_tickets", read: [], write: [],
        person: .rows(by: ["hash"], [.deleted("user_id")], isExported: false))

    private static let bookkeeping = Unscoped.bookkeeping("tickets belong to the service, not to a user")

    /// Returns the hash of a ticket. Only the hash is stored, so that a reader of the database cannot open a stream. A
    /// ticket has 128 random bits, so a plain hash needs no salt.
    private static func hash(_ ticket: String) -> [UInt8] { SHA256.hash(ticket.utf8) }

    static func insert(_ ticket: String, topics: [String], expiresAt: Timestamp, _ tx: Transaction) throws {
        let caller = tx.caller
        let scope = String(decoding: jsonArray(caller.claimed.sorted()), as: UTF8.self)
        let topics = String(decoding: jsonArray(topics), as: UTF8.self)
        try tx.db.run(
            """
            INSERT INTO \(table, within: caller.tenant, bookkeeping)
                (hash, tenant, user_id, role, is_service, tier, scope, token_id, session_id, token_issued_at,
                 token_expires_at, topics, expires_at)
            VALUES (\(hash(ticket)), \(caller.tenant), \(caller.userId.text), \(caller.role), \(caller.isService),
                \(caller.tier), \(scope), \(caller.tokenId), \(caller.sessionId), \(caller.issuedAt.microseconds),
                \(caller.expiresAt.microseconds), \(topics), \(expiresAt.microseconds))
            """)
    }

    /// Deletes the ticket, so that it opens only one stream. Returns nil if it is unknown, used or expired.
    static func redeem(
        _ ticket: String, at now: Timestamp, in connection: DatabaseConnection
    ) throws -> (caller: Caller, topics: [String])? {
        try connection.row(
            """
            DELETE FROM \(table, unscoped: bookkeeping)
            WHERE hash = \(hash(ticket)) AND expires_at > \(now.microseconds)
            RETURNING tenant, user_id, role, is_service, tier, scope, token_id, session_id, token_issued_at,
                token_expires_at, topics
            """
        ) { row in
            let tenant: ID<Tenant> = try row.id(0)
            let caller = Caller(
                tenant: tenant, userId: ID(try row.text(1)), role: try row.text(2), isService: try row.integer(3) != 0,
                tier: try row.optionalText(4), scope: Scope(tenant: tenant, keys: Set(try strings(row.text(5)))),
                tokenId: try row.optionalText(6), sessionId: try row.optionalText(7), issuedAt: try row.moment(8),
                expiresAt: try row.moment(9))
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

    /// Deletes expired tickets; nothing depends on when it runs.
    static func removeExpired(_ age: AgeTime, _ tx: Transaction) throws {
        try tx.db.run(
            """
            DELETE FROM \(table, within: tx.tenant, bookkeeping)
            WHERE expires_at <= \(age.now.microseconds)
            """)
    }
}

/// Creates tickets, and distinguishes them from forged ones without a query: 128 random bits, and their code by the
/// service's secret. Redeeming writes, and callers without a token must not be able to cause writes.
struct TicketSeal: Sendable {
    private static let nonceBytes = 16
    private let key: AuthenticationKey

    init(secret: [UInt8]) {
        key = AuthenticationKey(SHA256.hash(Array("bellhop stream tickets\n".utf8) + secret))
    }

    /// Returns 64 characters that are safe in a query.
    func makeTicket() -> String {
        let nonce = (0..<Self.nonceBytes).map { _ in UInt8.random(in: .min ... .max) }
        return RFC4648.encodeURL(nonce + key.code(for: nonce))
    }

    func isIssuedHere(_ ticket: String) -> Bool {
        guard let bytes = RFC4648.decodeURL(ticket.utf8), bytes.count > Self.nonceBytes else { return false }
        return key.isValid(bytes[Self.nonceBytes...], for: bytes[..<Self.nonceBytes])
    }
}
