/// What one change of state does to a user's counts.
///
/// The only place that says which state of which category lights which badge; counts that are kept, counts that are
/// recounted, and the tests all come through here.
public struct BadgeChange: Sendable, Hashable {
    public var messages = 0
    public var requests = 0
    public var bell = 0

    public init(messages: Int = 0, requests: Int = 0, bell: Int = 0) {
        self.messages = messages
        self.requests = requests
        self.bell = bell
    }

    public static let none = BadgeChange()

    public var isNone: Bool { self == .none }

    /// Whether no count becomes smaller.
    public var takesNothing: Bool { messages >= 0 && requests >= 0 && bell >= 0 }

    public static func + (left: Self, right: Self) -> Self {
        BadgeChange(
            messages: left.messages + right.messages, requests: left.requests + right.requests,
            bell: left.bell + right.bell)
    }

    public static func += (left: inout Self, right: Self) { left = left + right }

    public static prefix func - (change: Self) -> Self {
        BadgeChange(messages: -change.messages, requests: -change.requests, bell: -change.bell)
    }

    /// What one notification contributes while it is kept: one to its badge until it is seen, nothing after.
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
