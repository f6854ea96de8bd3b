// Written by .ci/client-models from openapi.yaml: change that, and run it.

extension BellhopClient {
    /// How long the wait is; never older than a minute.
    ///
    /// `queueLength`, `avgWaitTime` and `estimatedWaitTimes` are the plain formula; `estimate` is the better one: the
    /// median and the 90th percentile for who would join now. Watch `queue:{shopId}` on a stream instead of polling.
    ///
    /// `GET /v1/shops/{id}/queue`
    public func getQueue(id: String) async throws -> Bellhop.Answer<Bellhop.QueueStatus> {
        let call = try Bellhop.Call("GET", "/v1/shops/{id}/queue", ["id": id])
        return try await answer(call)
    }

    /// The line, as far as the caller may see it.
    ///
    /// Staff see everybody, customers their own place.
    ///
    /// `GET /v1/shops/{id}/queue/entries`
    public func listQueueEntries(id: String) async throws -> Bellhop.Answer<Bellhop.Page<Bellhop.QueueEntry>> {
        let call = try Bellhop.Call("GET", "/v1/shops/{id}/queue/entries", ["id": id])
        return try await answer(call)
    }

    /// A customer without a booking joins the line. For staff and backends.
    ///
    /// `POST /v1/shops/{id}/queue/entries`
    ///
    /// - Parameters:
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func addWalkIn(id: String, _ body: Bellhop.AddWalkInBody, idempotencyKey: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.Booking>
    {
        var call = try Bellhop.Call("POST", "/v1/shops/{id}/queue/entries", ["id": id])
        try call.json(body)
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// How good past estimates were, and the plain formula's beside them. For staff and backends.
    ///
    /// `GET /v1/shops/{id}/queue/accuracy`
    public func getQueueAccuracy(id: String) async throws -> Bellhop.Answer<Bellhop.QueueAccuracy> {
        let call = try Bellhop.Call("GET", "/v1/shops/{id}/queue/accuracy", ["id": id])
        return try await answer(call)
    }
}
