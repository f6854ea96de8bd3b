/// Plays the haptics and the sound that a notification requests (R-VIS-FR-4.1 to R-VIS-FR-4.3).
public protocol NotificationPlayer: Sendable {
    /// - Parameter haptic: nil if only the sound is played.
    func play(haptic: Bellhop.Haptic?, sound: Bool) async
}
