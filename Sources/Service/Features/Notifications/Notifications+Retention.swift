import Database
import Domain
import Values

extension NotificationsFeature {
    private static let expiring = Unscoped.reaction("notifications of all users expire")

    /// Notifications that one transaction removes, each with an event for its user.
    private static let expiredAtOnceMax = 100

    /// Removes notifications that are older than the setting, as if their users had removed them.
    static let retention = Sweep(name: "notifications.retention", isOn: { $0.notificationsKeptDays > 0 }) { place, tx in
        let end = Sweep.end(ofDays: tx.settings.notificationsKeptDays, tx)
        // A user and an id. Neither contains a line feed.
        let parts = place?.split(separator: "\n", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        let rows = try tx.db.rows(
            """
            SELECT user_id, id, created_at FROM \(notifications, unscoped: expiring)
            WHERE tenant = \(tx.tenant) AND removed_at IS NULL
                AND (user_id, id) > (\(parts?.first ?? ""), \(parts?.last ?? ""))
            ORDER BY user_id, id LIMIT \(Sweep.rowsAtOnceMax)
            """
        ) { (userId: try $0.id(0) as ID<User>, id: try $0.id(1) as ID<Notification>, createdAt: try $0.moment(2)) }
        let expired = rows.filter { $0.createdAt < end }.prefix(expiredAtOnceMax)
        try tx.lock(expired.map { .user($0.userId) })
        for row in expired {
            let notification = try tx.db.row(
                """
                SELECT \(columns) FROM \(notifications, unscoped: expiring)
                WHERE tenant = \(tx.tenant) AND user_id = \(row.userId) AND id = \(row.id) AND removed_at IS NULL
                """, Notification.init(row:))
            if let notification { try remove(notification, within: expiring, tx) }
        }
        let isCut = expired.count == expiredAtOnceMax
        guard isCut || rows.count == Sweep.rowsAtOnceMax, let last = isCut ? expired.last : rows.last else {
            return nil
        }
        return "\(last.userId)\n\(last.id)"
    }
}
