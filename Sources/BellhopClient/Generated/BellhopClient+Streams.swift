// Written by .ci/client-models from openapi.yaml: change that, and run it.

extension BellhopClient {
    /// A ticket that opens one stream within 30 seconds.
    ///
    /// `POST /v1/stream-tickets`
    @discardableResult
    public func createStreamTicket(_ body: Bellhop.CreateStreamTicketBody? = nil) async throws
        -> Bellhop.Answer<Bellhop.StreamTicket>
    {
        var call = try Bellhop.Call("POST", "/v1/stream-tickets")
        try call.json(body)
        return try await answer(call)
    }

    /// What one of the caller's streams subscribed to, and what it was given.
    ///
    /// `events` and `bytes` are what the stream was given since it was opened, as it is on the wire, without the
    /// comments that keep it alive; `waitingBytes` of them wait for a client that reads slowly. All streams together
    /// are in `/metrics`.
    ///
    /// `GET /v1/streams/{id}`
    public func showStream(id: String) async throws -> Bellhop.Answer<Bellhop.StreamState> {
        let call = try Bellhop.Call("GET", "/v1/streams/{id}", ["id": id])
        return try await answer(call)
    }

    /// The topics and tables of an open stream of the caller.
    ///
    /// `GET /v1/streams/{id}/subscriptions`
    public func getSubscriptions(id: String) async throws -> Bellhop.Answer<Bellhop.Subscriptions> {
        let call = try Bellhop.Call("GET", "/v1/streams/{id}/subscriptions", ["id": id])
        return try await answer(call)
    }

    /// Replaces them at once, without reconnecting.
    ///
    /// What is not named stays as it is. With `lastEventId`, the last id of an earlier stream, the rows that changed
    /// since are told first, without ids, and then a block with nothing but an `id:`, which is the new last id
    /// (EventSource keeps it by itself); if they cannot be, the stream says `stream:resync`. Filters without an `eq` or
    /// `in` have to be evaluated at every change of their table: all streams of a user together may have as many of a
    /// table as one stream may, 10 searches and 90 others (429 `subscriptions.too_many`), and all users' are bounded
    /// too (503 `subscriptions.full`). The subscriptions of all streams of a user together have at most 4 MiB (429
    /// `subscriptions.too_many`). What is refused is named by `errors`, each topic (403 `topic.forbidden`) and each
    /// table or filter (422) by its pointer, up to 20: without those, the rest is accepted.
    ///
    /// `PUT /v1/streams/{id}/subscriptions`
    @discardableResult
    public func replaceSubscriptions(id: String, _ body: Bellhop.ReplaceSubscriptionsBody) async throws
        -> Bellhop.Answer<Bellhop.Subscriptions>
    {
        var call = try Bellhop.Call("PUT", "/v1/streams/{id}/subscriptions", ["id": id])
        try call.json(body)
        return try await answer(call)
    }

    /// An open stream lives on with a new token of the same user.
    ///
    /// `PUT /v1/streams/{id}/token`
    @discardableResult
    public func renewStreamToken(id: String, _ body: Bellhop.RenewStreamTokenBody) async throws
        -> Bellhop.Answer<Bellhop.TokenExpiry>
    {
        var call = try Bellhop.Call("PUT", "/v1/streams/{id}/token", ["id": id])
        try call.json(body)
        return try await answer(call)
    }

    /// Revokes a token, a session, or what a user was issued before a moment. For backends.
    ///
    /// Requests are refused and streams closed within a second.
    ///
    /// `POST /v1/revocations`
    ///
    /// - Parameters:
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func revoke(_ body: Bellhop.RevokeBody, idempotencyKey: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.Revocation>
    {
        var call = try Bellhop.Call("POST", "/v1/revocations")
        try call.json(body)
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }
}
