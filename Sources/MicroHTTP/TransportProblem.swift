/// What libmicrohttpd or the server refuses before any handler, or instead of one.
public enum TransportProblem: Sendable {
    case notFound
    case methodNotAllowed(allow: String)
    case bodyTooLarge(max: Int)
    case malformed(detail: String)
    case tooManyStreams
    /// The head or the body came too slowly.
    case tooSlow
    /// A handler has not answered its request in time.
    case unanswered
}
