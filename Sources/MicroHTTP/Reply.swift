/// How a handler answers.
public enum Reply {
    case response(Response)
    /// The connection waits, then the closure is called: it hands the work on, and must not block.
    case deferred(@Sendable (Responder) -> Void)
    /// The connection waits; when `resume` is called the handler runs again from its beginning, with the same request.
    case again(@Sendable (_ resume: @escaping @Sendable () -> Void) -> Void)
    case stream(StreamOpening)
}

/// The beginning of an event stream: 200, a body without end, and what the stream's program is given.
public struct StreamOpening {
    public var headers: HeaderFields
    /// Given to the program; released if the stream never opens.
    public var context: any Sendable
    /// Nil: the shards take turns.
    public var shard: Int?

    public init(headers: HeaderFields, context: any Sendable, shard: Int? = nil) {
        self.headers = headers
        self.context = context
        self.shard = shard
    }
}

/// The right to answer one deferred request, once, from any thread.
public struct Responder: Sendable {
    let answer: @Sendable (Response) -> Void

    /// A second answer, and one that comes after the server gave up waiting, goes nowhere.
    public func complete(_ response: Response) { answer(response) }
}
