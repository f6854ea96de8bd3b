extension BadgeChange {
    /// The contribution of one stored notification to its user's counts: one to its badge until it is seen, then none.
    ///
    /// The only rule for which state of which category counts for which badge: stored counts, recounts and tests all
    /// use it.
    public static func share(of category: NotificationCategory, seen isSeen: Bool) -> Self {
        guard !isSeen else { return .none }
        switch category {
        case .request: return BadgeChange(requests: 1)
        // Unread messages are counted by read positions; counting their notifications too would light two badges.
        case .message: return .none
        default: return BadgeChange(bell: 1)
        }
    }
}

extension Notification {
    /// The contribution of this notification to its user's counts.
    public var badgeShare: BadgeChange { .share(of: category, seen: state.isSeen) }
}
