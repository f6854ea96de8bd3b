import Domain
import Foundation
import Values

/// The true parameters of a simulated shop, which the estimator never sees.
package struct ShopParameters: Sendable {
    package var barbers: Int
    /// Arriving work per barber: arrivals × mean service / barbers.
    package var load: Double
    package var meanServiceMinutes: Double
    /// Standard deviation of a service relative to its mean.
    package var variation: Double
    package var blackCardShare: Double

    package init(
        barbers: Int, load: Double, meanServiceMinutes: Double = 25, variation: Double = 0.4,
        blackCardShare: Double = 0.2
    ) {
        self.barbers = barbers
        self.load = load
        self.meanServiceMinutes = meanServiceMinutes
        self.variation = variation
        self.blackCardShare = blackCardShare
    }

    var arrivalsPerMinute: Double { load * Double(barbers) / meanServiceMinutes }
}

/// A simulated shop with Poisson arrivals, log-normal services and two lanes, black card first. At every arrival it
/// asks both the plain formula and the estimator, and compares them with the real wait.
///
/// The estimator sees only what a running service stores: completed durations, arrivals of the past days, and the
/// current state.
package struct SimulatedShop: Sendable {
    /// The number of unmeasured customers at the start. After them the shop no longer depends on its empty start and
    /// has a history.
    package static let warmUpCustomers = 1_000
    /// Two weeks of ten open hours.
    static let arrivalWindowMinutes = 14.0 * 600

    private struct Visitor {
        var id: Int
        var lane: QueueLane
        var arrivedAt: Double
        var outcome: EstimateOutcome?
    }

    private struct Service {
        var startedAt: Double
        var endsAt: Double
    }

    package let parameters: ShopParameters
    private let location: Double
    private let deviation: Double
    private var random: SplitMix64
    private var now = 0.0
    private var barbers: [Service?]
    private var lanes: [QueueLane: [Visitor]] = [.standard: [], .blackCard: []]
    /// The latest completed durations, newest last.
    private var completed: [Double] = []
    private var blackCardArrivals: [Double] = []
    package private(set) var accuracy = EstimateAccuracy()
    /// Only customers that had to wait, because no barber was free when they arrived.
    package private(set) var waitingAccuracy = EstimateAccuracy()
    private var calibration = PercentileCalibration()
    private let isCalibrated: Bool
    private let isExact: Bool

    package init(_ parameters: ShopParameters, seed: UInt64, isCalibrated: Bool = false, isExact: Bool = false) {
        self.isExact = isExact
        self.parameters = parameters
        self.isCalibrated = isCalibrated
        let variance = log(1 + parameters.variation * parameters.variation)
        deviation = variance.squareRoot()
        location = log(parameters.meanServiceMinutes) - variance / 2
        random = SplitMix64(seed: seed)
        barbers = [Service?](repeating: nil, count: parameters.barbers)
    }

    /// Serves `customers` after the warm-up.
    ///
    /// - Parameter stride: asks only at every n-th customer. Queues change slowly, so a longer simulation with fewer
    ///   questions reveals more for the same work.
    package mutating func run(customers: Int, measuringEvery stride: Int = 1) {
        for number in 0..<(Self.warmUpCustomers + customers) {
            let arrival = now + exponential() / parameters.arrivalsPerMinute
            completeServices(until: arrival)
            now = arrival
            admit(number, isMeasured: number >= Self.warmUpCustomers && number % stride == 0)
        }
        completeServices(until: .infinity)
    }

    private mutating func admit(_ number: Int, isMeasured: Bool) {
        let lane: QueueLane = uniform() < parameters.blackCardShare ? .blackCard : .standard
        var visitor = Visitor(id: number, lane: lane, arrivedAt: now, outcome: nil)
        if isMeasured { visitor.outcome = predictions(lane) }
        if lane == .blackCard { blackCardArrivals.append(now) }
        lanes[lane, default: []].append(visitor)
        callNext()
    }

    private mutating func completeServices(until limit: Double) {
        while let next = barbers.indices.min(by: { endOf($0) < endOf($1) }), endOf(next) <= limit,
            let service = barbers[next]
        {
            now = service.endsAt
            completed.append(service.endsAt - service.startedAt)
            if completed.count > 4 * WaitLimits.samplesMax {
                completed.removeFirst(completed.count - WaitLimits.samplesMax)
            }
            barbers[next] = nil
            callNext()
        }
    }

    private func endOf(_ barber: Int) -> Double { barbers[barber]?.endsAt ?? .infinity }

    private mutating func callNext() {
        while let idle = barbers.firstIndex(where: { $0 == nil }) {
            let lane: QueueLane = lanes[.blackCard, default: []].isEmpty ? .standard : .blackCard
            guard let visitor = lanes[lane]?.first else { return }
            lanes[lane]?.removeFirst()
            note(visitor)
            barbers[idle] = Service(startedAt: now, endsAt: now + exp(location + deviation * normal()))
        }
    }

    private mutating func note(_ visitor: Visitor) {
        guard var outcome = visitor.outcome else { return }
        outcome.waited = now - visitor.arrivedAt
        accuracy.add(outcome)
        if outcome.p90 > 0 { waitingAccuracy.add(outcome) }
        if isCalibrated { calibration.add(outcome) }
    }

    /// Returns the estimates at joining: in whole minutes, as displayed, or exact.
    private mutating func predictions(_ lane: QueueLane) -> EstimateOutcome {
        guard let estimate = WaitEstimator.estimate(state(), calibration: calibration)?[lane] else {
            preconditionFailure("a shop with barbers on duty has an estimate")
        }
        let length = lanes.values.reduce(0) { $0 + $1.count }
        let formula = QueueFormula()
        let average = formula.averageWaitMinutes(
            queueLength: length, barbers: parameters.barbers,
            averageServiceMinutes: QueueFormula.averageServiceMinutes(completedMinutes: completed.reversed()))
        let waits = formula.estimatedWaitTimes(averageWaitMinutes: average)
        return EstimateOutcome(
            lane: lane, p50: isExact ? estimate.p50 : Double(estimate.p50Minutes),
            p90: isExact ? estimate.p90 : Double(estimate.p90Minutes),
            formula: Double(lane == .standard ? waits.standard : waits.blackCard), waited: 0)
    }

    /// Returns the state that the service would read from its tables at this moment.
    package mutating func state() -> ShopState {
        let windowStart = max(now - Self.arrivalWindowMinutes, 0)
        if let kept = blackCardArrivals.firstIndex(where: { $0 >= windowStart }) {
            blackCardArrivals.removeFirst(kept)
        }
        let waiting = QueueLane.allCases.flatMap { lane in
            lanes[lane, default: []].map {
                WaitingCustomer(id: "\($0.id)", lane: lane, readyInMinutes: $0.arrivedAt - now)
            }
        }
        return ShopState(
            barbers: barbers.enumerated().map { index, service in
                BarberState(
                    id: "b\(index)",
                    service: service.map { BarberState.Service(elapsedMinutes: now - $0.startedAt) })
            },
            waiting: waiting,
            samples: completed.suffix(WaitLimits.samplesMax).reversed().map { ServiceSample(minutes: $0) },
            arrivals: ArrivalHistory(count: blackCardArrivals.count, openMinutes: now - windowStart))
    }

    /// Returns a number in the open interval from 0 to 1.
    private mutating func uniform() -> Double { (Double(random.next() >> 11) + 0.5) * 0x1p-53 }
    private mutating func exponential() -> Double { -log(uniform()) }
    private mutating func normal() -> Double { (-2 * log(uniform())).squareRoot() * cos(2 * .pi * uniform()) }
}
