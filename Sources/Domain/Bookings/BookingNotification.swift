import Values

/// The notifications that customers receive about their bookings. The requirements specify no texts for them; these
/// are our own.
public enum BookingNotification {
    /// Returns the notification for a change of a booking.
    ///
    /// - Parameters:
    ///   - previous: The booking before the change; nil for a new booking.
    ///   - byCustomer: Whether the customer made the change. The notification is then listed but does not count as
    ///     unseen.
    /// - Returns: Nil for a customer without an account.
    public static func draft(
        _ booking: Booking, previous: Booking?, shopName: String, byCustomer: Bool
    ) -> NotificationDraft? {
        guard let userId = booking.userId else { return nil }
        let (title, message, priority) = text(booking, previous, shopName)
        return NotificationDraft(
            userId: userId, eventId: "booking:\(booking.id.text):\(booking.version)", type: .booking,
            category: .booking, priority: priority, title: title, message: message,
            data: [
                "event": .string("booking_status_change"),
                "bookingId": .string(booking.id.text), "shopId": .string(booking.shopId.text),
                "status": .string(booking.status.rawValue),
            ], isSeen: byCustomer)
    }

    private static func text(
        _ booking: Booking, _ previous: Booking?, _ shop: String
    ) -> (title: String, message: String, priority: Priority) {
        let what = "Your \(booking.service) at \(shop)"
        guard previous?.status != booking.status else {
            return booking.arrivedAt != previous?.arrivedAt
                ? ("You're in Line", "\(shop) has marked you as arrived", .low)
                : ("Booking Changed", "\(what) has been changed", .high)
        }
        return switch booking.status {
        case .pending: ("Booking Requested", "\(what) is waiting for confirmation", .low)
        case .confirmed: ("Booking Confirmed", "\(what) is confirmed", .high)
        case .inProgress: ("It's Your Turn", "\(what) has started", .normal)
        case .completed: ("Booking Completed", "\(what) is complete", .normal)
        case .cancelled: ("Booking Cancelled", "\(what) has been cancelled", .high)
        case .noShow: ("Booking Missed", "\(what) was missed", .normal)
        }
    }
}
