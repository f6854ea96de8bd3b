extension Reactor {
    /// The bytes reserved for a chunked body at first. Each time they are used up, the reservation doubles.
    private static let chunkedBytesAtFirst = 16 * 1024
    /// The length of a refused body up to which it is read and discarded. A client sends such a body together with the
    /// head, and can continue to use the connection; a new connection would cost both sides more.
    private static let discardedBytesMax = 8 * 1024

    /// Reserves memory for the body, if the request has one.
    ///
    /// - Returns: The answer to a request whose body is not read, or nil.
    func admitBody(of request: Request, _ framing: BodyFraming, max: Int) -> Response? {
        switch framing {
        case .none, .unusable: return nil
        case .length(let count): request.bodyBytesReserved = count
        case .chunked: request.bodyBytesReserved = min(max, Self.chunkedBytesAtFirst)
        }
        switch request.route?.admit?(request, request.bodyBytesReserved) {
        case nil: return nil
        case .admitted(let reservation)?:
            request.reservation = reservation
            return nil
        case .refused(let response)?:
            guard case .length(let count) = framing, count <= Self.discardedBytesMax else { return response }
            request.earlyAnswer = response
            return nil
        }
    }
}
