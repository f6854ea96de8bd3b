/// Plays the haptics and the sound that a notification requests (R-VIS-FR-4.1 to R-VIS-FR-4.3).
public protocol NotificationPlayer: Sendable {
    /// - Parameters:
    ///   - haptic: nil if only the sound is played.
    ///   - text: The notification's text; nil for a change that is no notification.
    func play(haptic: Bellhop.Haptic?, sound: Bool, text: NotificationText?) async
}

/// The text of a notification that is played, for a local notification of an app in the background.
public struct NotificationText: Sendable, Hashable {
    /// The notification's id.
    public let id: String
    public let title: String
    public let text: String
    /// A text for the lock screen, which does not reveal the content.
    public let lockScreen: String

    public init(id: String, title: String, text: String, lockScreen: String) {
        (self.id, self.title, self.text, self.lockScreen) = (id, title, text, lockScreen)
    }
}
