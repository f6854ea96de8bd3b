// Written by .ci/client-models from openapi.yaml: change that, and run it.

extension BellhopClient {
    /// Publish events
    ///
    /// Requires a service token. Publishes one event of the app, or several in order. An event with `to` reaches the
    /// streams that hold one of these keys. An event with `topic` reaches the streams that subscribe to the topic and
    /// hold a key of its audience, which the file of tables declares. Streams can resume from these events like from
    /// any other.
    ///
    /// An array is one transaction: either all of its events are published, or no event is. The first part of an event
    /// name must not be one that the service uses for its own events. Names with a meaning of their own in browsers are
    /// refused, too: `error`, `open`, `message`, `close`, `abort`, and the members of every JavaScript object, such as
    /// `constructor`. A key has a prefix, such as `user:`; only `everyone` has none. 202 means that the events are on
    /// disk and will be delivered.
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
}
