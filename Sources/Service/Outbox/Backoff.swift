/// The pauses between the attempts to send a message.
enum Backoff {
    private static let pauseMin = 5.0
    /// The longest pause. It also limits `Retry-After`: a receiver that asks for a year is tried again within the day.
    static let pauseMax = 3600.0
    /// Failures for which the receiver may ask for a shorter pause. A receiver that always asks for a second would
    /// otherwise be tried each second for a day.
    private static let askedMax = 6

    /// Returns the pause after a failure: twice the pause before, half of it random, so that messages that failed
    /// together are not tried again together. The receiver may ask for another one.
    ///
    /// - Parameters:
    ///   - failure: 1 for the first failure in a row.
    ///   - asked: The receiver's `Retry-After`.
    ///   - chance: A random number from 0 up to, but not including, 1.
    static func pause(afterFailure failure: Int, asked: Int?, chance: Double) -> Double {
        let longest = min(pauseMax, pauseMin * Double(1 << min(max(failure, 1) - 1, 20)))
        let own = longest / 2 + longest / 2 * chance
        guard let asked else { return own }
        return min(pauseMax, max(Double(asked), failure <= askedMax ? 1 : own))
    }
}
