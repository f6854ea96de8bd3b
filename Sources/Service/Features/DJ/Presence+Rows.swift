import Cryptography
import Database
import Domain
import Values
import Visibility

extension DJFeature {
    /// Returns the caller's longest current presence at a shop, if there is one.
    static func presence(in shopId: ID<Shop>, _ tx: Transaction) throws -> Presence? {
        try tx.db.row(
            """
            SELECT source, since, expires_at FROM \(presences, visibleTo: tx.scope)
            WHERE user_id = \(tx.caller.userId) AND shop_id = \(shopId) AND expires_at > \(tx.now)
            ORDER BY expires_at DESC LIMIT 1
            """
        ) { row in
            Presence(
                shopId: shopId, source: try row.word(0, orElse: "a stored presence has an unknown source"),
                since: try row.moment(1), expiresAt: try row.moment(2))
        }
    }

    /// Stores that the caller is at a shop, and so at no other.
    ///
    /// - Returns: The presence. If the caller was already present, it dates from the first moment.
    static func store(_ presence: Presence, _ tx: Transaction) throws -> Presence {
        let since = try tx.db.row(
            """
            INSERT INTO \(presences, writableBy: tx.scope)
                (tenant, user_id, booking_id, shop_id, source, since, expires_at)
            VALUES (\(tx.tenant), \(tx.caller.userId), '', \(presence.shopId), \(presence.source.rawValue),
                \(presence.since), \(presence.expiresAt))
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

    /// Removes the caller's presence at a shop. A presence by a booking in progress remains.
    static func removePresence(in shopId: ID<Shop>, _ tx: Transaction) throws {
        try tx.db.run(
            """
            DELETE FROM \(presences, writableBy: tx.scope)
            WHERE user_id = \(tx.caller.userId) AND shop_id = \(shopId) AND booking_id = ''
            """)
    }

    /// Stores a presence by a booking for as long as the booking is in progress.
    static func follow(_ booking: Booking, previous: Booking?, _ tx: Transaction) throws {
        let presence = Presence(of: booking)
        guard presence != previous.flatMap({ Presence(of: $0) }), let userId = booking.userId else { return }
        guard let presence else {
            try tx.db.run(
                """
                DELETE FROM \(presences, of: userId, in: tx.tenant)
                WHERE booking_id = \(booking.id)
                """)
            return
        }
        try tx.db.run(
            """
            INSERT INTO \(presences, of: userId, in: tx.tenant)
                (tenant, user_id, booking_id, shop_id, source, since, expires_at)
            VALUES (\(tx.tenant), \(userId), \(booking.id), \(presence.shopId), \(presence.source.rawValue),
                \(presence.since), \(presence.expiresAt))
            ON CONFLICT (tenant, user_id, booking_id) DO UPDATE SET since = excluded.since,
                expires_at = excluded.expires_at
            """)
    }

    private static let secretName = "presence-codes"

    /// Creates the secret from which codes are derived, once for all shops.
    static func makeCodeSecret(_ tx: Transaction) throws {
        try tx.lock(.tick(secretName))
        _ = try ServiceSecrets.secret(named: secretName, in: tx.db)
    }

    /// Returns the code of a shop for a minute. Each tenant, shop and minute has its own.
    static func code(of shopId: ID<Shop>, in window: PresenceCode.Window, _ tx: Transaction) throws -> PresenceCode {
        let secret = try tx.cached(secretName) { try ServiceSecrets.secret(named: secretName, in: tx.db) }
        let message = AudienceKey.make("presence", tx.tenant.text, shopId.text, "\(window.number)")
        return PresenceCode(digest: AuthenticationKey(secret).code(for: message.utf8))
    }

    static func isValid(_ typed: String, at shopId: ID<Shop>, _ tx: Transaction) throws -> Bool {
        guard let typed = PresenceCode(typed: typed) else { return false }
        return try PresenceCode.Window.valid(at: tx.now).contains { try code(of: shopId, in: $0, tx).matches(typed) }
    }

    static func ownAttempts(_ tx: Transaction) throws -> PresenceAttempts {
        let found = try tx.db.row(
            """
            SELECT failures, since FROM \(attempts, of: tx.caller.userId, in: tx.tenant)
            """
        ) { PresenceAttempts(failures: try $0.integer(0), since: try $0.moment(1)) }
        return found ?? PresenceAttempts()
    }

    static func store(_ attempts: PresenceAttempts, _ tx: Transaction) throws {
        try tx.db.run(
            """
            INSERT INTO \(Self.attempts, of: tx.caller.userId, in: tx.tenant) (tenant, user_id, failures, since)
            VALUES (\(tx.tenant), \(tx.caller.userId), \(attempts.failures), \(attempts.since))
            ON CONFLICT (tenant, user_id) DO UPDATE SET failures = excluded.failures, since = excluded.since
            """)
    }
}
