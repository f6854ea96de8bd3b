import Database
import Domain
import Values

extension ShopsFeature {
    private static let expiring = Unscoped.bookkeeping("past bookings of all shops expire")

    /// Bookings of one shop that one transaction deletes.
    private static let expiredAtOnceMax = 200

    /// Deletes bookings that ended longer ago than the setting, with their history and their estimates.
    static let retention = Sweep.deleting(
        "bookings.retention", afterDays: { $0.bookingsKeptDays },
        of: WalkedTable(shops, by: "shop_id", expiring),
        oldest: { tenant in
            """
            SELECT b.ends_at FROM \(bookings, within: tenant, expiring) AS b
            WHERE b.shop_id = walked.shop_id ORDER BY b.scheduled_start, b.id LIMIT 1
            """
        }
    ) { try deleteBookings(before: $0, of: $1, $2) }

    private static func deleteBookings(before end: Timestamp, of shop: ID<Shop>, _ tx: Transaction) throws {
        try tx.lock(.shop(shop))
        let expired: [ID<Booking>] = try tx.db.rows(
            """
            SELECT id FROM \(bookings, within: tx.tenant, expiring)
            WHERE shop_id = \(shop) AND scheduled_start < \(end) AND ends_at < \(end)
            ORDER BY scheduled_start, id LIMIT \(expiredAtOnceMax)
            """
        ) { try $0.id(0) }
        guard !expired.isEmpty else { return }
        let ids = expired.map(\.text)
        try tx.db.run(
            """
            DELETE FROM \(estimates, within: tx.tenant, expiring)
            WHERE booking_id IN \(values: ids)
            """)
        try tx.db.run(
            "DELETE FROM \(bookings, within: tx.tenant, expiring) WHERE id IN \(values: ids)")
        // A trigger keeps the history of bookings that exist.
        try tx.db.run(
            """
            DELETE FROM \(history, within: tx.tenant, expiring)
            WHERE booking_id IN \(values: ids)
            """)
        tx.record(.shopQueueTouched(shop))
    }
}
