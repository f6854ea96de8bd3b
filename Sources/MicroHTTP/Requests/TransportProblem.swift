/// A problem for which libmicrohttpd or the server refuses a request, before or instead of a handler.
public enum TransportProblem: Sendable {
    case notFound
    case methodNotAllowed(allow: String)
    case bodyTooLarge(max: Int)
    case malformed(detail: String)
    case tooManyStreams
    /// The head or the body arrived too slowly.
    case tooSlow
    /// There is no memory left for the next part of a chunked body.
    case noRoomForBody
    /// A handler has not answered its request in time.
    case unanswered
}
