extension BadgeChange {
    /// Returns the contribution of a stored notification to its user's counts: one until it is seen, then zero.
    ///
    /// This is the only rule for which notifications count for the bell. Stored counts, recounts and tests all use it.
    ///
    /// - Parameter isOfRequest: Whether the notification asks for the answer to an open request. The request's own row
    ///   counts it.
    public static func share(of category: NotificationCategory, seen isSeen: Bool, isOfRequest: Bool) -> Self {
        // Unread messages are counted by read positions, and open requests by their rows. Counting their notifications
        // too would light two badges, and the number would be wrong after an eviction.
        guard !isSeen, category != .message, !isOfRequest else { return .none }
        return BadgeChange(bell: 1)
    }

    /// Returns the contribution of a request to the counts of its recipient: one until it is seen or answered.
    public static func share(of request: UserRequest) -> Self {
        request.status == .open && !request.isSeen ? BadgeChange(requests: 1) : .none
    }
}

extension Notification {
    /// The contribution of this notification to its user's counts.
    public var badgeShare: BadgeChange {
        .share(of: draft.category, seen: state.isSeen, isOfRequest: draft.requestId != nil)
    }
}
