import Database
import Values

extension PostsFeature {
    private static let bookkeeping = Unscoped.bookkeeping("the remains of a removed post belong to no user")
    private static let recounting = Unscoped.audit("a recount reads the rows of all tenants")
    private static let allPosts: SQL = "\(posts, unscoped: recounting)"
    private static let allEngagements: SQL = "\(engagements, unscoped: recounting)"
    private static let allFollows: SQL = "\(follows, unscoped: recounting)"

    // MARK: Pruning

    /// Deletes the likes and reposts of removed posts in steps, because a post may have a million.
    static let pruning = Tick(
        name: "posts.forgetting", everySeconds: 1,
        due: { _ in "SELECT tenant FROM \(removals, unscoped: bookkeeping)" }, isTidying: true
    ) { tx in
        let removed = try tx.db.row(
            "SELECT post_id FROM \(removals, within: tx.tenant, bookkeeping) ORDER BY post_id LIMIT 1"
        ) { try $0.text(0) }
        guard let removed else { return }
        let count = try tx.db.run(
            """
            DELETE FROM \(engagements, within: tx.tenant, bookkeeping)
            WHERE post_id = \(removed) AND (kind, user_id) IN (
                SELECT kind, user_id FROM \(engagements, within: tx.tenant, bookkeeping)
                WHERE post_id = \(removed)
                ORDER BY kind, user_id LIMIT \(Limits.prunedAtOnceMax))
            """)
        guard count < Limits.prunedAtOnceMax else { return }
        try tx.db.run(
            "DELETE FROM \(removals, within: tx.tenant, bookkeeping) WHERE post_id = \(removed)")
    }

    // MARK: Recounting

    /// Compares every stored number of posts and users with a recount.
    static let audit = Audit(name: "posts") { db in
        try engagementDifferences(in: db) + orphans(in: db) + authorDifferences(in: db) + numberDifferences(in: db)
    }

    private static func engagementDifferences(in db: DatabaseConnection) throws -> [String] {
        try db.rows(
            """
            SELECT p.tenant, p.id, p.like_count, p.repost_count, COALESCE(e.likes, 0), COALESCE(e.reposts, 0)
            FROM \(allPosts) AS p
            LEFT JOIN (
                SELECT tenant, post_id, SUM(CASE WHEN kind = 'like' THEN 1 ELSE 0 END) AS likes,
                    SUM(CASE WHEN kind = 'repost' THEN 1 ELSE 0 END) AS reposts
                FROM \(allEngagements) GROUP BY tenant, post_id
            ) AS e ON e.tenant = p.tenant AND e.post_id = p.id
            WHERE p.like_count <> COALESCE(e.likes, 0) OR p.repost_count <> COALESCE(e.reposts, 0)
            """
        ) { row in
            """
            \(try row.text(0))/\(try row.text(1)): \(try row.integer(2)) likes and \(try row.integer(3)) reposts are \
            \(try row.integer(4)) and \(try row.integer(5))
            """
        }
    }

    private static func orphans(in db: DatabaseConnection) throws -> [String] {
        try db.rows(
            """
            SELECT e.tenant, e.post_id, COUNT(*) FROM \(allEngagements) AS e
            WHERE NOT EXISTS (SELECT 1 FROM \(allPosts) AS p
                    WHERE p.tenant = e.tenant AND p.id = e.post_id)
                AND NOT EXISTS (SELECT 1 FROM \(removals, unscoped: recounting) AS r
                    WHERE r.tenant = e.tenant AND r.post_id = e.post_id)
            GROUP BY e.tenant, e.post_id
            """
        ) { row in "\(try row.text(0))/\(try row.text(1)): \(try row.integer(2)) engagements belong to no post" }
    }

    private static func authorDifferences(in db: DatabaseConnection) throws -> [String] {
        var counted: [Owner: [Int]] = [:]
        try db.forEach(
            """
            SELECT tenant, user_id, sum(followers), sum(following), sum(posts) FROM (
                SELECT tenant, author_id AS user_id, 1 AS followers, 0 AS following, 0 AS posts
                FROM \(allFollows)
                UNION ALL SELECT tenant, follower_id, 0, 1, 0 FROM \(allFollows)
                UNION ALL SELECT tenant, author_id, 0, 0, 1 FROM \(allPosts)) AS one
            GROUP BY tenant, user_id
            """
        ) { row in
            let user = Owner(tenant: try row.id(0), userId: try row.id(1))
            counted[user] = try (2...4).map { try row.integer($0) }
            return true
        }
        var differences: [String] = []
        try db.forEach(
            "SELECT tenant, user_id, follower_count, following_count, post_count FROM \(authors, unscoped: recounting)"
        ) { row in
            let user = Owner(tenant: try row.id(0), userId: try row.id(1))
            let (stored, found) = (try (2...4).map { try row.integer($0) }, counted.removeValue(forKey: user))
            if stored != found ?? [0, 0, 0] {
                differences.append(
                    "\(user.tenant)/\(user.userId): followers, followed, posts \(stored) are \(found ?? [])")
            }
            return true
        }
        differences += counted.map {
            "\($0.tenant)/\($0.userId): the counts of followers, followed and posts, \($1), are not stored"
        }
        return differences
    }

    /// Checks that no post has a number above the counter, which would be reused.
    private static func numberDifferences(in db: DatabaseConnection) throws -> [String] {
        try db.rows(
            """
            SELECT p.tenant, MAX(p.sequence), COALESCE(MAX(c.newest), 0) FROM \(allPosts) AS p
            LEFT JOIN \(counters, unscoped: recounting) AS c ON c.tenant = p.tenant
            GROUP BY p.tenant HAVING MAX(p.sequence) > COALESCE(MAX(c.newest), 0)
            """
        ) { row in "\(try row.text(0)): post \(try row.integer(1)) is behind the counter, \(try row.integer(2))" }
    }
}
