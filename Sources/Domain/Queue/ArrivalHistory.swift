/// Recent arrivals of black-card customers, who overtake those who wait; later arrivals in the standard lane stand
/// behind.
///
/// A window of one to four weeks is a good choice: with fewer than some twenty arrivals the rate is mostly the prior's.
public struct ArrivalHistory: Sendable, Hashable {
    /// Arrivals in the observed time.
    public var count: Int
    /// Observed minutes **during which the shop was open**; hours when nobody can arrive would make the rate too low.
    public var openMinutes: Double

    public init(count: Int = 0, openMinutes: Double = 0) {
        self.count = count
        self.openMinutes = openMinutes
    }

    /// Arrivals per minute, and the relative uncertainty of that (standard deviation of its logarithm).
    ///
    /// A gamma prior worth one arrival: a tenth of what the barbers can serve. So the estimate expects
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
