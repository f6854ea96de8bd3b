import Cryptography
import Database
import Values

/// Tickets: each opens one stream, for EventSource, which cannot send headers.
enum StreamTickets {
    static let table = Table("stream_tickets", read: [], write: [])

    private static let keeping = Unscoped.bookkeeping("tickets belong to the service, not to a user")

    /// Only the hash is stored: whoever reads the database cannot open a stream with what they find. A ticket has 128
    /// random bits, so a plain hash needs no salt.
    private static func hash(_ ticket: String) -> [UInt8] { SHA256.hash(ticket.utf8) }

    static func insert(_ ticket: String, topics: [String], expiresAt: Timestamp, _ tx: Transaction) throws {
        let caller = tx.caller
        let scope = String(decoding: jsonArray(caller.claimed.sorted()), as: UTF8.self)
        let topics = String(decoding: jsonArray(topics), as: UTF8.self)
        try tx.db.run(
            """
            INSERT INTO \(table, unscoped: keeping)
                (hash, tenant, user_id, role, is_service, tier, scope, token_id, session_id, token_issued_at,
                 token_expires_at, topics, expires_at)
            VALUES (\(hash(ticket)), \(caller.tenant), \(caller.userId.text), \(caller.role), \(caller.isService),
                \(caller.tier), \(scope), \(caller.tokenId), \(caller.sessionId), \(caller.issuedAt.microseconds),
                \(caller.expiresAt.microseconds), \(topics), \(expiresAt.microseconds))
            """)
    }

    /// Takes the ticket out of the table, so that it opens one stream and no second one; nil if it is unknown, used or
    /// expired.
    static func redeem(
        _ ticket: String, at now: Timestamp, in connection: Connection
    ) throws -> (caller: Caller, topics: [String])? {
        try connection.row(
            """
            DELETE FROM \(table, unscoped: keeping)
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

    /// What is past its time goes; nothing depends on when.
    static func removeExpired(_ tx: Transaction) throws {
        try tx.db.run(
            """
            DELETE FROM \(table, unscoped: keeping)
            WHERE tenant = \(tx.tenant) AND expires_at <= \(tx.now.microseconds)
            """)
    }
}

/// Makes tickets, and tells them from what anybody can write into an address without asking the database: 128 random bits,
/// and their code by the service's secret. Redeeming writes, and nobody is to make the service write without a token.
struct TicketSeal: Sendable {
    private static let nonceBytes = 16
    private let key: AuthenticationKey

    init(secret: [UInt8]) {
        key = AuthenticationKey(SHA256.hash(Array("bellhop stream tickets\n".utf8) + secret))
    }

    /// 64 characters that are safe in a query.
    func makeTicket() -> String {
        let nonce = (0..<Self.nonceBytes).map { _ in UInt8.random(in: .min ... .max) }
        return RFC4648.encodeURL(nonce + key.code(for: nonce))
    }

    func isOurs(_ ticket: String) -> Bool {
        guard let bytes = RFC4648.decodeURL(ticket.utf8), bytes.count > Self.nonceBytes else { return false }
        return key.isValid(bytes[Self.nonceBytes...], for: bytes[..<Self.nonceBytes])
    }
}
