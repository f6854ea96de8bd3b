import Database
import Domain
import Values

extension NotificationsFeature {
    private static let expiring = Unscoped.reaction("notifications of all users expire")

    /// Notifications that one transaction removes, each with an event for its user.
    private static let expiredAtOnceMax = 100

    /// Removes notifications that are older than the setting, as if their users had removed them.
    static let retention = Sweep(
        name: "notifications.retention", isOn: { $0.notificationsKeptDays > 0 }
    ) { age, place, tx in
        let end = age.end(ofDays: tx.settings.notificationsKeptDays)
        let after = PairedPlace(reading: place)
        let rows = try tx.db.rows(
            """
            SELECT user_id, id, created_at FROM \(notifications, within: tx.tenant, expiring)
            WHERE removed_at IS NULL
                AND (user_id, id) > (\(after.first), \(after.second))
            ORDER BY user_id, id LIMIT \(Sweep.rowsAtOnceMax)
            """
        ) { (userId: try $0.id(0) as ID<User>, id: try $0.id(1) as ID<Notification>, createdAt: try $0.moment(2)) }
        let expired = rows.filter { $0.createdAt < end }.prefix(expiredAtOnceMax)
        try tx.lock(expired.map { .user($0.userId) })
        for row in expired { try removeStored(row.id, of: row.userId, within: expiring, tx) }
        let isCut = expired.count == expiredAtOnceMax
        guard isCut || rows.count == Sweep.rowsAtOnceMax, let last = isCut ? expired.last : rows.last else {
            return nil
        }
        return PairedPlace(last.userId.text, last.id.text).text
    }

    /// Removes a notification, unless it was removed meanwhile.
    static func removeStored(
        _ id: ID<Notification>, of userId: ID<User>, within why: Unscoped, _ tx: Transaction
    ) throws {
        let stored = try tx.db.row(
            """
            SELECT \(columns) FROM \(notifications, of: userId, in: tx.tenant)
            WHERE id = \(id) AND removed_at IS NULL
            """, Notification.init(row:))
        if let stored { try remove(stored, within: why, tx) }
    }
}
