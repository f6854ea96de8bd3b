extension BadgeChange {
    /// The contribution of one stored notification to its user's counts: one to its badge until it is seen, then none.
    ///
    /// The only rule for which notification counts for the bell: stored counts, recounts and tests all use it.
    ///
    /// - Parameter isOfRequest: it asks for the answer to an open request, which is counted by its own row.
    public static func share(of category: NotificationCategory, seen isSeen: Bool, isOfRequest: Bool) -> Self {
        // Unread messages are counted by read positions, and open requests by their rows: counting their notifications
        // too would light two badges, and lose the number where notifications are evicted.
        guard !isSeen, category != .message, !isOfRequest else { return .none }
        return BadgeChange(bell: 1)
    }

    /// The contribution of a request to the counts of whoever is asked (decision 16): one until it is seen or answered.
    public static func share(of request: UserRequest) -> Self {
        request.status == .open && !request.isSeen ? BadgeChange(requests: 1) : .none
    }
}

extension Notification {
    /// The contribution of this notification to its user's counts.
    public var badgeShare: BadgeChange {
        .share(of: category, seen: state.isSeen, isOfRequest: requestId != nil)
    }
}
