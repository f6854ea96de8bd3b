// Written by .ci/client-models from openapi.yaml: change that, and run it.

extension BellhopClient {
    /// What waits to be sent to the app's own address. For backends.
    ///
    /// Notifications that reached nobody, their withdrawals, and changes of bookings of the token's tenant. What is
    /// sent stands under `webhooks`.
    ///
    /// `GET /v1/webhooks`
    public func getWebhooks() async throws -> Bellhop.Answer<Bellhop.WebhookState> {
        let call = try Bellhop.Call("GET", "/v1/webhooks")
        return try await answer(call)
    }

    /// Webhooks that are tried no more, the newest first. For backends.
    ///
    /// They were not accepted within a day, or more waited than may. They are stored for seven days, 10,000 of them at
    /// most, and are gone as soon as their notification is seen. What they say is left out: it is their user's.
    ///
    /// `GET /v1/webhooks/dead`
    ///
    /// - Parameters:
    ///   - cursor: the `next` of the page before, with the same filters.
    public func listDeadWebhooks(limit: Int? = nil, cursor: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.Page<Bellhop.DeadWebhook>>
    {
        var call = try Bellhop.Call("GET", "/v1/webhooks/dead")
        call.query("limit", limit)
        call.query("cursor", cursor)
        return try await answer(call)
    }

    /// Webhooks that are tried no more, the newest first. For backends. All pages, one after another; `limit` is how
    /// many items one of them has.
    public func deadWebhookPages(limit: Int? = nil) -> Bellhop.Pages<Bellhop.Page<Bellhop.DeadWebhook>> {
        Bellhop.Pages { cursor in try await listDeadWebhooks(limit: limit, cursor: cursor) }
    }

    /// Has a dead webhook be tried for another day, from now on. For backends.
    ///
    /// `POST /v1/webhooks/dead/{id}/retry`
    ///
    /// - Parameters:
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func retryDeadWebhook(id: String, idempotencyKey: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.DeadWebhook>
    {
        var call = try Bellhop.Call("POST", "/v1/webhooks/dead/{id}/retry", ["id": id])
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// The token as the service reads it.
    ///
    /// `GET /v1/me`
    public func getMe() async throws -> Bellhop.Answer<Bellhop.Me> {
        let call = try Bellhop.Call("GET", "/v1/me")
        return try await answer(call)
    }

    /// The constants that clients poll, wait and draw by.
    ///
    /// `GET /v1/config`
    public func getConfig() async throws -> Bellhop.Answer<Bellhop.Config> {
        let call = try Bellhop.Call("GET", "/v1/config")
        return try await answer(call)
    }

    /// The constants that clients poll, wait and draw by.
    ///
    /// `GET /v1/config`
    ///
    /// - Returns: nil where the state is still the one that `ifNoneMatch` names (304).
    public func getConfig(ifNoneMatch: String) async throws -> Bellhop.Answer<Bellhop.Config>? {
        var call = try Bellhop.Call("GET", "/v1/config")
        try call.header("If-None-Match", ifNoneMatch)
        return try await answerUnlessCurrent(call)
    }
}
