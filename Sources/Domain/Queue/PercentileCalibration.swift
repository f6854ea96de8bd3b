#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// The calibration of p90: it learns from outcomes the factor on the distance from p50 to p90 with which nine waits of
/// ten stay under p90.
///
/// Adaptive conformal inference (Gibbs and Candès, 2021) on the logarithm of a factor: a wait above p90 widens it, one
/// below narrows it a ninth as much, so it rests exactly where one of ten is above, whatever the true distribution.
/// Outcomes must be folded in the order they happened.
public struct PercentileCalibration: Sendable, Hashable {
    /// Slow on purpose: a hundred outcomes in a row of what is expected by chance move the factor by a few percent.
    private static let step = 0.02
    /// A shop that does not work as modelled shows in its accuracy; its percentiles stay within these bounds.
    private static let factorRange = 0.5...3.0

    /// What the distance from p50 to p90 is multiplied with; 1 without outcomes.
    public private(set) var factor: Double

    public init(factor: Double = 1) {
        self.factor = min(max(factor, Self.factorRange.lowerBound), Self.factorRange.upperBound)
    }

    /// Folds one outcome whose p90 was given with this calibration.
    ///
    /// Estimates without any doubt (a barber was free, p90 = p50) teach nothing and are ignored.
    public mutating func add(_ outcome: EstimateOutcome) {
        guard outcome.p90 > outcome.p50, outcome.waited.isFinite else { return }
        let direction = outcome.waited > outcome.p90 ? 0.9 : -0.1
        self = PercentileCalibration(factor: factor * exp(Self.step * direction))
    }
}
