// Written by .ci/client-models from openapi.yaml: change that, and run it.

extension BellhopClient {
    /// How guests show that they are at the shop.
    ///
    /// `GET /v1/shops/{id}/presence`
    public func getPresenceRule(id: String) async throws -> Bellhop.Answer<Bellhop.PresenceRule> {
        let call = try Bellhop.Call("GET", "/v1/shops/{id}/presence", ["id": id])
        return try await answer(call)
    }

    /// Whether guests must give the shop's code. For backends, administrators and the shop's staff.
    ///
    /// Who has shown to be there before stays so until it expires.
    ///
    /// `PUT /v1/shops/{id}/presence`
    ///
    /// - Parameters:
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func replacePresenceRule(id: String, _ body: Bellhop.ReplacePresenceRuleBody, idempotencyKey: String? = nil)
        async throws -> Bellhop.Answer<Bellhop.PresenceRule>
    {
        var call = try Bellhop.Call("PUT", "/v1/shops/{id}/presence", ["id": id])
        try call.json(body)
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// The code to show in the shop now. For backends, administrators and the shop's staff.
    ///
    /// It changes every minute; the one before is accepted for one more. 409 `presence.no_code` where the shop asks for
    /// none.
    ///
    /// `GET /v1/shops/{id}/presence/code`
    public func getPresenceCode(id: String) async throws -> Bellhop.Answer<Bellhop.PresenceCode> {
        let call = try Bellhop.Call("GET", "/v1/shops/{id}/presence/code", ["id": id])
        return try await answer(call)
    }

    /// Whether the caller is at the shop.
    ///
    /// `GET /v1/shops/{id}/presence/me`
    public func getPresence(id: String) async throws -> Bellhop.Answer<Bellhop.Presence> {
        let call = try Bellhop.Call("GET", "/v1/shops/{id}/presence/me", ["id": id])
        return try await answer(call)
    }

    /// The caller is at the shop, for the next ten minutes.
    ///
    /// With the code that the shop shows, where it asks for one: 403 `presence.code_required` without,
    /// `presence.wrong_code` with another; ten wrong ones in ten minutes are followed by 429. Doing it again goes on
    /// for ten more minutes. Nobody is at two shops: showing it at one ends it at the other. A booking in progress
    /// counts as present without any of this.
    ///
    /// `PUT /v1/shops/{id}/presence/me`
    ///
    /// - Parameters:
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func showPresence(id: String, _ body: Bellhop.ShowPresenceBody? = nil, idempotencyKey: String? = nil)
        async throws -> Bellhop.Answer<Bellhop.Presence>
    {
        var call = try Bellhop.Call("PUT", "/v1/shops/{id}/presence/me", ["id": id])
        try call.json(body)
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// The caller has left the shop.
    ///
    /// Also for one who was not there. A booking in progress goes on counting.
    ///
    /// `DELETE /v1/shops/{id}/presence/me`
    ///
    /// - Parameters:
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func endPresence(id: String, idempotencyKey: String? = nil) async throws -> Bellhop.Answer<Void> {
        var call = try Bellhop.Call("DELETE", "/v1/shops/{id}/presence/me", ["id": id])
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// What plays, and what is to come, in order.
    ///
    /// The track that plays is on top; the others follow by score, then what was added first, then track id. Watch
    /// `dj:{shopId}` on a stream instead of polling.
    ///
    /// `GET /v1/shops/{id}/dj`
    public func getDJSession(id: String) async throws -> Bellhop.Answer<Bellhop.DJSession> {
        let call = try Bellhop.Call("GET", "/v1/shops/{id}/dj", ["id": id])
        return try await answer(call)
    }

    /// What plays, and what is to come, in order.
    ///
    /// The track that plays is on top; the others follow by score, then what was added first, then track id. Watch
    /// `dj:{shopId}` on a stream instead of polling.
    ///
    /// `GET /v1/shops/{id}/dj`
    ///
    /// - Returns: nil where the state is still the one that `ifNoneMatch` names (304).
    public func getDJSession(id: String, ifNoneMatch: String) async throws -> Bellhop.Answer<Bellhop.DJSession>? {
        var call = try Bellhop.Call("GET", "/v1/shops/{id}/dj", ["id": id])
        try call.header("If-None-Match", ifNoneMatch)
        return try await answerUnlessCurrent(call)
    }

    /// Lets guests choose the music, or ends it. For backends, administrators and the shop's staff.
    ///
    /// The queue ends with the session.
    ///
    /// `PUT /v1/shops/{id}/dj`
    ///
    /// - Parameters:
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func replaceDJSession(id: String, _ body: Bellhop.ReplaceDJSessionBody, idempotencyKey: String? = nil)
        async throws -> Bellhop.Answer<Bellhop.DJSession>
    {
        var call = try Bellhop.Call("PUT", "/v1/shops/{id}/dj", ["id": id])
        try call.json(body)
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// The next track by order plays. For backends, administrators and the shop's staff.
    ///
    /// Call it when a track has ended. With `after`, the track that has ended (null: none played), it changes nothing
    /// if another one plays by now: two players that tell of the same end skip one track, not two.
    ///
    /// `POST /v1/shops/{id}/dj/current-track`
    ///
    /// - Parameters:
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func playNextTrack(id: String, _ body: Bellhop.PlayNextTrackBody? = nil, idempotencyKey: String? = nil)
        async throws -> Bellhop.Answer<Bellhop.DJSession>
    {
        var call = try Bellhop.Call("POST", "/v1/shops/{id}/dj/current-track", ["id": id])
        try call.json(body)
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// A queued track plays now; null stops the music. For backends, administrators and the shop's staff.
    ///
    /// The track that played leaves the queue.
    ///
    /// `PUT /v1/shops/{id}/dj/current-track`
    ///
    /// - Parameters:
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func playTrack(id: String, _ body: Bellhop.PlayTrackBody, idempotencyKey: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.DJSession>
    {
        var call = try Bellhop.Call("PUT", "/v1/shops/{id}/dj/current-track", ["id": id])
        try call.json(body)
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// Adds a track, voted up by who adds it; one that is queued already is voted up.
    ///
    /// Guests must be at the shop (403 `dj.not_present`); who runs the shop need not. A queue has at most 50 tracks, of
    /// one guest at most 5.
    ///
    /// `POST /v1/shops/{id}/dj/tracks`
    ///
    /// - Parameters:
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func addTrack(id: String, _ body: Bellhop.AddTrackBody, idempotencyKey: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.DJItemAnswer>
    {
        var call = try Bellhop.Call("POST", "/v1/shops/{id}/dj/tracks", ["id": id])
        try call.json(body)
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// Takes a track out of the queue. For who has added it, and who runs the shop.
    ///
    /// The one that plays cannot be taken out (409 `dj.playing`): let another one play.
    ///
    /// `DELETE /v1/shops/{id}/dj/tracks/{trackId}`
    ///
    /// - Parameters:
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func removeTrack(id: String, trackId: String, idempotencyKey: String? = nil) async throws
        -> Bellhop.Answer<Void>
    {
        var call = try Bellhop.Call("DELETE", "/v1/shops/{id}/dj/tracks/{trackId}", ["id": id, "trackId": trackId])
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// The caller's vote on a track; one side at a time, none takes it back.
    ///
    /// 403 `dj.not_present` from outside the shop, 409 `dj.not_active` without a session. The same vote again changes
    /// nothing.
    ///
    /// `PUT /v1/shops/{id}/dj/tracks/{trackId}/vote`
    ///
    /// - Parameters:
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func voteOnTrack(id: String, trackId: String, _ body: Bellhop.VoteOnTrackBody, idempotencyKey: String? = nil)
        async throws -> Bellhop.Answer<Bellhop.DJItemAnswer>
    {
        var call = try Bellhop.Call("PUT", "/v1/shops/{id}/dj/tracks/{trackId}/vote", ["id": id, "trackId": trackId])
        try call.json(body)
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }
}
