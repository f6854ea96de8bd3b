/// The ways in which a handler answers.
public enum Reply {
    case response(Response)
    /// Suspends the connection, then calls the closure. It hands on the work, and must not block.
    case deferred(@Sendable (Responder) -> Void)
    /// Suspends the connection. When `resume` is called, the handler runs again from the beginning, with the same
    /// request.
    case again(@Sendable (_ resume: @escaping @Sendable () -> Void) -> Void)
    case stream(StreamOpening)
}

/// The opening of an event stream: status 200, an endless body, and the context for the stream's program.
public struct StreamOpening {
    public var headers: HeaderFields
    /// Passed to the program; released if the stream never opens.
    public var context: any Sendable

    public init(headers: HeaderFields, context: any Sendable) {
        self.headers = headers
        self.context = context
    }
}

/// The right to answer one deferred request, once, from any thread.
public struct Responder: Sendable {
    let answer: @Sendable (Response) -> Void

    /// Sends the answer. A second answer, and one after the server stopped waiting, is dropped.
    public func complete(_ response: Response) { answer(response) }
}
