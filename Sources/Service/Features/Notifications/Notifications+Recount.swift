import Database
import Domain
import Values

extension NotificationsFeature {
    /// Compares every stored count with a recount, for `bellhop check`: the badges of every user who has any, and the
    /// numbers of stored notifications.
    static let audit = Audit(name: "counts") { db in
        var badges: [Owner: [Int]] = [:]
        try BadgeLedger.all(in: db) { tenant, userId, counts in
            badges[Owner(tenant: tenant, userId: userId)] = [counts.requests, counts.bell]
        }
        var inboxSizes: [Owner: [Int]] = [:]
        try db.forEach(
            "SELECT tenant, user_id, kept FROM \(inboxes, unscoped: .audit("a recount looks at everybody's"))"
        ) { row in
            inboxSizes[Owner(tenant: try row.text(0), userId: try row.id(1))] = [try row.integer(2)]
            return true
        }
        let recounted = try recount(in: db)
        return differences(["requests", "bell"], stored: badges, recounted: recounted.shares)
            + differences(["kept"], stored: inboxSizes, recounted: recounted.sizes)
    }

    /// Every user's share of the badges, as requests and bell, and the number of stored notifications.
    private static func recount(in db: Connection) throws -> (shares: [Owner: [Int]], sizes: [Owner: [Int]]) {
        var shares: [Owner: [Int]] = [:]
        var sizes: [Owner: [Int]] = [:]
        try db.forEach(
            """
            SELECT tenant, user_id, category, seen_at IS NOT NULL, COUNT(*)
            FROM \(notifications, unscoped: .audit("a recount looks at everybody's")) WHERE removed_at IS NULL
            GROUP BY 1, 2, 3, 4
            """
        ) { row in
            let owner = Owner(tenant: try row.text(0), userId: try row.id(1))
            guard let category = NotificationCategory(rawValue: try row.text(2)) else {
                throw DatabaseError(.corrupt, "a notification has a category that cannot be")
            }
            let count = try row.integer(4)
            let share = BadgeChange.share(of: category, seen: try row.bool(3))
            shares[owner, default: [0, 0]][0] += share.requests * count
            shares[owner, default: [0, 0]][1] += share.bell * count
            sizes[owner, default: [0]][0] += count
            return true
        }
        return (shares, sizes)
    }

    /// One line for each stored count that differs, in the order of the users.
    private static func differences(
        _ names: [String], stored: [Owner: [Int]], recounted: [Owner: [Int]]
    ) -> [String] {
        let owners = Set(stored.keys).union(recounted.keys).sorted { ($0.tenant, $0.userId) < ($1.tenant, $1.userId) }
        return owners.flatMap { owner in
            names.enumerated().compactMap { index, name in
                let (known, present) = (stored[owner]?[index] ?? 0, recounted[owner]?[index] ?? 0)
                return known == present
                    ? nil : "\(owner.tenant)/\(owner.userId): \(name) is stored as \(known), and is \(present)"
            }
        }
    }
}
