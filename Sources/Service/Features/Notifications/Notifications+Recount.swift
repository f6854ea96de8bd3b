import Database
import Domain
import Values

extension NotificationsFeature {
    private static let recounting = Unscoped.audit("a recount reads the rows of all tenants")
    private static let allInboxes: SQL = "\(inboxes, unscoped: recounting)"
    private static let allNotifications: SQL = "\(notifications, unscoped: recounting)"

    /// Compares every stored count with a recount, for `bellhop check`: the bell of every user with counts, and the
    /// numbers of stored notifications. In an inbox that was full, all notifications must be in the order of eviction.
    static let audit = Audit(name: "counts") { db in
        var bells: [Owner: Int] = [:]
        try BadgeLedger.all(in: db) { tenant, userId, counts in
            bells[Owner(tenant: tenant, userId: userId)] = counts.bell
        }
        var inboxSizes: [Owner: Int] = [:]
        try db.forEach("SELECT tenant, user_id, kept FROM \(allInboxes)") { row in
            inboxSizes[Owner(tenant: try row.id(0), userId: try row.id(1))] = try row.integer(2)
            return true
        }
        let recounted = try recount(in: db)
        let unranked = try db.rows(
            """
            SELECT inboxes.tenant, inboxes.user_id, COUNT(*)
            FROM \(allInboxes) JOIN \(allNotifications)
                ON notifications.tenant = inboxes.tenant AND notifications.user_id = inboxes.user_id
            WHERE inboxes.ranking > 0 AND notifications.removed_at IS NULL AND notifications.is_ranked = 0
            GROUP BY inboxes.tenant, inboxes.user_id
            """
        ) { (Owner(tenant: try $0.id(0), userId: try $0.id(1)), try $0.integer(2)) }
        return Audit.differences("bell", stored: bells, recounted: recounted.bells)
            + Audit.differences("kept", stored: inboxSizes, recounted: recounted.sizes)
            + Audit.differences(
                "number of notifications outside the order of eviction", stored: [:],
                recounted: Dictionary(uniqueKeysWithValues: unranked))
    }

    /// Returns every user's share of the bell, and the number of stored notifications.
    private static func recount(in db: DatabaseConnection) throws -> (bells: [Owner: Int], sizes: [Owner: Int]) {
        var bells: [Owner: Int] = [:]
        var sizes: [Owner: Int] = [:]
        try db.forEach(
            """
            SELECT tenant, user_id, category, seen_at IS NOT NULL, request_id IS NOT NULL, COUNT(*)
            FROM \(allNotifications) WHERE removed_at IS NULL
            GROUP BY 1, 2, 3, 4, 5
            """
        ) { row in
            let owner = Owner(tenant: try row.id(0), userId: try row.id(1))
            guard let category = NotificationCategory(rawValue: try row.text(2)) else {
                throw DatabaseError(.corrupt, "a stored notification has an unknown category")
            }
            let count = try row.integer(5)
            let share = BadgeChange.share(of: category, seen: try row.bool(3), isOfRequest: try row.bool(4))
            bells[owner, default: 0] += share.bell * count
            sizes[owner, default: 0] += count
            return true
        }
        return (bells, sizes)
    }
}
