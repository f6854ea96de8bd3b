/// The plain formula of the source document (CUT ), with the decisions 2, 3 and 7.
///
/// It looks only at the number of confirmed bookings, the barbers and one average, so it knows neither how far the
/// services are nor who will overtake. ``WaitEstimator`` stands beside it, not in its place: clients rely on these
/// numbers.
public struct QueueFormula: Sendable, Hashable {
    /// How the black-card wait follows from the average.
    public enum BlackCardRule: String, Sendable, Hashable, CaseIterable {
        /// `min(standard, max(0.4 × average, 5))`: the floor of 5 never makes the black card slower (decision 3).
        case capped
        /// `max(0.4 × average, 5)`, as the document has it.
        case literal
    }

    /// What the average is shrunk towards, in minutes.
    static let priorServiceMinutes = 30.0
    /// How many completed bookings the prior counts for.
    static let priorWeight = 10.0
    /// How many of the latest completed bookings count.
    static let completedBookingsMax = 50

    public var blackCardRule: BlackCardRule

    public init(blackCardRule: BlackCardRule = .capped) {
        self.blackCardRule = blackCardRule
    }

    /// The average service time in minutes: the latest completed bookings, shrunk towards 30 minutes with weight 10.
    ///
    /// - Parameter completedMinutes: durations of completed bookings, the latest first; those after the 50th are
    ///   ignored, as are values that are no duration (negative, not finite).
    public static func averageServiceMinutes(completedMinutes: some Sequence<Double>) -> Double {
        var sum = priorServiceMinutes * priorWeight
        var weight = priorWeight
        for minutes in completedMinutes.prefix(completedBookingsMax) where minutes >= 0 && minutes.isFinite {
            sum += minutes
            weight += 1
        }
        return sum / weight
    }

    /// `ceil(length / barbers × average)` in whole minutes; 0 when no barber is on duty (CUT Q-3, decision 2).
    public func averageWaitMinutes(queueLength: Int, barbers: Int, averageServiceMinutes: Double) -> Int {
        guard barbers > 0, queueLength > 0 else { return 0 }
        return wholeMinutes(Double(queueLength) / Double(barbers) * averageServiceMinutes)
    }

    /// `estimatedWaitTimes`: the standard lane waits the average, the black card as ``blackCardRule`` says, rounded up
    /// to whole minutes (CUT Q-4, decision 3).
    ///
    /// With the literal rule an empty queue reads 5 for the black card, as in the document.
    public func estimatedWaitTimes(averageWaitMinutes: Int) -> (standard: Int, blackCard: Int) {
        // In tenths, because 0.4 × 5 is not exact in binary and would be rounded up one minute too far.
        let discounted = (max(averageWaitMinutes * 4, 50) + 9) / 10
        switch blackCardRule {
        case .capped: return (averageWaitMinutes, min(averageWaitMinutes, discounted))
        case .literal: return (averageWaitMinutes, discounted)
        }
    }
}

/// Rounds minutes up to whole ones, as every wait is shown; a hair above a whole minute, which is only the
/// arithmetic's error, is that minute.
func wholeMinutes(_ minutes: Double) -> Int {
    guard minutes.isFinite, minutes > 0 else { return 0 }
    return Int((min(minutes, 1_000_000) - 1e-9).rounded(.up))
}
