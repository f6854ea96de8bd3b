import Database
import Domain
import MicroHTTP
import Values
import Visibility

extension PostsFeature {
    static let postEndpoints = [
        Endpoint(.get, "/v1/posts", access: .bearer, query: ["authorId", "limit", "cursor"], listPosts),
        Endpoint(.post, "/v1/posts", access: .bearer, adds: true, create),
        Endpoint(.get, "/v1/posts/{id}", access: .bearer, show),
        Endpoint(.delete, "/v1/posts/{id}", access: .bearer, remove),
        Endpoint(.get, "/v1/feed", access: .bearer, query: ["since", "limit", "cursor"], showFeed),
    ]

    /// `GET /v1/posts`: the visible posts of one author, or the public posts of all, newest first.
    private static func listPosts(_ call: Call) throws -> Answer {
        let page = try call.page(limitMax: PostLimits.pageMax)
        let named = try call.query.id("authorId", User.self)
        let authorId = named?.text == "me" ? call.caller.userId : named
        let listing = listing(
            of: authorId, before: page.after.flatMap { Int($0) }, limit: page.rowsMax, for: call.caller)
        return .query(listing) { rows in page.response(try rows.rows(view)) { "\($0.post.sequence)" } }
    }

    private static func show(_ call: Call) throws -> Answer {
        let id = try call.pathID(0, Post.self)
        return .read { tx in Response.json(200, try require(id, tx)) }
    }

    /// `POST /v1/posts`: costs the same with ten followers and with a million (R-CUT-F-1).
    private static func create(_ call: Call) throws -> Answer {
        let draft = try call.body { fields in
            let draft = PostDraft(reading: &fields)
            if call.caller.isService, draft.authorId == nil {
                fields.reject("authorId", "is missing: a backend must name the author")
            }
            return draft
        }
        let authorId = draft.authorId ?? call.caller.userId
        // Numbers are committed in order. Otherwise a client that asks for newer posts would miss one.
        return .write(locking: .posts) { tx in
            try tx.lock(.author(authorId))
            guard try author(authorId, tx).postCount < PostLimits.postsOfAuthorMax else {
                throw Failure(
                    .conflict, "post.too_many",
                    "An author can have at most \(PostLimits.postsOfAuthorMax) posts. Remove one first.")
            }
            let post = Post(
                id: tx.makeID(Post.self), authorId: authorId, sequence: try takeSequence(tx),
                visibility: draft.visibility, text: draft.text, media: draft.media, createdAt: tx.now)
            try insert(post, tx)
            try add(posts: 1, to: authorId, tx)
            // If a backend posts for an author, the author's role is unknown, so such a post has the member too.
            let isOfBarber = call.caller.isService || ["barber", "staff"].contains(call.caller.role)
            let event = NewPost(post, barberId: isOfBarber ? authorId : nil)
            tx.publish("feed:new_post", audience: feedAudience(of: authorId), data: JSONWriter.bytes(event))
            return Response.json(201, PostView(post, own: OwnEngagement())).located(at: "/v1/posts", post.id)
        }
    }

    /// `DELETE /v1/posts/{id}`: for its author, an administrator or a backend.
    private static func remove(_ call: Call) throws -> Answer {
        let id = try call.pathID(0, Post.self)
        return .write(locking: .post(id)) { tx in
            guard let removed = try remove(id, tx) else {
                _ = try require(id, tx)
                throw Failure.forbidden(
                    "Only the author, an administrator or a backend may remove a post.", code: "post.not_yours")
            }
            try finishRemoval(of: removed, tx)
            return .noContent
        }
    }

    /// Counts and publishes the removal of a post.
    static func finishRemoval(of removed: Post, _ tx: Transaction) throws {
        try tx.lock(.author(removed.authorId))
        try add(posts: -1, to: removed.authorId, tx)
        tx.publish(
            "feed:post_removed", audience: feedAudience(of: removed.authorId),
            data: JSONWriter.object { $0.member("postId", removed.id) })
        tx.publish(removed.removalChange(readers: readers(of: removed), at: tx.now))
    }

    /// Returns the audience of the feeds that contain the post: the followers, and the author's other devices.
    private static func feedAudience(of authorId: ID<User>) -> [String] {
        [followed.grantedKey.key(of: { _ in authorId.text }), AudienceKey.make("user", authorId.text)].compactMap { $0 }
    }

    // MARK: The feed

    /// `GET /v1/feed`: with `since`, the posts newer than that number, and how many of them are by others.
    private static func showFeed(_ call: Call) throws -> Answer {
        let page = try call.page(limitMax: PostLimits.pageMax)
        let since = try call.query.int("since", in: 0...sequenceMax)
        let before = page.after.flatMap { Int($0) } ?? sequenceMax
        return .read { tx in
            let newest = try newestSequence(tx)
            let found = try tx.db.rows(
                feed(before: before, after: since ?? 0, limit: page.rowsMax, for: tx.caller), view)
            let newer = try since.map { since in
                // Nothing is newer than the newest, so most polls end here.
                since >= newest ? 0 : try tx.db.integer(newCount(since: since, for: tx.caller)) ?? 0
            }
            let (items, next) = page.cut(found) { "\($0.post.sequence)" }
            let body = JSONWriter.object { writer in
                writer.member("items", items)
                writer.member("next", next)
                writer.member("newest", newest)
                if let newer {
                    writer.member("newCount", min(newer, PostLimits.newCountMax))
                    writer.member("newCountIsMore", newer > PostLimits.newCountMax)
                }
            }
            // Counts and own marks change without a version, so the bytes serve as the version.
            return Response.json(200, body, tag: EntityTag(content: body, in: tx.epoch, for: tx.caller))
        }
    }

    /// JSON readers round larger numbers.
    private static let sequenceMax = 1 << 53
}
