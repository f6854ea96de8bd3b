import Database
import Domain
import Values

extension NotificationsFeature {
    private static let recounting = Unscoped.audit("a recount reads the rows of all tenants")
    private static let allInboxes: SQL = "\(inboxes, unscoped: recounting)"
    private static let allNotifications: SQL = "\(notifications, unscoped: recounting)"

    /// Compares the numbers of stored notifications with a recount. In an inbox that was full, all notifications must be
    /// in the order of eviction.
    static let audit = Audit(name: "notifications") { db in
        let inboxSizes = try numbers("SELECT tenant, user_id, kept FROM \(allInboxes)", in: db)
        let sizes = try numbers(
            "SELECT tenant, user_id, COUNT(*) FROM \(allNotifications) WHERE removed_at IS NULL GROUP BY 1, 2", in: db)
        let unranked = try numbers(
            """
            SELECT inboxes.tenant, inboxes.user_id, COUNT(*)
            FROM \(allInboxes) JOIN \(allNotifications)
                ON notifications.tenant = inboxes.tenant AND notifications.user_id = inboxes.user_id
            WHERE inboxes.ranking > 0 AND notifications.removed_at IS NULL AND notifications.is_ranked = 0
            GROUP BY inboxes.tenant, inboxes.user_id
            """, in: db)
        return Audit.differences("number of kept notifications", stored: inboxSizes, recounted: sizes)
            + Audit.differences(
                "number of notifications outside the order of eviction", stored: [:], recounted: unranked)
    }

    /// Returns the numbers of a query whose rows are a tenant, a user and a number.
    private static func numbers(_ query: SQL, in db: DatabaseConnection) throws -> [Owner: Int] {
        Dictionary(
            uniqueKeysWithValues: try db.rows(query) {
                (Owner(tenant: try $0.id(0), userId: try $0.id(1)), try $0.integer(2))
            })
    }

    static let share = CountedShare(share: .bell) { db in
        var bells: [Owner: Int] = [:]
        try db.forEach(
            """
            SELECT tenant, user_id, category, seen_at IS NOT NULL, request_id IS NOT NULL, COUNT(*)
            FROM \(allNotifications) WHERE removed_at IS NULL
            GROUP BY 1, 2, 3, 4, 5
            """
        ) { row in
            guard let category = NotificationCategory(rawValue: try row.text(2)) else {
                throw DatabaseError(.corrupt, "a stored notification has an unknown category")
            }
            let share = BadgeChange.share(of: category, seen: try row.bool(3), isOfRequest: try row.bool(4))
            bells[Owner(tenant: try row.id(0), userId: try row.id(1)), default: 0] += share.bell * (try row.integer(5))
            return true
        }
        return bells
    }
}
