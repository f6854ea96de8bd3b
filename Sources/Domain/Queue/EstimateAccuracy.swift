/// An estimate from the moment when a customer joined, with the actual wait. All values are in minutes.
public struct EstimateOutcome: Sendable, Hashable {
    public var lane: QueueLane
    public var p50: Double
    public var p90: Double
    /// The result of the plain formula at the same moment for the same lane.
    public var formula: Double
    /// The time from joining to the beginning of the service.
    public var waited: Double

    public init(lane: QueueLane, p50: Double, p90: Double, formula: Double, waited: Double) {
        self.lane = lane
        self.p50 = p50
        self.p90 = p90
        self.formula = formula
        self.waited = waited
    }
}

/// The errors of predictions, as sums that SQL can aggregate or that grow by one outcome at a time.
public struct ErrorSummary: Sendable, Hashable {
    public var n = 0
    /// Sum of `|predicted − waited|`.
    var absoluteErrorSum = 0.0
    /// Sum of `predicted − waited`.
    var errorSum = 0.0
    /// The number of waits that did not exceed the bound. The bound is the p90 of an estimate, and the formula's own
    /// number for the formula. Customers see whole minutes, so a wait of less than a minute is within every bound.
    var underBoundCount = 0

    /// Minutes; nil without outcomes.
    public var meanAbsoluteError: Double? { n > 0 ? absoluteErrorSum / Double(n) : nil }
    /// Minutes, positive where predictions were too long; nil without outcomes.
    public var bias: Double? { n > 0 ? errorSum / Double(n) : nil }
    /// 0…1; nil without outcomes.
    public var shareUnderBound: Double? { n > 0 ? Double(underBoundCount) / Double(n) : nil }

    public mutating func add(predicted: Double, bound: Double, waited: Double) {
        guard predicted.isFinite, bound.isFinite, waited.isFinite else { return }
        n += 1
        absoluteErrorSum += abs(predicted - waited)
        errorSum += predicted - waited
        if waited <= bound || waited < 1 { underBoundCount += 1 }
    }

    public static func + (left: Self, right: Self) -> Self {
        ErrorSummary(
            n: left.n + right.n, absoluteErrorSum: left.absoluteErrorSum + right.absoluteErrorSum,
            errorSum: left.errorSum + right.errorSum, underBoundCount: left.underBoundCount + right.underBoundCount)
    }
}

/// The accuracy of past estimates by lane, together with that of the plain formula.
public struct EstimateAccuracy: Sendable, Hashable {
    public struct Lane: Sendable, Hashable {
        public var estimate = ErrorSummary()
        public var formula = ErrorSummary()

        /// The relative reduction of the mean absolute error against the formula; nil without outcomes or errors.
        public var improvement: Double? {
            guard let ours = estimate.meanAbsoluteError, let plain = formula.meanAbsoluteError, plain > 0 else {
                return nil
            }
            return 1 - ours / plain
        }
    }

    public var standard = Lane()
    public var blackCard = Lane()

    public init() {}

    public init(_ outcomes: some Sequence<EstimateOutcome>) {
        self.init()
        for outcome in outcomes { add(outcome) }
    }

    public subscript(lane: QueueLane) -> Lane {
        get { lane == .blackCard ? blackCard : standard }
        set { if lane == .blackCard { blackCard = newValue } else { standard = newValue } }
    }

    public static func + (left: Self, right: Self) -> Self {
        var sum = left
        for lane in QueueLane.allCases {
            sum[lane].estimate = left[lane].estimate + right[lane].estimate
            sum[lane].formula = left[lane].formula + right[lane].formula
        }
        return sum
    }

    /// Both lanes combined.
    public var overall: Lane {
        Lane(estimate: standard.estimate + blackCard.estimate, formula: standard.formula + blackCard.formula)
    }

    public mutating func add(_ outcome: EstimateOutcome) {
        self[outcome.lane].estimate.add(predicted: outcome.p50, bound: outcome.p90, waited: outcome.waited)
        self[outcome.lane].formula.add(predicted: outcome.formula, bound: outcome.formula, waited: outcome.waited)
    }
}
