/// Which notification goes when a user has more than may be kept (VIS NFR-1.4, decision 22).
///
/// What was read or archived goes first, then what was seen, then the unseen; unread URGENT goes last. Within each of
/// these LOW goes before the rest, and older before newer. The newcomer is judged by the same rule: a login does not push
/// an unseen emergency out.
public enum EvictionRule {
    /// Without a bound the list of an idle user grows for ever, and every bulk change with it.
    public static let keptMax = 50

    /// The place in the order: the lowest goes first.
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
