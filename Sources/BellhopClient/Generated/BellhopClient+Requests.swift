// Written by .ci/client-models from openapi.yaml: change that, and run it.

extension BellhopClient {
    /// List requests
    ///
    /// Lists the requests to the caller, or with `direction=outgoing` the requests from the caller; the newest first.
    ///
    /// `GET /v1/requests`
    ///
    /// - Parameters:
    ///   - direction: requests to the caller (`incoming`) or from the caller (`outgoing`).
    ///   - status: only requests with this status.
    ///   - kind: only requests of this kind.
    ///   - limit: maximum number of items on a page.
    ///   - cursor: value of `next` of the previous page. Use it with the same filters.
    public func listRequests(
        direction: Bellhop.ListRequestsDirection? = nil, status: Bellhop.ListRequestsStatus? = nil,
        kind: Bellhop.RequestKind? = nil, limit: Int? = nil, cursor: String? = nil
    ) async throws -> Bellhop.Answer<Bellhop.Page<Bellhop.UserRequest>> {
        var call = try Bellhop.Call("GET", "/v1/requests")
        call.query("direction", direction)
        call.query("status", status)
        call.query("kind", kind)
        call.query("limit", limit)
        call.query("cursor", cursor)
        return try await answer(call)
    }

    /// List requests, page by page; `limit` is the number of items on a page.
    public func requestPages(
        direction: Bellhop.ListRequestsDirection? = nil, status: Bellhop.ListRequestsStatus? = nil,
        kind: Bellhop.RequestKind? = nil, limit: Int? = nil
    ) -> Bellhop.Pages<Bellhop.Page<Bellhop.UserRequest>> {
        Bellhop.Pages { cursor in
            try await listRequests(direction: direction, status: status, kind: kind, limit: limit, cursor: cursor)
        }
    }

    /// Create a request
    ///
    /// Asks another user. Until it is seen or answered, the request counts in the recipient's `requests` badge,
    /// regardless of its notification (category `request`). Repeating the same request while it is open returns 200
    /// with the first one. A service token names the requester in `fromUserId`. A user can have at most 500 open
    /// requests (409 `request.too_many`). A file of tables can restrict the possible recipients (403
    /// `contact.refused`).
    ///
    /// `POST /v1/requests`
    ///
    /// - Parameters:
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func createRequest(_ body: Bellhop.CreateRequestBody, idempotencyKey: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.UserRequestWithBadges>
    {
        var call = try Bellhop.Call("POST", "/v1/requests")
        try call.json(body)
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// Mark requests as seen
    ///
    /// Marks the caller's open incoming requests up to `seenUpTo` as seen, together with their notifications. Marking
    /// such a notification as seen marks its request as seen, too. The requester is not informed. One call marks the
    /// oldest 500; repeat the call while `changed` is 500.
    ///
    /// `PATCH /v1/requests`
    ///
    /// - Parameters:
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func seeRequests(_ body: Bellhop.SeeRequestsBody, idempotencyKey: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.ChangedCount>
    {
        var call = try Bellhop.Call("PATCH", "/v1/requests")
        try call.json(body)
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// Get a request
    ///
    /// Requires the token of the requester or the recipient, or a service token.
    ///
    /// `GET /v1/requests/{id}`
    public func getRequest(id: String) async throws -> Bellhop.Answer<Bellhop.UserRequest> {
        let call = try Bellhop.Call("GET", "/v1/requests/{id}", ["id": id])
        return try await answer(call)
    }

    /// Answer a request
    ///
    /// Accepts or declines a request. Requires the recipient's token or a service token. The notification of the
    /// request becomes read, and the requester is notified. Repeating the same answer changes nothing; a different
    /// answer is 409 `request.answered`.
    ///
    /// `PATCH /v1/requests/{id}`
    ///
    /// - Parameters:
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func answerRequest(id: String, _ body: Bellhop.AnswerRequestBody, idempotencyKey: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.UserRequestWithBadges>
    {
        var call = try Bellhop.Call("PATCH", "/v1/requests/{id}", ["id": id])
        try call.json(body)
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// Withdraw a request
    ///
    /// Deletes an open request and its notification. Requires the requester's token or a service token.
    ///
    /// `DELETE /v1/requests/{id}`
    ///
    /// - Parameters:
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func withdrawRequest(id: String, idempotencyKey: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.BadgesAfter>
    {
        var call = try Bellhop.Call("DELETE", "/v1/requests/{id}", ["id": id])
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }
}
