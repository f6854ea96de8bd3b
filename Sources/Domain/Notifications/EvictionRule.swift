import Values

/// The rule for which notification is deleted when a user has more than are stored (VIS NFR-1.4, decision 22).
///
/// Those that were read or archived go first, then those that were seen, then the unseen; unread HIGH and then URGENT go
/// last. Within each of these LOW goes before the rest, and older before newer. The new notification is not asked: what
/// was just published to a user is there when the user looks.
public enum EvictionRule {
    /// Of how many the rule may be told to choose (`notificationsKept`). A user's list and a change of all of them are
    /// one transaction, which grows with their number.
    public static let notificationsRange = 1...2000
    /// Notifications that are deleted beside one new one, where the number has been set lower since. Without the bound the
    /// next notification of everybody would delete hundreds.
    public static let evictedAtOnceMax = 16

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
        switch priority {
        case .urgent: return 4
        case .high: return 3
        default: return state.isSeen ? 1 : 2
        }
    }
}
