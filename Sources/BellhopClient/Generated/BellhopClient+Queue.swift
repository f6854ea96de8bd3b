// Written by .ci/client-models from openapi.yaml: change that, and run it.

extension BellhopClient {
    /// Get the queue status
    ///
    /// Returns the current wait; the data is at most one minute old. `queueLength`, `avgWaitTime` and
    /// `estimatedWaitTimes` come from the plain formula. `estimate` is more accurate: the median and the 90th
    /// percentile of the wait of a customer joining now. Instead of polling, subscribe to `queue:{shopId}` on a stream.
    ///
    /// `GET /v1/shops/{id}/queue`
    public func getQueue(id: String) async throws -> Bellhop.Answer<Bellhop.QueueStatus> {
        let call = try Bellhop.Call("GET", "/v1/shops/{id}/queue", ["id": id])
        return try await answer(call)
    }

    /// List queue entries
    ///
    /// Staff see all entries; customers see only their own.
    ///
    /// `GET /v1/shops/{id}/queue/entries`
    public func listQueueEntries(id: String) async throws -> Bellhop.Answer<Bellhop.Page<Bellhop.QueueEntry>> {
        let call = try Bellhop.Call("GET", "/v1/shops/{id}/queue/entries", ["id": id])
        return try await answer(call)
    }

    /// Add a walk-in customer
    ///
    /// Requires a service token, an administrator token, or a token of the shop's staff. Adds a customer without a
    /// booking to the waiting line.
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

    /// Get queue estimate accuracy
    ///
    /// Requires a service token, an administrator token or a staff token. Compares past estimates with the actual
    /// waits, and does the same for the plain formula.
    ///
    /// `GET /v1/shops/{id}/queue/accuracy`
    public func getQueueAccuracy(id: String) async throws -> Bellhop.Answer<Bellhop.QueueAccuracy> {
        let call = try Bellhop.Call("GET", "/v1/shops/{id}/queue/accuracy", ["id": id])
        return try await answer(call)
    }
}
