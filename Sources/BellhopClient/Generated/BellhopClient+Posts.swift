// Written by .ci/client-models from openapi.yaml: change that, and run it.

extension BellhopClient {
    /// Posts of one author, or the public ones of all, the newest first.
    ///
    /// `GET /v1/posts`
    ///
    /// - Parameters:
    ///   - authorId: `me` is the caller.
    ///   - cursor: the `next` of the page before, with the same filters.
    public func listPosts(authorId: String? = nil, limit: Int? = nil, cursor: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.Page<Bellhop.PostView>>
    {
        var call = try Bellhop.Call("GET", "/v1/posts")
        call.query("authorId", authorId)
        call.query("limit", limit)
        call.query("cursor", cursor)
        return try await answer(call)
    }

    /// Posts of one author, or the public ones of all, the newest first. All pages, one after another; `limit` is how
    /// many items one of them has.
    public func postPages(authorId: String? = nil, limit: Int? = nil) -> Bellhop.Pages<Bellhop.Page<Bellhop.PostView>> {
        Bellhop.Pages { cursor in try await listPosts(authorId: authorId, limit: limit, cursor: cursor) }
    }

    /// Posts.
    ///
    /// Connected followers hear it (`feed:new_post`); it is in all their feeds. It takes as long with a million
    /// followers as with ten. Backends name the author.
    ///
    /// `POST /v1/posts`
    ///
    /// - Parameters:
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func createPost(_ body: Bellhop.CreatePostBody, idempotencyKey: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.PostView>
    {
        var call = try Bellhop.Call("POST", "/v1/posts")
        try call.json(body)
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// One post.
    ///
    /// `GET /v1/posts/{id}`
    public func getPost(id: String) async throws -> Bellhop.Answer<Bellhop.PostView> {
        let call = try Bellhop.Call("GET", "/v1/posts/{id}", ["id": id])
        return try await answer(call)
    }

    /// Removes a post. Its author, an administrator or a backend does.
    ///
    /// Feeds are told (`feed:post_removed`), and those who watch it (`table:change`). Its likes and reposts go by and
    /// by.
    ///
    /// `DELETE /v1/posts/{id}`
    ///
    /// - Parameters:
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func deletePost(id: String, idempotencyKey: String? = nil) async throws -> Bellhop.Answer<Void> {
        var call = try Bellhop.Call("DELETE", "/v1/posts/{id}", ["id": id])
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// Likes a post. Doing it again changes nothing.
    ///
    /// `PUT /v1/posts/{id}/likes/{userId}`
    ///
    /// - Parameters:
    ///   - userId: a user's id; `me` is the caller. Backends name others.
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func putLike(id: String, userId: String, idempotencyKey: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.Engagement>
    {
        var call = try Bellhop.Call("PUT", "/v1/posts/{id}/likes/{userId}", ["id": id, "userId": userId])
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// Takes it back.
    ///
    /// `DELETE /v1/posts/{id}/likes/{userId}`
    ///
    /// - Returns: no value where there is nothing to show (204).
    ///
    /// - Parameters:
    ///   - userId: a user's id; `me` is the caller. Backends name others.
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func deleteLike(id: String, userId: String, idempotencyKey: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.Engagement?>
    {
        var call = try Bellhop.Call("DELETE", "/v1/posts/{id}/likes/{userId}", ["id": id, "userId": userId])
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answerIfAny(call)
    }

    /// Reposts a post. Doing it again changes nothing.
    ///
    /// `PUT /v1/posts/{id}/reposts/{userId}`
    ///
    /// - Parameters:
    ///   - userId: a user's id; `me` is the caller. Backends name others.
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func putRepost(id: String, userId: String, idempotencyKey: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.Engagement>
    {
        var call = try Bellhop.Call("PUT", "/v1/posts/{id}/reposts/{userId}", ["id": id, "userId": userId])
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// Takes it back.
    ///
    /// `DELETE /v1/posts/{id}/reposts/{userId}`
    ///
    /// - Returns: no value where there is nothing to show (204).
    ///
    /// - Parameters:
    ///   - userId: a user's id; `me` is the caller. Backends name others.
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func deleteRepost(id: String, userId: String, idempotencyKey: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.Engagement?>
    {
        var call = try Bellhop.Call("DELETE", "/v1/posts/{id}/reposts/{userId}", ["id": id, "userId": userId])
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answerIfAny(call)
    }

    /// Posts of those whom the caller follows, and the own ones, the newest first.
    ///
    /// With `since`, the `sequence` of the newest post that the client knows: what is newer, and exactly how many of
    /// others there are. `newest` is what to ask with the next time.
    ///
    /// `GET /v1/feed`
    ///
    /// - Parameters:
    ///   - cursor: the `next` of the page before, with the same filters.
    public func getFeed(since: Int? = nil, limit: Int? = nil, cursor: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.Feed>
    {
        var call = try Bellhop.Call("GET", "/v1/feed")
        call.query("since", since)
        call.query("limit", limit)
        call.query("cursor", cursor)
        return try await answer(call)
    }

    /// Posts of those whom the caller follows, and the own ones, the newest first.
    ///
    /// With `since`, the `sequence` of the newest post that the client knows: what is newer, and exactly how many of
    /// others there are. `newest` is what to ask with the next time.
    ///
    /// `GET /v1/feed`
    ///
    /// - Returns: nil where the state is still the one that `ifNoneMatch` names (304).
    ///
    /// - Parameters:
    ///   - cursor: the `next` of the page before, with the same filters.
    public func getFeed(since: Int? = nil, limit: Int? = nil, cursor: String? = nil, ifNoneMatch: String) async throws
        -> Bellhop.Answer<Bellhop.Feed>?
    {
        var call = try Bellhop.Call("GET", "/v1/feed")
        call.query("since", since)
        call.query("limit", limit)
        call.query("cursor", cursor)
        try call.header("If-None-Match", ifNoneMatch)
        return try await answerUnlessCurrent(call)
    }

    /// Posts of those whom the caller follows, and the own ones, the newest first. All pages, one after another;
    /// `limit` is how many items one of them has.
    public func feedPages(since: Int? = nil, limit: Int? = nil) -> Bellhop.Pages<Bellhop.Feed> {
        Bellhop.Pages { cursor in try await getFeed(since: since, limit: limit, cursor: cursor) }
    }

    /// How many follow a user, are followed and were posted; `me` is the caller.
    ///
    /// `GET /v1/users/{id}`
    public func getUser(id: String) async throws -> Bellhop.Answer<Bellhop.UserProfile> {
        let call = try Bellhop.Call("GET", "/v1/users/{id}", ["id": id])
        return try await answer(call)
    }

    /// Those who follow a user, as far as the caller is one of the two.
    ///
    /// `GET /v1/users/{id}/followers`
    ///
    /// - Parameters:
    ///   - cursor: the `next` of the page before, with the same filters.
    public func listFollowers(id: String, limit: Int? = nil, cursor: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.Page<Bellhop.Following>>
    {
        var call = try Bellhop.Call("GET", "/v1/users/{id}/followers", ["id": id])
        call.query("limit", limit)
        call.query("cursor", cursor)
        return try await answer(call)
    }

    /// Those who follow a user, as far as the caller is one of the two. All pages, one after another; `limit` is how
    /// many items one of them has.
    public func followerPages(id: String, limit: Int? = nil) -> Bellhop.Pages<Bellhop.Page<Bellhop.Following>> {
        Bellhop.Pages { cursor in try await listFollowers(id: id, limit: limit, cursor: cursor) }
    }

    /// Those whom a user follows, as far as the caller is one of the two.
    ///
    /// `GET /v1/users/{id}/following`
    ///
    /// - Parameters:
    ///   - cursor: the `next` of the page before, with the same filters.
    public func listFollowing(id: String, limit: Int? = nil, cursor: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.Page<Bellhop.Following>>
    {
        var call = try Bellhop.Call("GET", "/v1/users/{id}/following", ["id": id])
        call.query("limit", limit)
        call.query("cursor", cursor)
        return try await answer(call)
    }

    /// Those whom a user follows, as far as the caller is one of the two. All pages, one after another; `limit` is how
    /// many items one of them has.
    public func followingPages(id: String, limit: Int? = nil) -> Bellhop.Pages<Bellhop.Page<Bellhop.Following>> {
        Bellhop.Pages { cursor in try await listFollowing(id: id, limit: limit, cursor: cursor) }
    }

    /// Since when one follows the other.
    ///
    /// `GET /v1/users/{id}/followers/{followerId}`
    ///
    /// - Parameters:
    ///   - followerId: a user's id; `me` is the caller. Backends name others.
    public func getFollower(id: String, followerId: String) async throws -> Bellhop.Answer<Bellhop.Following> {
        let call = try Bellhop.Call(
            "GET", "/v1/users/{id}/followers/{followerId}", ["id": id, "followerId": followerId])
        return try await answer(call)
    }

    /// Follows a user. Doing it again changes nothing.
    ///
    /// Open streams hear the author's posts from the next one on. A user follows at most 1,000 others.
    ///
    /// `PUT /v1/users/{id}/followers/{followerId}`
    ///
    /// - Parameters:
    ///   - followerId: a user's id; `me` is the caller. Backends name others.
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func follow(id: String, followerId: String, idempotencyKey: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.Followed>
    {
        var call = try Bellhop.Call(
            "PUT", "/v1/users/{id}/followers/{followerId}", ["id": id, "followerId": followerId])
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// Follows no longer. An author lets go of a follower by the same.
    ///
    /// `DELETE /v1/users/{id}/followers/{followerId}`
    ///
    /// - Parameters:
    ///   - followerId: a user's id; `me` is the caller. Backends name others.
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func unfollow(id: String, followerId: String, idempotencyKey: String? = nil) async throws
        -> Bellhop.Answer<Void>
    {
        var call = try Bellhop.Call(
            "DELETE", "/v1/users/{id}/followers/{followerId}", ["id": id, "followerId": followerId])
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }
}
