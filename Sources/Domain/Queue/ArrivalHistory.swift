/// Recent arrivals of black-card customers. Later arrivals overtake waiting customers of the standard lane.
///
/// A window of one to four weeks is a good choice. With fewer than some twenty arrivals, the prior dominates the rate.
public struct ArrivalHistory: Sendable, Hashable {
    /// Arrivals in the observed period.
    public var count: Int
    /// Observed minutes **during which the shop was open**. Hours in which no customer can arrive would make the rate
    /// too low.
    public var openMinutes: Double

    public init(count: Int = 0, openMinutes: Double = 0) {
        self.count = count
        self.openMinutes = openMinutes
    }

    /// Returns the arrivals per minute, and the relative uncertainty of the rate (the standard deviation of its
    /// logarithm).
    ///
    /// The gamma prior is worth one arrival, at a tenth of the rate that the barbers can serve. So the estimate expects
    /// some overtaking even without any history.
    func rate(barbers: Int, serviceMinutes: Double) -> (perMinute: Double, logDeviation: Double) {
        let priorPerMinute = 0.1 * Double(max(barbers, 1)) / max(serviceMinutes, 1)
        let priorCount = 1.0
        let minutes = openMinutes.isFinite ? max(openMinutes, 0) : 0
        let posteriorCount = priorCount + (minutes > 0 ? Double(max(count, 0)) : 0)
        let rate = posteriorCount / (priorCount / priorPerMinute + minutes)
        return (rate, (1 / posteriorCount).squareRoot())
    }
}
