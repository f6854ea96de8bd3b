/// The notifications that a device shows, and the number on the app's icon.
public protocol NotificationScreen: Sendable {
    /// Shows a notification. It replaces the one of the same tag.
    func show(_ alert: PushAlert) async
    /// Removes the notifications of these tags.
    func remove(_ tags: [String]) async
    func setBadge(_ count: Int) async
    /// Removes all notifications of the app, and the number: the user has signed out.
    func clear() async
}

/// A notification for the screen of a device.
public struct PushAlert: Sendable, Hashable {
    public let title: String
    public let body: String
    /// Names what the notification is about: the id of a notification, or `conversation:` and an id.
    public let tag: String
    /// Whether it is shown without a sound.
    public let isSilent: Bool
    /// The type and the ids, for the app.
    public let data: JSON
}

extension Device {
    #if canImport(UserNotifications) && canImport(CryptoKit) && !os(tvOS)
        public static var screen: (any NotificationScreen)? { UserNotificationScreen() }
    #else
        /// This platform shows no notifications.
        public static var screen: (any NotificationScreen)? { nil }
    #endif
}
