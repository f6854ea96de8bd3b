// Written by .ci/client-models from openapi.yaml: change that, and run it.

extension BellhopClient {
    /// The challenges of the caller's tenant, by id.
    ///
    /// `GET /v1/challenges`
    ///
    /// - Parameters:
    ///   - cursor: the `next` of the page before, with the same filters.
    public func listChallenges(limit: Int? = nil, cursor: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.Page<Bellhop.Challenge>>
    {
        var call = try Bellhop.Call("GET", "/v1/challenges")
        call.query("limit", limit)
        call.query("cursor", cursor)
        return try await answer(call)
    }

    /// The challenges of the caller's tenant, by id. All pages, one after another; `limit` is how many items one of
    /// them has.
    public func challengePages(limit: Int? = nil) -> Bellhop.Pages<Bellhop.Page<Bellhop.Challenge>> {
        Bellhop.Pages { cursor in try await listChallenges(limit: limit, cursor: cursor) }
    }

    /// One challenge.
    ///
    /// `GET /v1/challenges/{id}`
    public func getChallenge(id: String) async throws -> Bellhop.Answer<Bellhop.Challenge> {
        let call = try Bellhop.Call("GET", "/v1/challenges/{id}", ["id": id])
        return try await answer(call)
    }

    /// Makes or changes a challenge. For backends, administrators and the staff of its shop.
    ///
    /// Scores count from `startsAt` to before `endsAt`. With `add` a user's scores are added, with `best` the best one
    /// stays. `order` says whether the highest or the lowest wins. Once there are scores, `mode` and `order` cannot
    /// change (409 `challenge.has_scores`). There are at most 10,000 (409 `challenge.too_many`).
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

    /// Removes a challenge with all its scores.
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

    /// A score of whom a backend or an administrator names.
    ///
    /// Users post no scores of their own (403 `score.not_judge`), unless `selfDeclared` is set. The answer's rank and
    /// position are those behind this very change. 409 before the start (`challenge.not_started`), from the end on
    /// (`challenge.ended`), for a sum beyond 64 bits (`score.overflow`), and on a board with 2,000,000 entries
    /// (`challenge.full`). Without the key 400 `idempotency.missing_key`.
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

    /// Takes a user off the leaderboard. One's own; anybody's for backends and administrators.
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

    /// The top, or those around the caller; the caller's own place always.
    ///
    /// Best first; equal scores share a `rank` (1, 2, 2, 4) and stand in the order they were reached in, which
    /// `position` counts. Poll with If-None-Match: while nothing has changed it is a 304.
    ///
    /// `GET /v1/challenges/{id}/leaderboard`
    ///
    /// - Parameters:
    ///   - limit: from the top, 100 by default, at most 500; around the caller on each side, 5 and 100.
    public func getLeaderboard(id: String, limit: Int? = nil, around: Bellhop.GetLeaderboardAround? = nil) async throws
        -> Bellhop.Answer<Bellhop.Leaderboard>
    {
        var call = try Bellhop.Call("GET", "/v1/challenges/{id}/leaderboard", ["id": id])
        call.query("limit", limit)
        call.query("around", around)
        return try await answer(call)
    }

    /// The top, or those around the caller; the caller's own place always.
    ///
    /// Best first; equal scores share a `rank` (1, 2, 2, 4) and stand in the order they were reached in, which
    /// `position` counts. Poll with If-None-Match: while nothing has changed it is a 304.
    ///
    /// `GET /v1/challenges/{id}/leaderboard`
    ///
    /// - Returns: nil where the state is still the one that `ifNoneMatch` names (304).
    ///
    /// - Parameters:
    ///   - limit: from the top, 100 by default, at most 500; around the caller on each side, 5 and 100.
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
