import Database
import Domain
import MicroHTTP
import Rows
import Values

extension PostsFeature {
    static let engagementEndpoints = [
        Endpoint(.put, "/v1/posts/{id}/likes/{userId}", access: .bearer) { try engage(.like, $0) },
        Endpoint(.delete, "/v1/posts/{id}/likes/{userId}", access: .bearer) { try disengage(.like, $0) },
        Endpoint(.put, "/v1/posts/{id}/reposts/{userId}", access: .bearer) { try engage(.repost, $0) },
        Endpoint(.delete, "/v1/posts/{id}/reposts/{userId}", access: .bearer) { try disengage(.repost, $0) },
    ]

    /// `PUT …/likes/me`: doing it again changes nothing. A backend names the user.
    private static func engage(_ kind: Engagement.Kind, _ call: Call) throws -> Answer {
        let (id, userId) = try (call.pathID(0, Post.self), call.pathUser(1))
        return .write(locking: .post(id)) { tx in
            _ = try require(id, tx)
            if try insert(kind, of: userId, to: id, tx) { try note(kind, 1, of: id, tx) }
            return try state(of: userId, to: id, tx)
        }
    }

    /// `DELETE …/likes/me`: also of a post that is no longer shown to the one who liked it.
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

    private static func note(_ kind: Engagement.Kind, _ change: Int, of id: ID<Post>, _ tx: Transaction) throws {
        guard let told = try count(kind, change, of: id, tx) else { return }
        tx.publish(told.engagementChange(readers: readers(of: told)))
    }

    /// The counts, and what the user did, as of this transaction.
    private static func state(of userId: ID<User>, to id: ID<Post>, _ tx: Transaction) throws -> Response {
        let found = try tx.db.row(
            """
            SELECT \(columns(of: "p")), \(ownColumns(of: "p", for: userId, visibleTo: tx.scope))
            FROM \(posts, visibleTo: tx.scope) AS p WHERE p.id = \(id.text)
            """, view)
        guard let found else { throw Failure.notFound("post") }
        return Response.json(200) { writer in
            writer.member("postId", id)
            found.post.engagement.write(membersTo: &writer)
            found.own.write(membersTo: &writer)
        }
    }

    // MARK: Telling later

    /// Publishes the counts that have changed since they were last published: the end of a storm, and once a second its
    /// middle.
    static let engagementTick = Tick(
        name: "posts.engagement", everySeconds: 1,
        isDue: { db, now in
            let pause = now.adding(seconds: -PostLimits.engagementIntervalSeconds)
            return try db.exists(
                """
                SELECT 1 FROM \(posts, unscoped: telling)
                WHERE is_untold = 1 AND told_at <= \(pause.microseconds) LIMIT 1
                """)
        },
        body: { tx in
            let ids = try untold(tx)
            // Nobody may be counting them meanwhile.
            try tx.lock(ids.map { .post($0) })
            for id in ids {
                let told = try tx.db.row(
                    """
                    UPDATE \(posts, unscoped: telling) SET is_untold = 0, told_at = \(tx.now.microseconds)
                    WHERE tenant = \(tx.tenant) AND id = \(id.text) AND is_untold = 1
                    RETURNING \(columns(of: "posts"))
                    """, post)
                if let told { tx.publish(told.engagementChange(readers: readers(of: told))) }
            }
        })

    private static let telling = Unscoped.bookkeeping("what is told of a post, its own readers hear")

    private static func untold(_ tx: Transaction) throws -> [ID<Post>] {
        let pause = tx.now.adding(seconds: -PostLimits.engagementIntervalSeconds)
        return try tx.db.rows(
            """
            SELECT id FROM \(posts, unscoped: telling)
            WHERE tenant = \(tx.tenant) AND is_untold = 1 AND told_at <= \(pause.microseconds)
            ORDER BY told_at LIMIT \(PostLimits.engagementsPerStepMax)
            """
        ) { ID(try $0.text(0)) }
    }
}
