#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// The calibration of p90. It learns a factor on the distance from p50 to p90, so that nine of ten waits stay under
/// p90.
///
/// The method is adaptive conformal inference (Gibbs and Candès, 2021) on the logarithm of the factor. A wait above p90
/// widens the factor; a wait below narrows it by a ninth of that. So the factor rests exactly where one of ten waits is
/// above, whatever the true distribution. Outcomes must be added in the order in which they happened.
public struct PercentileCalibration: Sendable, Hashable {
    /// Slow on purpose: a hundred consecutive outcomes as expected by chance move the factor by a few percent.
    private static let step = 0.02
    /// The bounds of the factor. A shop that does not work as modelled shows in its accuracy.
    private static let factorRange = 0.5...3.0

    /// The multiplier of the distance from p50 to p90; 1 without outcomes.
    public private(set) var factor: Double

    public init(factor: Double = 1) {
        self.factor = min(max(factor, Self.factorRange.lowerBound), Self.factorRange.upperBound)
    }

    /// Adds an outcome whose p90 was computed with this calibration.
    ///
    /// Estimates without uncertainty (a barber was free, p90 = p50) are ignored, because nothing can be learned from
    /// them.
    public mutating func add(_ outcome: EstimateOutcome) {
        guard outcome.p90 > outcome.p50, outcome.waited.isFinite else { return }
        let direction = outcome.waited > outcome.p90 ? 0.9 : -0.1
        self = PercentileCalibration(factor: factor * exp(Self.step * direction))
    }
}
