// Written by .ci/client-models from openapi.yaml: change that, and run it.

extension BellhopClient {
    /// Submit table changes
    ///
    /// Accepts rows that changed in an app's own database. Requires a service token, the shared webhook secret, or a
    /// signed delivery (Standard Webhooks). If the service token names a tenant, the call can change only rows of that
    /// tenant.
    ///
    /// The body is one change or an array of at most 1,000. The service detects the format of each item: a Supabase
    /// Database Webhook, a Realtime `postgres_changes` frame, a `broadcast_changes` message, or a Debezium event. Each
    /// can come inside CloudEvents 1.0 (structured, batched, or binary with `ce-` headers). A Realtime frame may have
    /// the form of protocol 1.0.0 or the array form of 2.0.0.
    ///
    /// 202 means that the accepted changes are on disk and will be published. An invalid item is rejected alone, in an
    /// array or by itself. A row that reaches no reader, because the columns that determine its audience are missing,
    /// is rejected the same way. So is a new row with memberships while its tenant stores as many rows as it may.
    /// Changed and deleted rows are always accepted.
    ///
    /// Duplicates are detected by the source and id of CloudEvents, by the position of Debezium, or by `webhook-id`;
    /// never by content.
    ///
    /// `POST /v1/changes`
    ///
    /// - Parameters:
    ///   - format: format that every item must have.
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func takeChanges(_ body: JSON, format: Bellhop.TakeChangesFormat? = nil, idempotencyKey: String? = nil)
        async throws -> Bellhop.Answer<Bellhop.ChangeResult>
    {
        var call = try Bellhop.Call("POST", "/v1/changes")
        try call.json(body)
        call.query("format", format)
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// Explain a delivery
    ///
    /// Requires a service token. Explains why an event was or was not delivered to the holder of a token. Pass the id
    /// of the event, and either a token or its claims. The answer names the key, membership, filter or topic that
    /// decides. It considers the current memberships and the subscriptions in the request.
    ///
    /// `POST /v1/explain`
    @discardableResult
    public func explain(_ body: Bellhop.ExplainBody) async throws -> Bellhop.Answer<Bellhop.Explanation> {
        var call = try Bellhop.Call("POST", "/v1/explain")
        try call.json(body)
        return try await answer(call)
    }
}
