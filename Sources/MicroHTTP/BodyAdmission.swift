/// What becomes of a request with a body, decided when its head is read.
public enum BodyAdmission {
    /// The body is read into memory. The reservation is released when the body is; nil: the bytes are not counted.
    case admitted((any BodyReservation)?)
    /// The body is not read into memory, and the request gets this answer. The connection stays open after a short body,
    /// and is closed after a longer one.
    case refused(Response)
}

/// Reserved memory for the body of one request. The deinitializer releases it, however the request ends.
public protocol BodyReservation: AnyObject, Sendable {
    /// Reserves more for a chunked body, which announces no length.
    ///
    /// - Parameter bytes: of the whole body.
    /// - Returns: false if there is no room; the request is refused then.
    func grow(to bytes: Int) -> Bool
}
