// Written by .ci/client-models from openapi.yaml: change that, and run it.

extension BellhopClient {
    /// List posts
    ///
    /// Lists the posts of one author, or the public posts of all authors; the newest first.
    ///
    /// `GET /v1/posts`
    ///
    /// - Parameters:
    ///   - authorId: only posts of this author; `me` is the caller. By default, the public posts of all authors.
    ///   - limit: maximum number of items on a page.
    ///   - cursor: value of `next` of the previous page. Use it with the same filters.
    public func listPosts(authorId: String? = nil, limit: Int? = nil, cursor: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.Page<Bellhop.PostView>>
    {
        var call = try Bellhop.Call("GET", "/v1/posts")
        call.query("authorId", authorId)
        call.query("limit", limit)
        call.query("cursor", cursor)
        return try await answer(call)
    }

    /// List posts, page by page; `limit` is the number of items on a page.
    public func postPages(authorId: String? = nil, limit: Int? = nil) -> Bellhop.Pages<Bellhop.Page<Bellhop.PostView>> {
        Bellhop.Pages { cursor in try await listPosts(authorId: authorId, limit: limit, cursor: cursor) }
    }

    /// Create a post
    ///
    /// The post appears in the feeds of all followers, and connected followers receive `feed:new_post`. The call takes
    /// the same time for ten followers as for a million. A service token names the author in `authorId`. An author can
    /// have at most 100,000 posts (409 `post.too_many`).
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

    /// Get a post
    ///
    /// `GET /v1/posts/{id}`
    public func getPost(id: String) async throws -> Bellhop.Answer<Bellhop.PostView> {
        let call = try Bellhop.Call("GET", "/v1/posts/{id}", ["id": id])
        return try await answer(call)
    }

    /// Delete a post
    ///
    /// Requires the author's token, an administrator token, or a service token. Feeds receive `feed:post_removed`;
    /// table subscriptions on the post receive `table:change`. Its likes and reposts are removed later, in the
    /// background.
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

    /// Like a post
    ///
    /// Liking a post again changes nothing.
    ///
    /// `PUT /v1/posts/{id}/likes/{userId}`
    ///
    /// - Parameters:
    ///   - userId: id of the user; `me` is the caller. A service token can name any user.
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func putLike(id: String, userId: String, idempotencyKey: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.Engagement>
    {
        var call = try Bellhop.Call("PUT", "/v1/posts/{id}/likes/{userId}", ["id": id, "userId": userId])
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// Unlike a post
    ///
    /// Unliking a post that the user does not like changes nothing. A post that the user can no longer see can still be
    /// unliked (204).
    ///
    /// `DELETE /v1/posts/{id}/likes/{userId}`
    ///
    /// - Returns: no value where there is nothing to show (204).
    ///
    /// - Parameters:
    ///   - userId: id of the user; `me` is the caller. A service token can name any user.
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func deleteLike(id: String, userId: String, idempotencyKey: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.Engagement?>
    {
        var call = try Bellhop.Call("DELETE", "/v1/posts/{id}/likes/{userId}", ["id": id, "userId": userId])
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answerIfAny(call)
    }

    /// Repost a post
    ///
    /// Reposting a post again changes nothing.
    ///
    /// `PUT /v1/posts/{id}/reposts/{userId}`
    ///
    /// - Parameters:
    ///   - userId: id of the user; `me` is the caller. A service token can name any user.
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func putRepost(id: String, userId: String, idempotencyKey: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.Engagement>
    {
        var call = try Bellhop.Call("PUT", "/v1/posts/{id}/reposts/{userId}", ["id": id, "userId": userId])
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// Remove a repost
    ///
    /// Removing a repost that does not exist changes nothing. A repost of a post that the user can no longer see can
    /// still be removed (204).
    ///
    /// `DELETE /v1/posts/{id}/reposts/{userId}`
    ///
    /// - Returns: no value where there is nothing to show (204).
    ///
    /// - Parameters:
    ///   - userId: id of the user; `me` is the caller. A service token can name any user.
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func deleteRepost(id: String, userId: String, idempotencyKey: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.Engagement?>
    {
        var call = try Bellhop.Call("DELETE", "/v1/posts/{id}/reposts/{userId}", ["id": id, "userId": userId])
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answerIfAny(call)
    }

    /// Get the feed
    ///
    /// Returns the posts of the caller and of the authors that the caller follows, the newest first. `since` is the
    /// `sequence` of the newest post that the client has. With it, the answer has only newer posts, and the exact
    /// number of new posts by others. Pass `newest` as `since` in the next call.
    ///
    /// `GET /v1/feed`
    ///
    /// - Parameters:
    ///   - since: sequence number of the newest post that the client has.
    ///   - limit: maximum number of items on a page.
    ///   - cursor: value of `next` of the previous page. Use it with the same filters.
    public func getFeed(since: Int? = nil, limit: Int? = nil, cursor: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.Feed>
    {
        var call = try Bellhop.Call("GET", "/v1/feed")
        call.query("since", since)
        call.query("limit", limit)
        call.query("cursor", cursor)
        return try await answer(call)
    }

    /// Get the feed
    ///
    /// Returns the posts of the caller and of the authors that the caller follows, the newest first. `since` is the
    /// `sequence` of the newest post that the client has. With it, the answer has only newer posts, and the exact
    /// number of new posts by others. Pass `newest` as `since` in the next call.
    ///
    /// `GET /v1/feed`
    ///
    /// - Returns: nil where the state is still the one that `ifNoneMatch` names (304).
    ///
    /// - Parameters:
    ///   - since: sequence number of the newest post that the client has.
    ///   - limit: maximum number of items on a page.
    ///   - cursor: value of `next` of the previous page. Use it with the same filters.
    ///   - ifNoneMatch: the ETag of the client's version. While it is current, the answer is 304.
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

    /// Get the feed, page by page; `limit` is the number of items on a page.
    public func feedPages(since: Int? = nil, limit: Int? = nil) -> Bellhop.Pages<Bellhop.Feed> {
        Bellhop.Pages { cursor in try await getFeed(since: since, limit: limit, cursor: cursor) }
    }

    /// Get a user's profile counts
    ///
    /// Returns the number of followers, of followed authors and of posts. `me` is the caller.
    ///
    /// `GET /v1/users/{id}`
    public func getUser(id: String) async throws -> Bellhop.Answer<Bellhop.UserProfile> {
        let call = try Bellhop.Call("GET", "/v1/users/{id}", ["id": id])
        return try await answer(call)
    }

    /// List followers
    ///
    /// Lists the followers of a user. Without a service token, the list has only relations that the caller is part of.
    ///
    /// `GET /v1/users/{id}/followers`
    ///
    /// - Parameters:
    ///   - limit: maximum number of items on a page.
    ///   - cursor: value of `next` of the previous page. Use it with the same filters.
    public func listFollowers(id: String, limit: Int? = nil, cursor: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.Page<Bellhop.Following>>
    {
        var call = try Bellhop.Call("GET", "/v1/users/{id}/followers", ["id": id])
        call.query("limit", limit)
        call.query("cursor", cursor)
        return try await answer(call)
    }

    /// List followers, page by page; `limit` is the number of items on a page.
    public func followerPages(id: String, limit: Int? = nil) -> Bellhop.Pages<Bellhop.Page<Bellhop.Following>> {
        Bellhop.Pages { cursor in try await listFollowers(id: id, limit: limit, cursor: cursor) }
    }

    /// List followed users
    ///
    /// Lists the authors that a user follows. Without a service token, the list has only relations that the caller is
    /// part of.
    ///
    /// `GET /v1/users/{id}/following`
    ///
    /// - Parameters:
    ///   - limit: maximum number of items on a page.
    ///   - cursor: value of `next` of the previous page. Use it with the same filters.
    public func listFollowing(id: String, limit: Int? = nil, cursor: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.Page<Bellhop.Following>>
    {
        var call = try Bellhop.Call("GET", "/v1/users/{id}/following", ["id": id])
        call.query("limit", limit)
        call.query("cursor", cursor)
        return try await answer(call)
    }

    /// List followed users, page by page; `limit` is the number of items on a page.
    public func followingPages(id: String, limit: Int? = nil) -> Bellhop.Pages<Bellhop.Page<Bellhop.Following>> {
        Bellhop.Pages { cursor in try await listFollowing(id: id, limit: limit, cursor: cursor) }
    }

    /// Get a follower
    ///
    /// Returns since when the user follows the author; 404 if the user does not.
    ///
    /// `GET /v1/users/{id}/followers/{followerId}`
    ///
    /// - Parameters:
    ///   - followerId: id of the follower; `me` is the caller. A service token can name any user.
    public func getFollower(id: String, followerId: String) async throws -> Bellhop.Answer<Bellhop.Following> {
        let call = try Bellhop.Call(
            "GET", "/v1/users/{id}/followers/{followerId}", ["id": id, "followerId": followerId])
        return try await answer(call)
    }

    /// Follow a user
    ///
    /// Open streams receive the author's posts from the next one on. Following a user again changes nothing. A user can
    /// follow at most 1,000 others. A file of tables can restrict the possible followers (403 `contact.refused`).
    ///
    /// `PUT /v1/users/{id}/followers/{followerId}`
    ///
    /// - Parameters:
    ///   - followerId: id of the follower; `me` is the caller. A service token can name any user.
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

    /// Unfollow a user
    ///
    /// Removes the relation. Both the follower and the author can do this.
    ///
    /// `DELETE /v1/users/{id}/followers/{followerId}`
    ///
    /// - Parameters:
    ///   - followerId: id of the follower; `me` is the caller. A service token can name any user.
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
