// Written by .ci/client-models from openapi.yaml: change that, and run it.

extension BellhopClient {
    /// List challenges
    ///
    /// Lists the challenges of the caller's tenant, ordered by id.
    ///
    /// `GET /v1/challenges`
    ///
    /// - Parameters:
    ///   - limit: maximum number of items on a page.
    ///   - cursor: value of `next` of the previous page. Use it with the same filters.
    public func listChallenges(limit: Int? = nil, cursor: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.Page<Bellhop.Challenge>>
    {
        var call = try Bellhop.Call("GET", "/v1/challenges")
        call.query("limit", limit)
        call.query("cursor", cursor)
        return try await answer(call)
    }

    /// List challenges, page by page; `limit` is the number of items on a page.
    public func challengePages(limit: Int? = nil) -> Bellhop.Pages<Bellhop.Page<Bellhop.Challenge>> {
        Bellhop.Pages { cursor in try await listChallenges(limit: limit, cursor: cursor) }
    }

    /// Get a challenge
    ///
    /// `GET /v1/challenges/{id}`
    public func getChallenge(id: String) async throws -> Bellhop.Answer<Bellhop.Challenge> {
        let call = try Bellhop.Call("GET", "/v1/challenges/{id}", ["id": id])
        return try await answer(call)
    }

    /// Create or replace a challenge
    ///
    /// Requires a service token, an administrator token, or a token of the staff of its shop. Scores count from
    /// `startsAt` until before `endsAt`. With the mode `add`, the scores of a user are added up; with `best`, only the
    /// best one counts. `order` sets whether the highest or the lowest score wins. `mode` and `order` cannot change
    /// once the challenge has scores (409 `challenge.has_scores`). At most 10,000 challenges can exist (409
    /// `challenge.too_many`).
    ///
    /// `PUT /v1/challenges/{id}`
    ///
    /// - Parameters:
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func replaceChallenge(id: String, _ body: Bellhop.ReplaceChallengeBody, idempotencyKey: String? = nil)
        async throws -> Bellhop.Answer<Bellhop.Challenge>
    {
        var call = try Bellhop.Call("PUT", "/v1/challenges/{id}", ["id": id])
        try call.json(body)
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// Delete a challenge
    ///
    /// Deletes the challenge and all of its scores. Requires a service token, an administrator token, or a token of the
    /// staff of its shop.
    ///
    /// `DELETE /v1/challenges/{id}`
    ///
    /// - Parameters:
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func deleteChallenge(id: String, idempotencyKey: String? = nil) async throws -> Bellhop.Answer<Void> {
        var call = try Bellhop.Call("DELETE", "/v1/challenges/{id}", ["id": id])
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// Add a score
    ///
    /// Adds a score for the user in `userId`. Requires a service token or an administrator token (403
    /// `score.not_judge`). With the setting `selfDeclared`, users can add their own scores, too.
    ///
    /// The answer contains the rank and position right after this change. 409 has one of these codes:
    /// `challenge.not_started` before the start, `challenge.ended` from the end on, `score.overflow` for a sum beyond
    /// 64 bits, and `challenge.full` on a board with 2,000,000 entries. Without an `Idempotency-Key` the answer is 400
    /// `idempotency.missing_key`.
    ///
    /// `POST /v1/challenges/{id}/scores`
    ///
    /// - Parameters:
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func addScore(id: String, _ body: Bellhop.AddScoreBody, idempotencyKey: String) async throws
        -> Bellhop.Answer<Bellhop.AddedScore>
    {
        var call = try Bellhop.Call("POST", "/v1/challenges/{id}/scores", ["id": id])
        try call.json(body)
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// Withdraw a score
    ///
    /// Removes a user from the leaderboard. Users can remove only themselves; a service or administrator token can
    /// remove any user.
    ///
    /// `DELETE /v1/challenges/{id}/scores/{userId}`
    ///
    /// - Parameters:
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func withdrawScore(id: String, userId: String, idempotencyKey: String? = nil) async throws
        -> Bellhop.Answer<Void>
    {
        var call = try Bellhop.Call("DELETE", "/v1/challenges/{id}/scores/{userId}", ["id": id, "userId": userId])
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// Get a leaderboard
    ///
    /// Returns the top entries, or with `around=me` the entries around the caller. The caller's own entry is always in
    /// `me`. The best score comes first. Equal scores share a `rank` (1, 2, 2, 4). They are ordered by when they were
    /// reached, and `position` counts in that order. Poll with `If-None-Match`: while the leaderboard is unchanged, the
    /// answer is 304.
    ///
    /// `GET /v1/challenges/{id}/leaderboard`
    ///
    /// - Parameters:
    ///   - limit: number of entries. From the top: 100 by default, at most 500. Around the caller, on each side: 5
    ///     by default, at most 100.
    ///   - around: set to `me` to get the entries around the caller.
    public func getLeaderboard(id: String, limit: Int? = nil, around: Bellhop.GetLeaderboardAround? = nil) async throws
        -> Bellhop.Answer<Bellhop.Leaderboard>
    {
        var call = try Bellhop.Call("GET", "/v1/challenges/{id}/leaderboard", ["id": id])
        call.query("limit", limit)
        call.query("around", around)
        return try await answer(call)
    }

    /// Get a leaderboard
    ///
    /// Returns the top entries, or with `around=me` the entries around the caller. The caller's own entry is always in
    /// `me`. The best score comes first. Equal scores share a `rank` (1, 2, 2, 4). They are ordered by when they were
    /// reached, and `position` counts in that order. Poll with `If-None-Match`: while the leaderboard is unchanged, the
    /// answer is 304.
    ///
    /// `GET /v1/challenges/{id}/leaderboard`
    ///
    /// - Returns: nil where the state is still the one that `ifNoneMatch` names (304).
    ///
    /// - Parameters:
    ///   - limit: number of entries. From the top: 100 by default, at most 500. Around the caller, on each side: 5
    ///     by default, at most 100.
    ///   - around: set to `me` to get the entries around the caller.
    ///   - ifNoneMatch: the ETag of the client's version. While it is current, the answer is 304.
    public func getLeaderboard(
        id: String, limit: Int? = nil, around: Bellhop.GetLeaderboardAround? = nil, ifNoneMatch: String
    ) async throws -> Bellhop.Answer<Bellhop.Leaderboard>? {
        var call = try Bellhop.Call("GET", "/v1/challenges/{id}/leaderboard", ["id": id])
        call.query("limit", limit)
        call.query("around", around)
        try call.header("If-None-Match", ifNoneMatch)
        return try await answerUnlessCurrent(call)
    }
}
