extension Bellhop.Booking {
    /// The value of `ifMatch` for this version. It also works for a booking from a list, which has no `ETag` of its
    /// own.
    public var versionTag: String { "\"\(version)-\(epoch)\"" }
}

extension Bellhop.BookingStatusChange {
    /// The value of `ifMatch` for the version in the event.
    public var versionTag: String { "\"\(version)-\(epoch)\"" }
}
