#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// One completed service.
public struct ServiceSample: Sendable, Hashable {
    /// The duration from beginning to end.
    public var minutes: Double
    /// The planned duration of the booking, if any.
    public var plannedMinutes: Double?

    public init(minutes: Double, plannedMinutes: Double? = nil) {
        self.minutes = minutes
        self.plannedMinutes = plannedMinutes
    }
}

/// A log-normal distribution of service times whose location follows the planned duration.
///
/// `log(minutes) = location + slope × log(planned / 30) + deviation × standard normal`. The parameters are a conjugate
/// (normal-inverse-gamma) update of a prior of 30 minutes. With few samples the location stays uncertain;
/// ``locationDeviation`` carries this uncertainty into the percentiles. The slope starts at 1 (twice the plan takes
/// twice the time) and learns how reliable plans are.
struct ServiceTimeDistribution: Sendable, Hashable {
    /// Planned durations are divided by this.
    static let referenceMinutes = 30.0
    private static let priorDeviation = 0.4
    /// The weight of the prior, in samples. It is half of the formula's weight, because the uncertainty is carried
    /// along instead of being hidden in the average.
    private static let priorWeight = 5.0
    /// About the weight of ten plans that differ by a quarter.
    private static let slopePriorWeight = 0.6

    let location: Double
    let locationDeviation: Double
    let deviation: Double
    let slope: Double
    let sampleSize: Int

    /// Learns from samples of a plausible duration. A booking that was closed in the second it began, or was left open
    /// overnight, carries no information.
    init(_ samples: [ServiceSample]) {
        let samples = samples.prefix(WaitLimits.samplesMax).filter { $0.minutes >= 1 && $0.minutes <= 480 }
        let n = Double(samples.count)
        let plans = samples.map { Self.relativePlan($0.plannedMinutes) }
        // The residual of each sample if its plan were fully reliable.
        let residuals = zip(samples, plans).map { log($0.minutes) - $1 }
        let planMean = n > 0 ? plans.reduce(0, +) / n : 0
        let residualMean = n > 0 ? residuals.reduce(0, +) / n : 0
        var covariance = 0.0
        var planSquares = 0.0
        for (plan, residual) in zip(plans, residuals) {
            covariance += (plan - planMean) * (residual - residualMean)
            planSquares += (plan - planMean) * (plan - planMean)
        }
        let correction = min(max(covariance / (planSquares + Self.slopePriorWeight), -1), 0.5)
        var squares = 0.0
        for (plan, residual) in zip(plans, residuals) {
            let difference = residual - residualMean - correction * (plan - planMean)
            squares += difference * difference
        }
        let priorLocation = log(QueueFormula.priorServiceMinutes) - Self.priorDeviation * Self.priorDeviation / 2
        let intercept = residualMean - correction * planMean
        let weight = Self.priorWeight + n
        let surprise = intercept - priorLocation
        let variance =
            (Self.priorWeight * Self.priorDeviation * Self.priorDeviation + squares
                + Self.priorWeight * n / weight * surprise * surprise) / weight
        location = (Self.priorWeight * priorLocation + n * intercept) / weight
        deviation = variance.squareRoot()
        locationDeviation = (variance / weight).squareRoot()
        slope = 1 + correction
        sampleSize = samples.count
    }

    /// The mean service time without a plan.
    var meanMinutes: Double { exp(location + deviation * deviation / 2) }

    /// Returns the median duration of a service with this plan.
    func medianMinutes(planned: Double?) -> Double {
        exp(location + slope * Self.relativePlan(planned))
    }

    /// Returns the remaining time, exceeded with `probability`, of a service that has taken `elapsed` minutes already.
    ///
    /// The distribution is not memoryless: it is truncated at the elapsed time. The result includes the uncertainty of
    /// the location.
    func remainingMinutes(elapsed: Double, planned: Double?, withProbability probability: Double) -> Double {
        let spread = (deviation * deviation + locationDeviation * locationDeviation).squareRoot()
        let center = location + slope * Self.relativePlan(planned)
        let passed = elapsed.isFinite && elapsed > 0.01 ? elapsed : 0.01
        // Beyond 30 deviations the tail is too small for a Double.
        let z = min((log(passed) - center) / spread, 30)
        let tail = probability * NormalDistribution.upperTail(z)
        let total = exp(center + spread * NormalDistribution.exceeded(with: tail))
        return max(total - passed, 0)
    }

    private static func relativePlan(_ planned: Double?) -> Double {
        guard let planned, planned.isFinite, planned > 0 else { return 0 }
        return log(min(max(planned, 5), 480) / referenceMinutes)
    }
}

/// The standard normal distribution, accurate far into the upper tail, which contains services that run very late.
enum NormalDistribution {
    /// Returns the probability of a value above `z`.
    static func upperTail(_ z: Double) -> Double {
        0.5 * erfc(z * 0.707_106_781_186_547_5)
    }

    /// Returns the value exceeded with `probability`: the inverse of ``upperTail(_:)``.
    ///
    /// Uses Acklam's rational approximation (relative error below 1.2e-9), which holds down to the smallest normal
    /// probability.
    static func exceeded(with probability: Double) -> Double {
        let p = min(max(probability, 1e-300), 1 - 1e-16)
        if p < 0.02425 { return -tail((-2 * log(p)).squareRoot()) }
        if p > 0.97575 { return tail((-2 * log(1 - p)).squareRoot()) }
        return -central(p - 0.5)
    }

    private static func tail(_ q: Double) -> Double {
        let numerator =
            ((((-7.784894002430293e-03 * q - 3.223964580411365e-01) * q - 2.400758277161838e+00) * q
                - 2.549732539343734e+00) * q + 4.374664141464968e+00) * q + 2.938163982698783e+00
        let denominator =
            (((7.784695709041462e-03 * q + 3.224671290700398e-01) * q + 2.445134137142996e+00) * q
                + 3.754408661907416e+00) * q + 1
        return numerator / denominator
    }

    private static func central(_ q: Double) -> Double {
        let r = q * q
        let numerator =
            (((((-3.969683028665376e+01 * r + 2.209460984245205e+02) * r - 2.759285104469687e+02) * r
                + 1.383577518672690e+02) * r - 3.066479806614716e+01) * r + 2.506628277459239e+00) * q
        let denominator =
            ((((-5.447609879822406e+01 * r + 1.615858368580409e+02) * r - 1.556989798598866e+02) * r
                + 6.680131188771972e+01) * r - 1.328068155288572e+01) * r + 1
        return numerator / denominator
    }
}
