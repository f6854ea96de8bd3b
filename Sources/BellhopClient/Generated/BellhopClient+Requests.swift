// Written by .ci/client-models from openapi.yaml: change that, and run it.

extension BellhopClient {
    /// What waits for the caller, or what the caller waits for; newest first.
    ///
    /// `GET /v1/requests`
    ///
    /// - Parameters:
    ///   - cursor: the `next` of the page before, with the same filters.
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

    /// What waits for the caller, or what the caller waits for; newest first. All pages, one after another; `limit` is
    /// how many items one of them has.
    public func requestPages(
        direction: Bellhop.ListRequestsDirection? = nil, status: Bellhop.ListRequestsStatus? = nil,
        kind: Bellhop.RequestKind? = nil, limit: Int? = nil
    ) -> Bellhop.Pages<Bellhop.Page<Bellhop.UserRequest>> {
        Bellhop.Pages { cursor in
            try await listRequests(direction: direction, status: status, kind: kind, limit: limit, cursor: cursor)
        }
    }

    /// Asks somebody.
    ///
    /// The request itself counts in the `requests` badge of whoever is asked, until it is seen or answered, whatever
    /// becomes of the notification of category `request` that tells of it. The same request again, while it is open, is
    /// 200 with the first. Backends say for whom they ask by `fromUserId`. At most 500 open ones of a user (409
    /// `request.too_many`).
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

    /// The caller has seen the open requests up to one.
    ///
    /// The notifications that tell of them count as seen too, as far as they are still there; and a request is seen
    /// when its notification is. Whoever asks is not told. The oldest 500 at once: call again while `changed` is as
    /// many.
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

    /// One request, for its two users and backends.
    ///
    /// `GET /v1/requests/{id}`
    public func getRequest(id: String) async throws -> Bellhop.Answer<Bellhop.UserRequest> {
        let call = try Bellhop.Call("GET", "/v1/requests/{id}", ["id": id])
        return try await answer(call)
    }

    /// Accepts or declines; by whoever was asked, or a backend.
    ///
    /// The notification that asked counts as read, and whoever has asked is notified. Another answer than the one that
    /// was given is 409 `request.answered`; the same one changes nothing.
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

    /// Withdraws an open request, with its notification.
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
