import Database
import Domain
import Values

extension NotificationsFeature {
    /// The user whose counts are compared.
    struct Owner: Hashable, Comparable {
        let tenant: String
        let userId: ID<User>

        static func < (left: Owner, right: Owner) -> Bool {
            (left.tenant, left.userId) < (right.tenant, right.userId)
        }
    }

    /// A stored count that differs from the recount.
    struct Difference: Equatable, CustomStringConvertible {
        let owner: Owner
        let count: String
        let stored: Int
        let recounted: Int

        var description: String {
            "\(owner.tenant)/\(owner.userId): \(count) is stored as \(stored), and is \(recounted)"
        }
    }

    /// Compares every stored count with a recount.
    static let audit = Audit(name: "counts") { db in
        var stored: [Owner: BadgeChange] = [:]
        try BadgeLedger.all(in: db) { tenant, userId, counts in stored[Owner(tenant: tenant, userId: userId)] = counts }
        return try recount(in: db, stored: stored).map(\.description)
    }

    /// Counts every user's notifications again, for `bellhop check`.
    ///
    /// - Parameter stored: the stored badges of every user who has any.
    /// - Returns: every badge that differs, and every count of stored notifications that differs.
    static func recount(in db: Connection, stored: [Owner: BadgeChange]) throws -> [Difference] {
        var shares: [Owner: BadgeChange] = [:]
        var present: [Owner: Int] = [:]
        try db.forEach(
            """
            SELECT tenant, user_id, category, seen_at IS NOT NULL, COUNT(*)
            FROM \(notifications, unscoped: .audit("a recount looks at everybody's")) WHERE removed_at IS NULL
            GROUP BY 1, 2, 3, 4
            """
        ) { row in
            let owner = Owner(tenant: try row.text(0), userId: ID(try row.text(1)))
            guard let category = NotificationCategory(rawValue: try row.text(2)) else {
                throw DatabaseError(.corrupt, "a notification has a category that cannot be")
            }
            let count = try row.integer(4)
            let share = BadgeChange.share(of: category, seen: try row.bool(3))
            shares[owner, default: .none] += BadgeChange(requests: share.requests * count, bell: share.bell * count)
            present[owner, default: 0] += count
            return true
        }
        return try differences(shares, stored) + inboxDifferences(present, in: db)
    }

    private static func differences(_ shares: [Owner: BadgeChange], _ stored: [Owner: BadgeChange]) -> [Difference] {
        Set(shares.keys).union(stored.keys).sorted().flatMap { owner in
            let (share, known) = (shares[owner] ?? .none, stored[owner] ?? .none)
            let pairs = [("requests", known.requests, share.requests), ("bell", known.bell, share.bell)]
            return pairs.filter { $0.1 != $0.2 }.map {
                Difference(owner: owner, count: $0.0, stored: $0.1, recounted: $0.2)
            }
        }
    }

    private static func inboxDifferences(_ present: [Owner: Int], in db: Connection) throws -> [Difference] {
        var stored: [Owner: Int] = [:]
        try db.forEach(
            "SELECT tenant, user_id, kept FROM \(inboxes, unscoped: .audit("a recount looks at everybody's"))"
        ) { row in
            stored[Owner(tenant: try row.text(0), userId: ID(try row.text(1)))] = try row.integer(2)
            return true
        }
        return Set(present.keys).union(stored.keys).sorted().compactMap { owner in
            let (known, there) = (stored[owner] ?? 0, present[owner] ?? 0)
            return known == there
                ? nil : Difference(owner: owner, count: "kept", stored: known, recounted: there)
        }
    }
}
