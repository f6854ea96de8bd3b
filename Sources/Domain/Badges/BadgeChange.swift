/// The difference that a change of state makes to a user's badge counts.
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
    public var isIncrease: Bool { messages >= 0 && requests >= 0 && bell >= 0 }

    public static func + (left: Self, right: Self) -> Self {
        BadgeChange(
            messages: left.messages + right.messages, requests: left.requests + right.requests,
            bell: left.bell + right.bell)
    }

    public static func += (left: inout Self, right: Self) { left = left + right }

    public static prefix func - (change: Self) -> Self {
        BadgeChange(messages: -change.messages, requests: -change.requests, bell: -change.bell)
    }
}
