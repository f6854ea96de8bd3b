/// The decision about a request's body, made when the head is read.
public enum BodyAdmission {
    /// The body is read into memory. The reservation is released with the body; if it is nil, no budget counts the
    /// bytes.
    case admitted((any BodyReservation)?)
    /// The body is not read into memory, and the request gets this answer. The connection stays open after a short body,
    /// and is closed after a longer one.
    case refused(Response)
}

/// Reserved memory for the body of one request. The deinitializer releases it, however the request ends.
public protocol BodyReservation: AnyObject, Sendable {
    /// Reserves more for a chunked body, which announces no length.
    ///
    /// - Parameter bytes: The bytes of the whole body.
    /// - Returns: False if the budget has no room. The request is then refused.
    func grow(to bytes: Int) -> Bool
}
