import Crypto
import Database
import Domain
import Rows
import Values
import Visibility

extension DJFeature {
    private static let following = Unscoped.reaction("a booking in progress shows where its customer is")
    private static let bookkeeping = Unscoped.bookkeeping("wrong codes are counted for whoever tries them")
    private static let pruning = Unscoped.bookkeeping("what is past its time is forgotten for everybody")

    // MARK: Presences

    static func isPresent(in shopId: ID<Shop>, _ tx: Transaction) throws -> Bool {
        try presence(in: shopId, tx) != nil
    }

    /// The caller's presence at a shop, the longest one; nil if there is none now.
    static func presence(in shopId: ID<Shop>, _ tx: Transaction) throws -> Presence? {
        try tx.db.row(
            """
            SELECT source, since, expires_at FROM \(presences, visibleTo: tx.scope)
            WHERE user_id = \(tx.caller.userId.text) AND shop_id = \(shopId.text)
                AND expires_at > \(tx.now.microseconds)
            ORDER BY expires_at DESC LIMIT 1
            """
        ) { row in
            guard let source = Presence.Source(rawValue: try row.text(0)) else {
                throw DatabaseError(.corrupt, "a presence has a source that cannot be")
            }
            return Presence(
                shopId: shopId, source: source, since: try row.moment(1), expiresAt: try row.moment(2))
        }
    }

    /// Stores that the caller is at a shop, and so at no other. A caller who was there already retains the first
    /// moment.
    ///
    /// - Returns: the moment since which the caller is there.
    static func store(_ presence: Presence, _ tx: Transaction) throws -> Presence {
        let since = try tx.db.row(
            """
            INSERT INTO \(presences, writableBy: tx.scope)
                (tenant, user_id, booking_id, shop_id, source, since, expires_at)
            VALUES (\(tx.tenant), \(tx.caller.userId.text), '', \(presence.shopId.text), \(presence.source.rawValue),
                \(presence.since.microseconds), \(presence.expiresAt.microseconds))
            ON CONFLICT (tenant, user_id, booking_id) DO UPDATE SET shop_id = excluded.shop_id,
                source = excluded.source, expires_at = excluded.expires_at,
                since = CASE WHEN presences.shop_id = excluded.shop_id AND presences.expires_at > excluded.since
                    THEN presences.since ELSE excluded.since END
            RETURNING since
            """
        ) { try $0.moment(0) }
        return Presence(
            shopId: presence.shopId, source: presence.source, since: since ?? presence.since,
            expiresAt: presence.expiresAt)
    }

    /// Stores that the caller leaves a shop. The presence by a booking in progress remains.
    static func removePresence(in shopId: ID<Shop>, _ tx: Transaction) throws {
        try tx.db.run(
            """
            DELETE FROM \(presences, writableBy: tx.scope)
            WHERE user_id = \(tx.caller.userId.text) AND shop_id = \(shopId.text) AND booking_id = ''
            """)
    }

    /// Stores the presence by a booking for as long as the booking is in progress.
    static func follow(_ booking: Booking, previous: Booking?, _ tx: Transaction) throws {
        let presence = Presence(of: booking)
        guard presence != previous.flatMap({ Presence(of: $0) }), let userId = booking.userId else { return }
        guard let presence else {
            try tx.db.run(
                """
                DELETE FROM \(presences, unscoped: following)
                WHERE tenant = \(tx.tenant) AND user_id = \(userId.text) AND booking_id = \(booking.id.text)
                """)
            return
        }
        try tx.db.run(
            """
            INSERT INTO \(presences, unscoped: following)
                (tenant, user_id, booking_id, shop_id, source, since, expires_at)
            VALUES (\(tx.tenant), \(userId.text), \(booking.id.text), \(presence.shopId.text),
                \(presence.source.rawValue), \(presence.since.microseconds), \(presence.expiresAt.microseconds))
            ON CONFLICT (tenant, user_id, booking_id) DO UPDATE SET since = excluded.since,
                expires_at = excluded.expires_at
            """)
    }

    // MARK: Codes

    private static let secretName = "presence-codes"

    /// Creates the secret from which codes are derived, once for all shops.
    static func makeCodeSecret(_ tx: Transaction) throws {
        try tx.lock(.tick(secretName))
        _ = try ServiceSecrets.secret(named: secretName, in: tx.db)
    }

    /// The code of a shop for a minute; each tenant, shop and minute has its own.
    static func code(of shopId: ID<Shop>, in window: PresenceCode.Window, _ tx: Transaction) throws -> PresenceCode {
        let secret = try tx.cached(secretName) { try ServiceSecrets.secret(named: secretName, in: tx.db) }
        let message = AudienceKey.make("presence", tx.tenant, shopId.text, "\(window.number)")
        return PresenceCode(
            digest: HMAC<SHA256>.authenticationCode(for: Array(message.utf8), using: SymmetricKey(data: secret)))
    }

    static func isValid(_ typed: String, at shopId: ID<Shop>, _ tx: Transaction) throws -> Bool {
        guard let typed = PresenceCode(typed: typed) else { return false }
        return try PresenceCode.Window.valid(at: tx.now).contains { try code(of: shopId, in: $0, tx).matches(typed) }
    }

    // MARK: Wrong codes

    static func ownAttempts(_ tx: Transaction) throws -> PresenceAttempts {
        let found = try tx.db.row(
            """
            SELECT failures, since FROM \(attempts, unscoped: bookkeeping)
            WHERE tenant = \(tx.tenant) AND user_id = \(tx.caller.userId.text)
            """
        ) { PresenceAttempts(failures: try $0.integer(0), since: try $0.moment(1)) }
        return found ?? PresenceAttempts()
    }

    static func store(_ attempts: PresenceAttempts, _ tx: Transaction) throws {
        try tx.db.run(
            """
            INSERT INTO \(Self.attempts, unscoped: bookkeeping) (tenant, user_id, failures, since)
            VALUES (\(tx.tenant), \(tx.caller.userId.text), \(attempts.failures), \(attempts.since.microseconds))
            ON CONFLICT (tenant, user_id) DO UPDATE SET failures = excluded.failures, since = excluded.since
            """)
    }

    // MARK: Pruning

    static func isPruningDue(at now: Timestamp, in db: Connection) throws -> Bool { try db.exists(anyPast(at: now)) }

    static func anyPast(at now: Timestamp) -> SQL {
        let oldest = now.adding(seconds: -PresenceLimits.wrongCodesSeconds)
        return """
            SELECT 1 FROM \(presences, unscoped: pruning) WHERE expires_at <= \(now.microseconds)
            UNION ALL SELECT 1 FROM \(attempts, unscoped: pruning) WHERE since <= \(oldest.microseconds) LIMIT 1
            """
    }

    /// Deletes expired presences and attempts, a few at a time; until then they have no effect.
    static func prunePast(_ tx: Transaction) throws {
        try tx.db.run(
            """
            DELETE FROM \(presences, unscoped: pruning) WHERE (tenant, user_id, booking_id) IN (
                SELECT tenant, user_id, booking_id FROM presences
                WHERE tenant = \(tx.tenant) AND expires_at <= \(tx.now.microseconds)
                ORDER BY expires_at LIMIT \(Limits.prunedAtOnceMax))
            """)
        let oldest = tx.now.adding(seconds: -PresenceLimits.wrongCodesSeconds)
        try tx.db.run(
            """
            DELETE FROM \(attempts, unscoped: pruning) WHERE (tenant, user_id) IN (
                SELECT tenant, user_id FROM presence_attempts
                WHERE tenant = \(tx.tenant) AND since <= \(oldest.microseconds) LIMIT \(Limits.prunedAtOnceMax))
            """)
    }
}
