import Database
import Domain
import MicroHTTP
import Realtime
import Visibility

extension PostsFeature {
    static let postEndpoints = [
        Endpoint(.get, "/v1/posts", access: .bearer, listPosts),
        Endpoint(.post, "/v1/posts", access: .bearer, create),
        Endpoint(.get, "/v1/posts/{id}", access: .bearer, show),
        Endpoint(.delete, "/v1/posts/{id}", access: .bearer, remove),
        Endpoint(.get, "/v1/feed", access: .bearer, showFeed),
    ]

    // MARK: Posts

    /// `GET /v1/posts`: of one author what the caller may see, or else the public ones of all, the newest first.
    private static func listPosts(_ call: Call) throws -> Answer {
        let query = try call.query(["authorId", "limit", "cursor"])
        let page = try query.page(limitMax: PostLimits.pageMax)
        let named = try query.id("authorId", User.self)
        let authorId = named?.text == "me" ? call.caller.userId : named
        let listing = listing(
            of: authorId, before: page.after.flatMap { Int($0) }, limit: page.limit + 1, for: call.caller)
        return .query(listing) { rows in
            let found = try rows.rows(view)
            let items = Array(found.prefix(page.limit))
            return Response.page(
                items, next: found.count > page.limit ? items.last.map { "\($0.post.sequence)" } : nil, call)
        }
    }

    private static func show(_ call: Call) throws -> Answer {
        _ = try call.query([])
        let id = try call.pathID(0, Post.self)
        return .read { tx in Response.json(200, JSONWriter.bytes(try require(id, tx))) }
    }

    /// `POST /v1/posts`: the post gets the tenant's next number; connected followers hear it, and it costs the same
    /// whether there are ten of them or a million (CUT F-1).
    private static func create(_ call: Call) throws -> Answer {
        _ = try call.query([])
        var fields = try call.fields()
        let draft = PostDraft(reading: &fields)
        if call.caller.isService, draft.authorId == nil {
            fields.reject("authorId", "is missing: a backend posts on behalf of somebody")
        }
        try fields.finish()
        let authorId = draft.authorId ?? call.caller.userId
        // Numbers are committed in their order, or who asks for what is newer would miss a post.
        return .write(on: .posts) { tx in
            try tx.hold(.author(authorId))
            guard try author(authorId, tx).postCount < PostLimits.postsOfAuthorMax else {
                throw Failure(
                    .conflict, "post.too_many",
                    "An author has at most \(PostLimits.postsOfAuthorMax) posts; remove one first.")
            }
            let post = Post(
                id: tx.makeID(Post.self), authorId: authorId, sequence: try takeSequence(tx),
                visibility: draft.visibility, text: draft.text, media: draft.media, createdAt: tx.now)
            try insert(post, tx)
            try add(posts: 1, to: authorId, tx)
            tx.emit("feed:new_post", audience: feedAudience(of: authorId), data: JSONWriter.bytes(post))
            return Response.json(
                201, JSONWriter.bytes(PostView(post, own: OwnEngagement())),
                headers: [("Location", "/v1/posts/\(Response.encoded(post.id.text))")])
        }
    }

    /// `DELETE /v1/posts/{id}`: its author, an administrator or a backend removes it.
    private static func remove(_ call: Call) throws -> Answer {
        _ = try call.query([])
        let id = try call.pathID(0, Post.self)
        return .write(on: .post(id)) { tx in
            guard let removed = try remove(id, tx) else {
                _ = try require(id, tx)
                throw Failure.forbidden(
                    "Only its author, an administrator or a backend removes a post.", code: "post.not_yours")
            }
            try tx.hold(.author(removed.authorId))
            try add(posts: -1, to: removed.authorId, tx)
            tx.emit(
                "feed:post_removed", audience: feedAudience(of: removed.authorId),
                data: JSONWriter.object { $0.member("postId", removed.id) })
            tell(removed.removalChange(readers: readers(of: removed), at: tx.now), tx)
            return .noContent
        }
    }

    /// Followers, and the author's other devices: the feeds that the post is in.
    private static func feedAudience(of authorId: ID<User>) -> [String] {
        let followers = followed.given.key(of: { _ in authorId.text })
        return (followers.map { [$0] } ?? []) + [AudienceKey.make("user", authorId.text)]
    }

    /// Tells a change to the streams that watch the post.
    static func tell(_ change: RoutedChange, _ tx: Transaction) {
        tx.emit(
            EventLog.change, audience: [], topic: EventLog.topic(schema: change.schema, table: change.table),
            data: JSONWriter.bytes(change))
    }

    // MARK: The feed

    /// `GET /v1/feed`: with `since`, what is newer than that number, and how many of others there are (CUT decision 12).
    private static func showFeed(_ call: Call) throws -> Answer {
        let query = try call.query(["since", "limit", "cursor"])
        let page = try query.page(limitMax: PostLimits.pageMax)
        let since = try query.int("since", in: 0...sequenceMax)
        let before = page.after.flatMap { Int($0) } ?? sequenceMax
        return .read { tx in
            let newest = try newestSequence(tx)
            let found = try tx.db.rows(
                feed(before: before, after: since ?? 0, limit: page.limit + 1, for: tx.caller), view)
            let newer = try since.map { since in
                // Nothing is newer than the newest: most polls end here.
                since >= newest ? 0 : try tx.db.integer(newCount(since: since, for: tx.caller)) ?? 0
            }
            let items = Array(found.prefix(page.limit))
            let next = found.count > page.limit ? items.last.map { "\($0.post.sequence)" } : nil
            let body = JSONWriter.object { writer in
                writer.member("items", items)
                writer.member("next", next.map { call.cursors.seal($0, filters: PageCursors.filters(of: call)) })
                writer.member("newest", newest)
                if let newer {
                    writer.member("newCount", min(newer, PostLimits.newCountMax))
                    writer.member("newCountIsMore", newer > PostLimits.newCountMax)
                }
            }
            // Counts and own marks change without any version: the bytes are their own.
            return Response.json(
                200, body, etag: String(CollapseKey.of(String(decoding: body, as: UTF8.self)), radix: 36))
        }
    }

    /// What numbers of posts JSON's readers can tell apart.
    private static let sequenceMax = 1 << 53
}
