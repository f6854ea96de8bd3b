// Not compiled on Linux, where this package's tests run; only its syntax is checked there.
#if canImport(CoreHaptics)
    import CoreHaptics
    import Foundation

    /// Plays a notification's haptics. A device without haptic hardware stays silent (R-VIS-FR-4.3).
    public actor HapticPlayer: NotificationPlayer {
        private static let betweenSeconds = 0.12

        private let playSound: @Sendable () async -> Void
        private var engine: CHHapticEngine?

        /// - Parameter playSound: plays the app's notification sound.
        public init(playSound: @escaping @Sendable () async -> Void = {}) {
            self.playSound = playSound
        }

        public func play(haptic: Bellhop.Haptic?, sound: Bool, text _: NotificationText?) async {
            if let haptic { try? play(haptic) }
            if sound { await playSound() }
        }

        private func play(_ haptic: Bellhop.Haptic) throws {
            guard CHHapticEngine.capabilitiesForHardware().supportsHaptics else { return }
            let engine = try engine ?? CHHapticEngine()
            self.engine = engine
            engine.isAutoShutdownEnabled = true
            try engine.start()
            let events = haptic.pulseStrengths.enumerated().map { index, strength in
                CHHapticEvent(
                    eventType: .hapticTransient,
                    parameters: [
                        CHHapticEventParameter(parameterID: .hapticIntensity, value: strength),
                        CHHapticEventParameter(parameterID: .hapticSharpness, value: 0.6),
                    ],
                    relativeTime: Double(index) * HapticPlayer.betweenSeconds)
            }
            try engine.makePlayer(with: CHHapticPattern(events: events, parameters: [])).start(atTime: 0)
        }
    }
#endif
