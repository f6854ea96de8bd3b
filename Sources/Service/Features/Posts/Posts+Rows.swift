import Database
import Domain
import Values

extension PostsFeature {
    private static let counting = Unscoped.reaction("counts change with the actions of other users")
    private static let numbering = Unscoped.bookkeeping("all posts of a tenant share one sequence")

    // MARK: Posts

    /// Returns a post.
    ///
    /// - Parameter userId: The user whose likes and reposts are shown; nil for the caller.
    /// - Throws: 404 for a post that does not exist, and equally for one that the caller may not see.
    static func require(_ id: ID<Post>, for userId: ID<User>? = nil, _ tx: Transaction) throws -> PostView {
        try tx.db.row(
            """
            SELECT \(viewColumns(for: userId ?? tx.caller.userId, visibleTo: tx.scope)) FROM \(posts, visibleTo: tx.scope) AS p
            WHERE p.id = \(id)
            """, view
        ).required("post")
    }

    /// Returns a query of the posts of one author, or of all public posts, newest first.
    static func listing(of authorId: ID<User>?, before: Int?, limit: Int, for caller: Caller) -> SQL {
        let which: SQL = if let authorId { "p.author_id = \(authorId)" } else { "p.visibility = 'public'" }
        let bound: SQL = if let before { "AND p.sequence < \(before)" } else { "" }
        return """
            SELECT \(viewColumns(for: caller.userId, visibleTo: caller.scope))
            FROM \(posts, visibleTo: caller.scope) AS p WHERE \(which) \(bound)
            ORDER BY p.sequence DESC LIMIT \(limit)
            """
    }

    /// Returns the next number, after all committed ones. To be called with the tenant's order locked.
    static func takeSequence(_ tx: Transaction) throws -> Int {
        let taken = try tx.db.integer(
            """
            INSERT INTO \(counters, within: tx.tenant, numbering) (tenant, newest) VALUES (\(tx.tenant), 1)
            ON CONFLICT (tenant) DO UPDATE SET newest = post_counters.newest + 1 RETURNING newest
            """)
        guard let taken else { throw DatabaseError(.corrupt, "the posts have no counter") }
        return taken
    }

    static func newestSequence(_ tx: Transaction) throws -> Int {
        try tx.db.integer("SELECT newest FROM \(counters, within: tx.tenant, numbering)") ?? 0
    }

    static func insert(_ post: Post, _ tx: Transaction) throws {
        try tx.db.run(
            """
            INSERT INTO \(posts, writableBy: tx.scope)
                (tenant, published_at, \(columns))
            VALUES (\(tx.tenant), 0, \(post.values))
            """)
    }

    /// Removes a post.
    ///
    /// - Returns: Nil if it does not exist, or the caller may not remove it.
    static func remove(_ id: ID<Post>, _ tx: Transaction) throws -> Post? {
        let removed = try tx.db.row(
            "DELETE FROM \(posts, writableBy: tx.scope) WHERE id = \(id) RETURNING \(columns)", Post.init(row:))
        if removed != nil {
            try tx.db.run(
                """
                INSERT INTO \(removals, within: tx.tenant, .bookkeeping("the engagements of a removed post are deleted in steps")) (tenant, post_id)
                VALUES (\(tx.tenant), \(id))
                """)
        }
        return removed
    }

    // MARK: The feed

    /// Returns a query of the posts of the authors that the caller follows, and the caller's own, newest first.
    ///
    /// For each author only the newest post is looked up, in one step of an index. All posts of a page are by the
    /// `limit` authors with the newest posts. So the cost depends on the number of followed authors, not of their
    /// posts.
    static func feed(before: Int, after: Int, limit: Int, for caller: Caller) -> SQL {
        """
        SELECT \(viewColumns(for: caller.userId, visibleTo: caller.scope))
        FROM (SELECT heads.author_id AS author FROM (
                SELECT followed.author_id, (
                    SELECT h.sequence FROM \(posts, visibleTo: caller.scope) AS h
                    WHERE h.author_id = followed.author_id AND h.sequence < \(before) AND h.sequence > \(after)
                    ORDER BY h.sequence DESC LIMIT 1) AS head
                FROM (
                    SELECT f.author_id FROM \(follows, visibleTo: caller.scope) AS f
                    WHERE f.follower_id = \(caller.userId)
                    UNION ALL SELECT \(caller.userId)) AS followed) AS heads
            WHERE heads.head IS NOT NULL ORDER BY heads.head DESC LIMIT \(limit)) AS a
        JOIN \(posts, visibleTo: caller.scope) AS p ON p.author_id = a.author AND p.sequence IN (
            SELECT q.sequence FROM \(posts, visibleTo: caller.scope) AS q
            WHERE q.author_id = a.author AND q.sequence < \(before) AND q.sequence > \(after)
            ORDER BY q.sequence DESC LIMIT \(limit))
        ORDER BY p.sequence DESC LIMIT \(limit)
        """
    }

    /// Returns a query that counts the newer posts of others in the caller's feed, up to one more than the limit.
    ///
    /// It is a cross join, whose order SQLite does not change: from the followed authors to their newest posts.
    static func newCount(since: Int, for caller: Caller) -> SQL {
        """
        SELECT COUNT(*) FROM (
            SELECT 1 FROM \(follows, visibleTo: caller.scope) AS f
            CROSS JOIN \(posts, visibleTo: caller.scope) AS p
            WHERE f.follower_id = \(caller.userId) AND p.author_id = f.author_id AND p.sequence > \(since)
            LIMIT \(PostLimits.newCountMax + 1)) AS newer
        """
    }

    // MARK: Engagement

    /// Stores an engagement.
    ///
    /// - Returns: Whether it is new.
    static func insert(_ kind: Engagement.Kind, of user: ID<User>, to id: ID<Post>, _ tx: Transaction) throws -> Bool {
        try tx.db.run(
            """
            INSERT INTO \(engagements, writableBy: tx.scope) (tenant, post_id, kind, user_id, engaged_at)
            VALUES (\(tx.tenant), \(id), \(kind.rawValue), \(user), \(tx.now))
            ON CONFLICT (tenant, post_id, kind, user_id) DO NOTHING
            """) == 1
    }

    /// Deletes an engagement.
    ///
    /// - Returns: Whether it existed.
    static func delete(_ kind: Engagement.Kind, of user: ID<User>, to id: ID<Post>, _ tx: Transaction) throws -> Bool {
        try tx.db.run(
            """
            DELETE FROM \(engagements, writableBy: tx.scope)
            WHERE post_id = \(id) AND kind = \(kind.rawValue) AND user_id = \(user)
            """) == 1
    }

    /// Changes a post's count. To be called with the post locked.
    ///
    /// - Returns: The changed post if it is to be published now; otherwise a later step publishes it.
    static func count(_ kind: Engagement.Kind, _ change: Int, of id: ID<Post>, _ tx: Transaction) throws -> Post? {
        let (likes, reposts) = kind == .like ? (change, 0) : (0, change)
        let pause = tx.now.adding(seconds: -PostLimits.engagementIntervalSeconds)
        return try tx.db.row(
            """
            UPDATE \(posts, within: tx.tenant, counting)
            SET like_count = like_count + \(likes), repost_count = repost_count + \(reposts),
                is_unpublished = CASE WHEN published_at > \(pause) AND published_at <= \(tx.now) THEN 1 ELSE 0 END,
                published_at = CASE WHEN published_at > \(pause) AND published_at <= \(tx.now) THEN published_at ELSE \(tx.now) END
            WHERE id = \(id)
            RETURNING \(columns), is_unpublished
            """
        ) { row in try row.bool(columnCount) ? nil : try Post(row: row) } ?? nil
    }

    // MARK: Followers

    static func findFollowing(of followerId: ID<User>, to authorId: ID<User>, _ tx: Transaction) throws -> Following? {
        try tx.db.row(
            """
            SELECT follower_id, author_id, followed_at FROM \(follows, visibleTo: tx.scope)
            WHERE follower_id = \(followerId) AND author_id = \(authorId)
            """, following)
    }

    static func following(_ row: Row) throws -> Following {
        Following(followerId: try row.id(0), authorId: try row.id(1), followedAt: try row.moment(2))
    }

    /// Stores a following.
    ///
    /// - Returns: Whether it is new.
    static func insert(_ following: Following, _ tx: Transaction) throws -> Bool {
        try tx.db.run(
            """
            INSERT INTO \(follows, writableBy: tx.scope) (tenant, follower_id, author_id, followed_at)
            VALUES (\(tx.tenant), \(following.followerId), \(following.authorId), \(following.followedAt))
            ON CONFLICT (tenant, follower_id, author_id) DO NOTHING
            """) == 1
    }

    /// Deletes a following.
    ///
    /// - Returns: Whether it existed.
    static func unfollow(_ authorId: ID<User>, by followerId: ID<User>, _ tx: Transaction) throws -> Bool {
        // The write policy cannot express this: an author may end a following, but not begin one in another user's
        // name.
        let table: SQL =
            authorId == tx.caller.userId
            ? "DELETE FROM \(follows, within: tx.tenant, .reaction("an author removes a follower"))"
            : "DELETE FROM \(follows, writableBy: tx.scope)"
        return try tx.db.run("\(table) WHERE author_id = \(authorId) AND follower_id = \(followerId)") == 1
    }

    /// Returns a query of the followers of an author, or of the authors that a user follows, ordered by id. It has only
    /// the ones that the caller may see.
    static func followings(
        of userId: ID<User>, asAuthor: Bool, after: String?, limit: Int, visibleTo scope: Scope
    ) -> SQL {
        let (own, other): (SQL, SQL) = asAuthor ? ("author_id", "follower_id") : ("follower_id", "author_id")
        return """
            SELECT follower_id, author_id, followed_at FROM \(follows, visibleTo: scope)
            WHERE \(own) = \(userId) AND \(other) > \(after ?? "") ORDER BY \(other) LIMIT \(limit)
            """
    }

    // MARK: Counts of users

    static func author(_ userId: ID<User>, _ tx: Transaction) throws -> Author {
        try tx.db.row(
            """
            SELECT user_id, follower_count, following_count, post_count FROM \(authors, visibleTo: tx.scope)
            WHERE user_id = \(userId)
            """
        ) { row in
            Author(
                userId: try row.id(0), followerCount: try row.integer(1), followingCount: try row.integer(2),
                postCount: try row.integer(3))
        } ?? Author(userId: userId)
    }

    /// Changes a user's counts. To be called with the user locked as an author.
    static func add(
        followers: Int = 0, following: Int = 0, posts: Int = 0, to userId: ID<User>, _ tx: Transaction
    ) throws {
        // Two statements: a row to be inserted must satisfy the checks, even if it already exists.
        try tx.db.run(
            """
            INSERT INTO \(authors, of: userId, in: tx.tenant) (tenant, user_id) VALUES (\(tx.tenant), \(userId))
            ON CONFLICT (tenant, user_id) DO NOTHING
            """)
        try tx.db.run(
            """
            UPDATE \(authors, of: userId, in: tx.tenant) SET follower_count = follower_count + \(followers),
                following_count = following_count + \(following), post_count = post_count + \(posts)
            """)
    }
}
