// Written by .ci/client-models from openapi.yaml: change that, and run it.

extension BellhopClient {
    /// Get the presence rule
    ///
    /// Returns how guests confirm that they are at the shop.
    ///
    /// `GET /v1/shops/{id}/presence`
    public func getPresenceRule(id: String) async throws -> Bellhop.Answer<Bellhop.PresenceRule> {
        let call = try Bellhop.Call("GET", "/v1/shops/{id}/presence", ["id": id])
        return try await answer(call)
    }

    /// Replace the presence rule
    ///
    /// Requires a service token, an administrator token, or a token of the shop's staff. Sets whether guests must enter
    /// the shop's code. Guests already present stay present until their presence expires.
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

    /// Get the presence code
    ///
    /// Requires a service token, an administrator token, or a token of the shop's staff. Returns the code to display in
    /// the shop. The code changes every minute; the previous one stays valid for another minute. A shop without a code
    /// answers 409 `presence.no_code`.
    ///
    /// `GET /v1/shops/{id}/presence/code`
    public func getPresenceCode(id: String) async throws -> Bellhop.Answer<Bellhop.PresenceCode> {
        let call = try Bellhop.Call("GET", "/v1/shops/{id}/presence/code", ["id": id])
        return try await answer(call)
    }

    /// Get the caller's presence
    ///
    /// Returns whether the caller is at the shop.
    ///
    /// `GET /v1/shops/{id}/presence/me`
    public func getPresence(id: String) async throws -> Bellhop.Answer<Bellhop.Presence> {
        let call = try Bellhop.Call("GET", "/v1/shops/{id}/presence/me", ["id": id])
        return try await answer(call)
    }

    /// Confirm the caller's presence
    ///
    /// Marks the caller as present at the shop for the next ten minutes. Repeating the call extends the presence by ten
    /// minutes from then.
    ///
    /// If the shop requires its code, a missing code is 403 `presence.code_required` and a wrong one is 403
    /// `presence.wrong_code`. After ten wrong codes within ten minutes, the answer is 429.
    ///
    /// A user is present at one shop at most: a presence at another shop ends. A user with a booking in progress counts
    /// as present without this call.
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

    /// End the caller's presence
    ///
    /// Succeeds even if the caller was not present. A booking in progress still counts as presence.
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

    /// Get the DJ session
    ///
    /// Returns the current track and the queue. The current track is first. The others follow by score, then by the
    /// time they were added, then by track id. Instead of polling, subscribe to `dj:{shopId}` on a stream.
    ///
    /// `GET /v1/shops/{id}/dj`
    public func getDJSession(id: String) async throws -> Bellhop.Answer<Bellhop.DJSession> {
        let call = try Bellhop.Call("GET", "/v1/shops/{id}/dj", ["id": id])
        return try await answer(call)
    }

    /// Get the DJ session
    ///
    /// Returns the current track and the queue. The current track is first. The others follow by score, then by the
    /// time they were added, then by track id. Instead of polling, subscribe to `dj:{shopId}` on a stream.
    ///
    /// `GET /v1/shops/{id}/dj`
    ///
    /// - Returns: nil where the state is still the one that `ifNoneMatch` names (304).
    ///
    /// - Parameters:
    ///   - ifNoneMatch: the ETag of the client's version. While it is current, the answer is 304.
    public func getDJSession(id: String, ifNoneMatch: String) async throws -> Bellhop.Answer<Bellhop.DJSession>? {
        var call = try Bellhop.Call("GET", "/v1/shops/{id}/dj", ["id": id])
        try call.header("If-None-Match", ifNoneMatch)
        return try await answerUnlessCurrent(call)
    }

    /// Start or end the DJ session
    ///
    /// Requires a service token, an administrator token, or a token of the shop's staff. In a DJ session, guests choose
    /// the music. Ending the session clears the queue.
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

    /// Play the next track
    ///
    /// Requires a service token, an administrator token, or a token of the shop's staff. Call it when a track has
    /// ended. `after` names the track that ended; null means that no track was playing. If another track is already
    /// playing, the call changes nothing. Two players that report the same end therefore skip only one track.
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

    /// Play a queued track
    ///
    /// Requires a service token, an administrator token, or a token of the shop's staff. Plays a track from the queue;
    /// null stops the music. The previous track leaves the queue.
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

    /// Add a track to the queue
    ///
    /// The new track starts with an upvote of the caller. Adding a track that is already queued gives it the caller's
    /// upvote. Guests must be at the shop (403 `dj.not_present`); this does not apply to staff, administrators and
    /// backends. A queue holds at most 50 tracks, and at most 5 of one guest.
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

    /// Remove a track from the queue
    ///
    /// Requires the token of the user in `addedBy`, a service token, an administrator token, or a token of the shop's
    /// staff. The current track cannot be removed (409 `dj.playing`): play another track instead.
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

    /// Vote on a track
    ///
    /// Sets the caller's vote on a track: `up`, `down`, or `none` to withdraw the vote. A caller outside the shop gets
    /// 403 `dj.not_present`; without a session the answer is 409 `dj.not_active`. Repeating a vote changes nothing.
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
