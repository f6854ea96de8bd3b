extension Bellhop.Haptic {
    private static let strengths: [String: Float] = ["light": 0.4, "medium": 0.7, "heavy": 1]

    /// The strength of each pulse, from 0 to 1: first that of the notification's kind, and then the impacts. There are as
    /// many as `pulses` says.
    var pulseStrengths: [Float] {
        let all = [0.8] + impacts.map { Bellhop.Haptic.strengths[$0] ?? 0.7 }
        let count = max(pulses, 1)
        return Array(all.prefix(count)) + Array(repeating: 0.8, count: max(0, count - all.count))
    }
}
