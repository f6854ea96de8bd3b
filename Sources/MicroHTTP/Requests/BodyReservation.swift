/// Reserved memory for the body of one request. The deinitializer releases it, however the request ends.
public protocol BodyReservation: AnyObject, Sendable {
    /// Reserves more for a chunked body, which announces no length.
    ///
    /// - Parameter bytes: The bytes of the whole body.
    /// - Returns: False if the budget has no room. The request is then refused.
    func grow(to bytes: Int) -> Bool
}
