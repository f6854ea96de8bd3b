// Written by .ci/client-models from openapi.yaml: change that, and run it.

extension BellhopClient {
    /// Create a stream ticket
    ///
    /// Returns a ticket that opens one stream of the caller within 30 seconds. A service key gets none (403): it opens
    /// streams itself.
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

    /// Get a stream
    ///
    /// Returns the subscriptions and the traffic of one of the caller's streams. `events` and `bytes` count everything
    /// written since the stream opened, without keep-alive comments. `waitingBytes` of them wait for a slow client.
    /// `/metrics` has the totals of all streams.
    ///
    /// `GET /v1/streams/{id}`
    public func showStream(id: String) async throws -> Bellhop.Answer<Bellhop.StreamState> {
        let call = try Bellhop.Call("GET", "/v1/streams/{id}", ["id": id])
        return try await answer(call)
    }

    /// Get a stream's subscriptions
    ///
    /// Returns the topics and tables of one of the caller's open streams.
    ///
    /// `GET /v1/streams/{id}/subscriptions`
    public func getSubscriptions(id: String) async throws -> Bellhop.Answer<Bellhop.Subscriptions> {
        let call = try Bellhop.Call("GET", "/v1/streams/{id}/subscriptions", ["id": id])
        return try await answer(call)
    }

    /// Replace a stream's subscriptions
    ///
    /// Replaces the topics or tables of an open stream at once, without a reconnect. An omitted member stays as it is.
    ///
    /// `lastEventId` is the last id of an earlier stream and requires `tables`. The service first sends the rows that
    /// changed since, without ids. A block with nothing but an `id:` follows, which is the new last id; EventSource
    /// keeps it by itself. If the service cannot replay the rows, it sends `stream:resync`.
    ///
    /// A filter without an `eq` or `in` must be evaluated at every change of its table. All streams of one user
    /// together may have as many of these per table as one stream may: 10 searches and 90 others (429
    /// `subscriptions.too_many`). The total of all users is limited, too (503 `subscriptions.full`).
    ///
    /// The subscriptions of all streams of one user together may take at most 4 MiB, or 2 MiB on each shard where the
    /// service has more than two (429 `subscriptions.too_many`).
    ///
    /// A refusal names each refused topic (403 `topic.forbidden`), table or filter (422) by its pointer in `errors`, up
    /// to 20. Without these, the service accepts the rest.
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

    /// Renew a stream's token
    ///
    /// Keeps an open stream alive with a new token of the same user and tenant. If the token has other rights, the
    /// answer has another `identity`, and the stream delivers what the new token may see.
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

    /// Revoke tokens
    ///
    /// Requires a service token. Revokes one token, one session, or all tokens of a user issued before a given time.
    /// Within a second, the service refuses requests with these tokens and closes their streams. The tokens of a
    /// backend are revoked by `tokenId` or `sessionId`: a `userId` of a backend or of the service gets 403
    /// `user.is_service`.
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

    /// Lift a revocation
    ///
    /// Requires a service token, and exactly one of the parameters. Within a second, the service accepts the tokens
    /// again that the revocation refused. The erasure of a user cannot be lifted.
    ///
    /// `DELETE /v1/revocations`
    ///
    /// - Parameters:
    ///   - tokenId: id of the revoked token.
    ///   - sessionId: id of the revoked session.
    ///   - userId: id of the user whose tokens are revoked.
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func liftRevocation(
        tokenId: String? = nil, sessionId: String? = nil, userId: String? = nil, idempotencyKey: String? = nil
    ) async throws -> Bellhop.Answer<Void> {
        var call = try Bellhop.Call("DELETE", "/v1/revocations")
        call.query("tokenId", tokenId)
        call.query("sessionId", sessionId)
        call.query("userId", userId)
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }
}
