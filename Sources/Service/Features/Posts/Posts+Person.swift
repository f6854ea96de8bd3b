import Database
import Domain
import Values

extension PostsFeature {
    private static let leaving = Unscoped.reaction("an erased person's posts and relations end for all users")

    /// Rows of one transaction of an erasure, each with its events and counts.
    private static let erasedAtOnceMax = 32

    static let postsStep = PersonStep.repeating("posts.posts") { person, tx in
        let ids: [ID<Post>] = try tx.db.rows(
            """
            SELECT id FROM \(posts, within: tx.tenant, leaving)
            WHERE author_id = \(person) ORDER BY sequence LIMIT \(erasedAtOnceMax)
            """
        ) { try $0.id(0) }
        try tx.lock(ids.map { .post($0) })
        for id in ids {
            if let removed = try remove(id, tx) { try finishRemoval(of: removed, tx) }
        }
        return !ids.isEmpty
    }

    /// Ends the relations with the users that follow the person, or that the person follows.
    static let followsStep = PersonStep.repeating("posts.follows") { person, tx in
        let found = try ["follower_id", "author_id"].flatMap { (column: SQL) in
            try tx.db.rows(
                """
                SELECT follower_id, author_id, followed_at FROM \(follows, within: tx.tenant, leaving)
                WHERE \(column) = \(person) ORDER BY follower_id, author_id
                LIMIT \(erasedAtOnceMax)
                """, following)
        }
        try tx.lock(found.flatMap { [.author($0.authorId), .author($0.followerId)] })
        for following in found where try unfollow(following.authorId, by: following.followerId, tx) {
            try note(following.followerId, follows: following.authorId, false, tx)
        }
        return !found.isEmpty
    }

    /// Ends the person's likes and reposts. It looks beside each post, because an index by user would cost every like.
    static let engagementsStep = PersonStep("posts.engagements") { person, place, tx in
        let last = try tx.lastID(
            after: place, of: PersonStep.lookedUpAtOnce, in: WalkedTable(posts, by: "id", leaving))
        guard let last else { return try eraseRemains(of: person, tx) }
        let found = try tx.db.rows(
            """
            SELECT p.id, e.kind FROM \(posts, within: tx.tenant, leaving) AS p
            JOIN \(engagements, within: tx.tenant, leaving) AS e ON e.tenant = p.tenant AND e.post_id = p.id
                AND e.kind IN ('like', 'repost') AND e.user_id = \(person)
            WHERE p.id > \(place ?? "") AND p.id <= \(last)
            ORDER BY p.id LIMIT \(erasedAtOnceMax)
            """
        ) { (id: try $0.id(0) as ID<Post>, kind: Engagement.Kind(rawValue: try $0.text(1)) ?? .like) }
        try tx.lock(found.map { .post($0.id) })
        for (id, kind) in found where try delete(kind, of: person, to: id, tx) { try note(kind, -1, of: id, tx) }
        return found.count < erasedAtOnceMax ? last : place ?? ""
    }

    /// Deletes the person's likes of removed posts, which are deleted in steps.
    private static func eraseRemains(of person: ID<User>, _ tx: Transaction) throws -> String? {
        try tx.db.run(
            """
            DELETE FROM \(engagements, within: tx.tenant, leaving)
            WHERE user_id = \(person) AND kind IN ('like', 'repost') AND post_id IN (
                SELECT post_id FROM \(removals, within: tx.tenant, leaving))
            """)
        return nil
    }
}
