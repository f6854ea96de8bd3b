#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// One completed service.
public struct ServiceSample: Sendable, Hashable {
    /// From the beginning to the end.
    public var minutes: Double
    /// The booking's planned duration, nil for one that had none.
    public var plannedMinutes: Double?

    public init(minutes: Double, plannedMinutes: Double? = nil) {
        self.minutes = minutes
        self.plannedMinutes = plannedMinutes
    }
}

/// Past service times, from which ``WaitEstimator`` learns how long services take and how much they vary.
public struct ServiceTimeModel: Sendable, Hashable {
    /// More would follow a shop's change of habits too slowly and cost time at every estimate.
    public static let samplesMax = 200

    /// The latest completed services; those after the first ``samplesMax`` are ignored.
    public var samples: [ServiceSample]

    public init(samples: [ServiceSample] = []) {
        self.samples = samples
    }

    /// Samples that can be a service: a booking closed in the second it began, or left open overnight, says nothing.
    var usableSamples: [ServiceSample] {
        samples.prefix(Self.samplesMax).filter { $0.minutes >= 1 && $0.minutes <= 480 }
    }
}

/// Service times as a log-normal distribution whose location follows the planned duration.
///
/// `log(minutes) = location + slope × log(planned / 30) + deviation × standard normal`. A conjugate
/// (normal-inverse-gamma) update of a prior of 30 minutes; few samples leave much doubt about the location, which
/// ``locationDeviation`` carries into the percentiles. The slope begins at 1 (twice the plan takes twice the time) and
/// learns how far plans are to be believed.
struct ServiceTimeDistribution: Sendable, Hashable {
    /// Plans are read relative to this.
    static let referenceMinutes = 30.0
    private static let priorDeviation = 0.4
    /// In samples; half the formula's weight, because the doubt is carried along rather than hidden in the average.
    private static let priorWeight = 5.0
    /// About the weight of ten plans that differ by a quarter.
    private static let slopePriorWeight = 0.6

    let location: Double
    let locationDeviation: Double
    let deviation: Double
    let slope: Double
    let sampleSize: Int

    init(_ model: ServiceTimeModel) {
        let samples = model.usableSamples
        let n = Double(samples.count)
        let plans = samples.map { Self.relativePlan($0.plannedMinutes) }
        // What remains of a sample if its plan is believed wholly.
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

    /// The median of a service with this plan.
    func medianMinutes(planned: Double?) -> Double {
        exp(location + slope * Self.relativePlan(planned))
    }

    /// The time still to go, exceeded with `probability`, of a service that has taken `elapsed` minutes already.
    ///
    /// Not memoryless: the distribution is cut at what has passed. Includes the doubt about the location.
    func remainingMinutes(elapsed: Double, planned: Double?, exceededWith probability: Double) -> Double {
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
