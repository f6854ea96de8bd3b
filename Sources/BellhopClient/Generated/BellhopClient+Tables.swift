// Written by .ci/client-models from openapi.yaml: change that, and run it.

extension BellhopClient {
    /// Rows that changed in an app's own database. For backends and webhooks.
    ///
    /// One change or an array of at most 1,000, each in a form that is told by its shape: a Supabase Database Webhook,
    /// a Realtime `postgres_changes` frame, a `broadcast_changes` message, a Debezium event, or CloudEvents 1.0 around
    /// one of them (structured, batched, or binary with `ce-` headers). 202: what was accepted is on disk and on its
    /// way. A Realtime frame may have either form: that of protocol 1.0.0, or the array of 2.0.0. What is wrong with
    /// one item rejects that item alone, in an array or by itself; so does a row that reaches nobody because it came
    /// without the columns that say whom. Who sends proves itself by a backend's token, by the shared secret, or by
    /// signing the delivery (Standard Webhooks). A backend whose token names a tenant tells rows of that tenant alone.
    /// Duplicates are told by CloudEvents' source and id, by Debezium's position, or by `webhook-id`, and never by
    /// content.
    ///
    /// `POST /v1/changes`
    ///
    /// - Parameters:
    ///   - format: a form that every item must have.
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

    /// Events of an app's own, one or several in their order. For backends.
    ///
    /// An event reaches the streams that hold one of the keys of `to`, or those that named `topic` and hold a key of
    /// its audience, which the file of tables declares. Streams resume behind it as behind any other event. An array is
    /// one transaction: all of its events are published, or none. Names of events do not begin as the service's own do,
    /// and some that mean something else to browsers are refused (`error`, `open`, `message`, `close`, `abort`, and the
    /// members of every JavaScript object, such as `constructor`). A key has a prefix, such as `user:`; `everyone` is
    /// the only one without. 202: they are on disk, and on their way.
    ///
    /// `POST /v1/publish`
    ///
    /// - Parameters:
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func publish(_ body: [Bellhop.OwnEvent], idempotencyKey: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.Published>
    {
        var call = try Bellhop.Call("POST", "/v1/publish")
        try call.json(body)
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// Why an event reached, or did not reach, the holder of a token. For backends.
    ///
    /// Given the event's id and a token, or the claims of one, it tells whether a stream of theirs hears the event, and
    /// which key, membership, filter or topic decides. The present memberships are asked; subscriptions are those of
    /// the request.
    ///
    /// `POST /v1/explain`
    @discardableResult
    public func explain(_ body: Bellhop.ExplainBody) async throws -> Bellhop.Answer<Bellhop.Explanation> {
        var call = try Bellhop.Call("POST", "/v1/explain")
        try call.json(body)
        return try await answer(call)
    }
}
