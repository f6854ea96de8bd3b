/// The types of push messages.
public enum PushType: String, CaseIterable, Sendable {
    case notification, message, badge, withdrawal, test

    /// Whether it reports something unseen, and can be withdrawn.
    public var isAlert: Bool { self == .notification || self == .message }
}
