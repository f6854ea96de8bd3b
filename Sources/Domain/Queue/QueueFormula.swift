/// The plain formula of R-CUT-Q-3 and R-CUT-Q-4, as refine it.
///
/// It uses only the number of confirmed bookings, the number of barbers and one average. It ignores the progress of the
/// current services and future overtakers. ``WaitEstimator`` adds to these numbers and does not replace them, because
/// clients rely on them.
public struct QueueFormula: Sendable, Hashable {
    /// The rule that derives the black-card wait from the average.
    public enum BlackCardRule: String, Sendable, Hashable, CaseIterable {
        /// `min(standard, max(0.4 × average, 5))`: the floor of 5 never makes the black card slower.
        case capped
        /// `max(0.4 × average, 5)`, the literal formula of R-CUT-Q-4.
        case literal
    }

    /// The mean of the prior, in minutes.
    static let priorServiceMinutes = 30.0
    /// The weight of the prior, in completed bookings.
    static let priorWeight = 10.0
    /// The number of most recently completed bookings in the average.
    static let completedBookingsMax = 50

    public var blackCardRule: BlackCardRule

    public init(blackCardRule: BlackCardRule = .capped) {
        self.blackCardRule = blackCardRule
    }

    /// Returns the average service time in minutes: the mean of the latest completed bookings, shrunk towards 30
    /// minutes with weight 10.
    ///
    /// - Parameter completedMinutes: Durations of completed bookings, the latest first. Durations after the 50th are
    ///   ignored, and so are invalid ones (negative, not finite).
    public static func averageServiceMinutes(completedMinutes: some Sequence<Double>) -> Double {
        var sum = priorServiceMinutes * priorWeight
        var weight = priorWeight
        for minutes in completedMinutes.prefix(completedBookingsMax) where minutes >= 0 && minutes.isFinite {
            sum += minutes
            weight += 1
        }
        return sum / weight
    }

    /// Returns `ceil(length / barbers × average)` in whole minutes; 0 if no barber is on duty (R-CUT-Q-3; R-2).
    public func averageWaitMinutes(queueLength: Int, barbers: Int, averageServiceMinutes: Double) -> Int {
        guard barbers > 0, queueLength > 0 else { return 0 }
        return wholeMinutes(Double(queueLength) / Double(barbers) * averageServiceMinutes)
    }

    /// Returns `estimatedWaitTimes`. The standard lane waits the average; the black-card lane waits by
    /// ``blackCardRule``, rounded up to whole minutes (R-CUT-Q-4; R-3).
    ///
    /// With the literal rule, an empty queue gives 5 for the black card, as R-CUT-Q-4 requires.
    public func estimatedWaitTimes(averageWaitMinutes: Int) -> (standard: Int, blackCard: Int) {
        // Computed in tenths, because 0.4 × 5 is not exact in binary and would be rounded up by one minute too much.
        let discounted = (max(averageWaitMinutes * 4, 50) + 9) / 10
        switch blackCardRule {
        case .capped: return (averageWaitMinutes, min(averageWaitMinutes, discounted))
        case .literal: return (averageWaitMinutes, discounted)
        }
    }
}

/// Rounds minutes up to whole ones, as every wait is displayed. A value that exceeds a whole minute only by the
/// rounding error of the arithmetic becomes that minute.
func wholeMinutes(_ minutes: Double) -> Int {
    guard minutes.isFinite, minutes > 0 else { return 0 }
    return Int((min(minutes, 1_000_000) - 1e-9).rounded(.up))
}
