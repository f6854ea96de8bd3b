import Values

/// A booking was made or changed, in this transaction.
public struct BookingChanged: Fact {
    public let booking: Booking
    /// Nil: it is new.
    public let previous: Booking?

    public init(booking: Booking, previous: Booking?) {
        self.booking = booking
        self.previous = previous
    }
}

/// Data that a shop's queue is computed from was changed, in this transaction.
public struct ShopQueueTouched: Fact {
    public let shopId: ID<Shop>

    public init(shopId: ID<Shop>) {
        self.shopId = shopId
    }
}
