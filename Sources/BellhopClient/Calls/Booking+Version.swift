extension Bellhop.Booking {
    /// What `ifMatch` takes for this version, also of a booking that came by a list, without an `ETag` of its own.
    public var versionTag: String { "\"\(version)-\(epoch)\"" }
}

extension Bellhop.BookingStatusChange {
    /// What `ifMatch` takes for the version that the event tells of.
    public var versionTag: String { "\"\(version)-\(epoch)\"" }
}
