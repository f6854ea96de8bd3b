import Database
import Domain
import Values

extension ShopsFeature {
    private static let expiring = Unscoped.bookkeeping("past bookings of all shops expire")

    /// Bookings of one shop that one transaction deletes.
    private static let expiredAtOnceMax = 200

    /// Deletes bookings that ended longer ago than the setting, with their history and their estimates.
    static let retention = Sweep(name: "bookings.retention", isOn: { $0.bookingsKeptDays > 0 }) { place, tx in
        let end = Sweep.end(ofDays: tx.settings.bookingsKeptDays, tx)
        let first = place ?? ""
        let page: [ID<Shop>] = try tx.db.rows(
            """
            SELECT shop_id FROM \(shops, unscoped: expiring)
            WHERE tenant = \(tx.tenant) AND shop_id > \(first) ORDER BY shop_id LIMIT \(Sweep.rowsAtOnceMax)
            """
        ) { try $0.id(0) }
        guard let last = page.last else { return nil }
        let found: ID<Shop>? = try tx.db.row(
            """
            SELECT s.shop_id FROM \(shops, unscoped: expiring) AS s
            WHERE s.tenant = \(tx.tenant) AND s.shop_id > \(first) AND s.shop_id <= \(last)
                AND (SELECT b.ends_at FROM \(bookings, unscoped: expiring) AS b
                    WHERE b.tenant = s.tenant AND b.shop_id = s.shop_id ORDER BY b.scheduled_start, b.id LIMIT 1)
                    < \(end)
            ORDER BY s.shop_id LIMIT 1
            """
        ) { try $0.id(0) }
        guard let found else { return page.count == Sweep.rowsAtOnceMax ? last.text : nil }
        try deleteBookings(before: end, of: found, tx)
        // The next step looks at the same shops, because this one may have more.
        return first
    }

    private static func deleteBookings(before end: Timestamp, of shop: ID<Shop>, _ tx: Transaction) throws {
        try tx.lock(.shop(shop))
        let expired: [ID<Booking>] = try tx.db.rows(
            """
            SELECT id FROM \(bookings, unscoped: expiring)
            WHERE tenant = \(tx.tenant) AND shop_id = \(shop) AND scheduled_start < \(end) AND ends_at < \(end)
            ORDER BY scheduled_start, id LIMIT \(expiredAtOnceMax)
            """
        ) { try $0.id(0) }
        guard !expired.isEmpty else { return }
        let ids = expired.map(\.text)
        try tx.db.run(
            """
            DELETE FROM \(estimates, unscoped: expiring)
            WHERE tenant = \(tx.tenant) AND booking_id IN \(values: ids)
            """)
        try tx.db.run(
            "DELETE FROM \(bookings, unscoped: expiring) WHERE tenant = \(tx.tenant) AND id IN \(values: ids)")
        // A trigger keeps the history of bookings that exist.
        try tx.db.run(
            """
            DELETE FROM \(history, unscoped: expiring)
            WHERE tenant = \(tx.tenant) AND booking_id IN \(values: ids)
            """)
        tx.record(.shopQueueTouched(shop))
    }
}
