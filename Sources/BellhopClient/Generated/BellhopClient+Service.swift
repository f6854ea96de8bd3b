// Written by .ci/client-models from openapi.yaml: change that, and run it.

extension BellhopClient {
    /// Get the caller's identity
    ///
    /// Returns the caller's token as the service reads it.
    ///
    /// `GET /v1/me`
    public func getMe() async throws -> Bellhop.Answer<Bellhop.Me> {
        let call = try Bellhop.Call("GET", "/v1/me")
        return try await answer(call)
    }

    /// Get client configuration
    ///
    /// Returns the limits and intervals that clients use to poll, wait and draw.
    ///
    /// `GET /v1/config`
    public func getConfig() async throws -> Bellhop.Answer<Bellhop.Config> {
        let call = try Bellhop.Call("GET", "/v1/config")
        return try await answer(call)
    }

    /// Get client configuration
    ///
    /// Returns the limits and intervals that clients use to poll, wait and draw.
    ///
    /// `GET /v1/config`
    ///
    /// - Returns: nil where the state is still the one that `ifNoneMatch` names (304).
    ///
    /// - Parameters:
    ///   - ifNoneMatch: the ETag of the client's version. While it is current, the answer is 304.
    public func getConfig(ifNoneMatch: String) async throws -> Bellhop.Answer<Bellhop.Config>? {
        var call = try Bellhop.Call("GET", "/v1/config")
        try call.header("If-None-Match", ifNoneMatch)
        return try await answerUnlessCurrent(call)
    }

    /// Erase a user
    ///
    /// Requires a service token or the role `admin`. Erases everything that the tenant stores about the user, in many
    /// small steps (Docs/privacy.md). The user's streams close at once, and tokens that were issued before are refused.
    /// Clocks may differ, so tokens that were issued up to 31 seconds after the call are refused too, also if the
    /// erasure is `done` earlier: a new user with the id then has to wait, and needs a token that is issued later.
    /// Messages keep their place without text and sender; the user's bookings stay without name and note. Other users'
    /// counts stay exact. While an erasure is pending, a further call begins it again, and refuses the tokens that were
    /// issued meanwhile. In the last seconds of an erasure, requests that name the user fail with 503
    /// `erasure.closing`. A tenant may have 100 erasures that are not done (429 `erasure.too_many`). The answer is not
    /// stored for an `Idempotency-Key`.
    ///
    /// `DELETE /v1/users/{id}`
    @discardableResult
    public func eraseUser(id: String) async throws -> Bellhop.Answer<Bellhop.Erasure> {
        let call = try Bellhop.Call("DELETE", "/v1/users/{id}", ["id": id])
        return try await answer(call)
    }

    /// Get the erasure of a user
    ///
    /// Requires a service token or the role `admin`. A finished erasure is forgotten once no token of the user can be
    /// valid any more.
    ///
    /// `GET /v1/users/{id}/erasure`
    public func getErasure(id: String) async throws -> Bellhop.Answer<Bellhop.Erasure> {
        let call = try Bellhop.Call("GET", "/v1/users/{id}/erasure", ["id": id])
        return try await answer(call)
    }

    /// Get the webhook state
    ///
    /// Requires a service token. Returns the state of the outbox of the token's tenant: notifications that did not
    /// reach their user, withdrawals of such notifications, and changes of bookings. The section `webhooks` describes
    /// the payloads.
    ///
    /// `GET /v1/webhooks`
    public func getWebhooks() async throws -> Bellhop.Answer<Bellhop.WebhookState> {
        let call = try Bellhop.Call("GET", "/v1/webhooks")
        return try await answer(call)
    }

    /// List failed webhooks
    ///
    /// Requires a service token. Lists webhooks that the service has given up on, the newest first. Either the receiver
    /// did not accept them within a day, or the outbox was full. The service stores them for seven days, at most 10,000
    /// of them, and removes each as soon as its notification is seen. The payload is omitted because it belongs to the
    /// user.
    ///
    /// `GET /v1/webhooks/dead`
    ///
    /// - Parameters:
    ///   - limit: maximum number of items on a page.
    ///   - cursor: value of `next` of the previous page. Use it with the same filters.
    public func listDeadWebhooks(limit: Int? = nil, cursor: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.Page<Bellhop.DeadWebhook>>
    {
        var call = try Bellhop.Call("GET", "/v1/webhooks/dead")
        call.query("limit", limit)
        call.query("cursor", cursor)
        return try await answer(call)
    }

    /// List failed webhooks, page by page; `limit` is the number of items on a page.
    public func deadWebhookPages(limit: Int? = nil) -> Bellhop.Pages<Bellhop.Page<Bellhop.DeadWebhook>> {
        Bellhop.Pages { cursor in try await listDeadWebhooks(limit: limit, cursor: cursor) }
    }

    /// Retry a failed webhook
    ///
    /// Requires a service token. The service tries the webhook again for one more day from now.
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
}
