import Values

/// The rule for which notification is deleted when a user has more than are stored (VIS NFR-1.4, decision 22).
///
/// Those that were read or archived go first, then those that were seen, then the unseen; unread URGENT goes last.
/// Within each of these LOW goes before the rest, and older before newer. The rule includes the new notification: a
/// login does not displace an unseen emergency.
public enum EvictionRule {
    /// Without a bound the list of an idle user grows for ever, and every bulk change with it.
    public static let notificationsMax = 50

    /// A notification's rank in the order of eviction: the lowest goes first.
    public struct Rank: Sendable, Hashable, Comparable {
        let standing: Int
        let isAboveLow: Bool
        let id: ID<Notification>

        public static func < (left: Self, right: Self) -> Bool {
            if left.standing != right.standing { return left.standing < right.standing }
            if left.isAboveLow != right.isAboveLow { return right.isAboveLow }
            return left.id < right.id
        }
    }

    public static func rank(of notification: Notification) -> Rank {
        Rank(
            standing: standing(notification.state, notification.priority),
            isAboveLow: notification.priority != .low, id: notification.id)
    }

    private static func standing(_ state: NotificationState, _ priority: Priority) -> Int {
        if state.isRead || state.isArchived { return 0 }
        if priority == .urgent { return 3 }
        return state.isSeen ? 1 : 2
    }
}
