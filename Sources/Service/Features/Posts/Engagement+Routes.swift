import Database
import Domain
import MicroHTTP
import Values

extension PostsFeature {
    static let engagementEndpoints = [
        Endpoint(.put, "/v1/posts/{id}/likes/{userId}", access: .bearer, adds: true) { try engage(.like, $0) },
        Endpoint(.delete, "/v1/posts/{id}/likes/{userId}", access: .bearer) { try disengage(.like, $0) },
        Endpoint(.put, "/v1/posts/{id}/reposts/{userId}", access: .bearer, adds: true) { try engage(.repost, $0) },
        Endpoint(.delete, "/v1/posts/{id}/reposts/{userId}", access: .bearer) { try disengage(.repost, $0) },
    ]

    /// `PUT …/likes/me`: repeating it changes nothing. A backend names the user.
    private static func engage(_ kind: Engagement.Kind, _ call: Call) throws -> Answer {
        let (id, userId) = try (call.pathID(0, Post.self), call.pathUser(1))
        return .write(locking: .post(id)) { tx in
            _ = try require(id, tx)
            if try insert(kind, of: userId, to: id, tx) { try note(kind, 1, of: id, tx) }
            return try state(of: userId, to: id, tx)
        }
    }

    /// `DELETE …/likes/me`: also works for a post that is no longer visible to the user.
    private static func disengage(_ kind: Engagement.Kind, _ call: Call) throws -> Answer {
        let (id, userId) = try (call.pathID(0, Post.self), call.pathUser(1))
        return .write(locking: .post(id)) { tx in
            let wasThere = try delete(kind, of: userId, to: id, tx)
            if wasThere { try note(kind, -1, of: id, tx) }
            do {
                return try state(of: userId, to: id, tx)
            } catch let failure as Failure where failure.kind == .notFound && wasThere {
                return .noContent
            }
        }
    }

    static func note(_ kind: Engagement.Kind, _ change: Int, of id: ID<Post>, _ tx: Transaction) throws {
        if let post = try count(kind, change, of: id, tx) {
            tx.publish(post.engagementChange(readers: readers(of: post)))
        }
    }

    /// Returns the counts, and the user's own engagement, in this transaction.
    private static func state(of userId: ID<User>, to id: ID<Post>, _ tx: Transaction) throws -> Response {
        let found = try require(id, for: userId, tx)
        return Response.json(200) { writer in
            writer.member("postId", id)
            found.post.engagement.write(membersTo: &writer)
            found.own.write(membersTo: &writer)
        }
    }

    // MARK: Publishing later

    /// Publishes the counts that have changed since they were last published: once per second, and at the end of a
    /// storm.
    static let engagementTick = Tick(
        name: "posts.engagement", everySeconds: 1,
        due: { "SELECT tenant FROM \(posts, unscoped: publishing) WHERE \(unpublishedCondition(at: $0))" }
    ) { tx in
        let ids: [ID<Post>] = try tx.db.rows(
            """
            SELECT id FROM \(posts, within: tx.tenant, publishing) WHERE \(unpublishedCondition(at: tx.now))
            ORDER BY published_at LIMIT \(PostLimits.engagementsPerStepMax)
            """
        ) { try $0.id(0) }
        // Locked, so that no other transaction counts them meanwhile.
        try tx.lock(ids.map { .post($0) })
        for id in ids {
            let post = try tx.db.row(
                """
                UPDATE \(posts, within: tx.tenant, publishing) SET is_unpublished = 0, published_at = \(tx.now)
                WHERE id = \(id) AND is_unpublished = 1 RETURNING \(columns)
                """, Post.init(row:))
            if let post { tx.publish(post.engagementChange(readers: readers(of: post))) }
        }
    }

    private static let publishing = Unscoped.bookkeeping("the counts of a post are sent to its readers")

    private static func unpublishedCondition(at now: Timestamp) -> SQL {
        // A time in the future was stored before the clock was set back. It must not stop the post until then.
        let due = now.adding(seconds: -PostLimits.engagementIntervalSeconds)
        return "is_unpublished = 1 AND NOT (published_at > \(due) AND published_at <= \(now))"
    }
}
