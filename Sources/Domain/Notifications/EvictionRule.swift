import Values

/// The rule that chooses the notification to delete when a user has too many (R-VIS-NFR-1.4; R-22).
///
/// Read and archived notifications are evicted first, then seen ones, then unseen ones; unread HIGH and finally URGENT
/// notifications are evicted last. Within each group, LOW comes before the rest, and older before newer. The new
/// notification is never a candidate: a notification that was just published is there when the user looks.
public enum EvictionRule {
    /// The allowed values of `notificationsKept`. Listing and updating all notifications of a user is one transaction,
    /// whose cost grows with their number.
    public static let notificationsRange = 1...2000
    /// Notifications that are deleted with one new notification after `notificationsKept` was lowered. Without this
    /// limit, the next notification of each user would delete hundreds.
    public static let evictedAtOnceMax = 16

    /// The rank of a notification in the order of eviction; the lowest is evicted first.
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
        switch priority {
        case .urgent: return 4
        case .high: return 3
        default: return state.isSeen ? 1 : 2
        }
    }
}
