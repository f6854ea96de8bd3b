/// Estimates waits by playing the shop's next hours a few hundred times.
///
/// Each run draws the rest of the services at hand (given how long they have taken), the services of all who wait and
/// the black-card customers who will come and overtake, then serves the two lanes as the shop does: whoever is free
/// takes the first of the black-card lane, then the first of the standard lane. The median and the 90th percentile of
/// the runs are the estimate. The draws are a fixed ``LatinHypercube``: the same state always has the same answer.
///
/// The answer is for shops whose queue moves as described; staff who call customers in another order, and customers
/// who leave unserved, show in ``EstimateAccuracy`` and are met by ``PercentileCalibration``.
public struct WaitEstimator: Sendable, Hashable {
    /// Decision 5: a booking due within this time counts as waiting, a later one does not.
    public static let dueHorizonMinutes = 15.0
    /// No wait is estimated beyond this. Without it a shop with more black-card customers than its barbers can serve
    /// would never reach the standard lane, and a run would not end.
    public static let waitMinutesMax = 1_440.0
    /// Waiting customers that are looked at; more would make one estimate cost more than a few milliseconds. Those
    /// behind get the last one's estimate of their lane.
    public static let customersMax = 200
    /// Barbers that are looked at, for the same reason.
    public static let barbersMax = 64

    /// What ``QueueEstimate/method`` says.
    public static let method =
        "median and 90th percentile of simulated runs: services at hand by elapsed time, log-normal service times from "
        + "completed bookings, black card first, later black-card arrivals overtaking"

    /// Widens or narrows the 90th percentile by what past estimates taught.
    public var calibration: PercentileCalibration

    public init(calibration: PercentileCalibration = PercentileCalibration()) {
        self.calibration = calibration
    }

    /// The waits of everybody in the shop, and of one more customer in each lane; nil when nobody will serve them
    /// (decision 2).
    public func estimate(_ state: ShopState) -> QueueEstimate? {
        guard state.barbers.contains(where: \.willServe) else { return nil }
        let line = ServingOrder(state.waiting)
        var replay = ShopReplay(state: state, line: line)
        replay.run()
        let customers = line.customers.enumerated().map { index, customer in
            CustomerEstimate(
                id: customer.id, lane: customer.lane, position: index + 1,
                wait: calibrated(replay.waitEstimate(ofCustomer: min(index, line.replayedLast(customer.lane)))))
        }
        guard
            let standard = calibrated(replay.waitEstimate(ofNewcomer: .standard)),
            let blackCard = calibrated(replay.waitEstimate(ofNewcomer: .blackCard))
        else { return nil }
        return QueueEstimate(
            standard: standard, blackCard: blackCard, customers: customers, method: Self.method,
            sampleSize: replay.serviceTimes.sampleSize)
    }

    /// The usual time a service takes, for `estimatedCompletion` (CUT B-3).
    public static func medianServiceMinutes(_ model: ServiceTimeModel, plannedMinutes: Double? = nil) -> Double {
        ServiceTimeDistribution(model).medianMinutes(planned: plannedMinutes)
    }

    private func calibrated(_ wait: WaitEstimate?) -> WaitEstimate? {
        wait.map { WaitEstimate(p50: $0.p50, p90: $0.p50 + ($0.p90 - $0.p50) * calibration.factor) }
    }
}

/// Who waits, in the order of being called: black card before standard, within a lane by arrival or due time, then id.
struct ServingOrder: Sendable {
    let customers: [WaitingCustomer]
    let blackCardCount: Int
    /// Of each lane the first ones, up to half the limit each where the other lane needs it, are replayed.
    let blackCardReplayed: Int
    let standardReplayed: Int

    init(_ waiting: [WaitingCustomer]) {
        let due = waiting.filter { $0.readyInMinutes <= WaitEstimator.dueHorizonMinutes }
        func ordered(_ lane: QueueLane) -> [WaitingCustomer] {
            due.filter { $0.lane == lane }.sorted { ($0.readyInMinutes, $0.id) < ($1.readyInMinutes, $1.id) }
        }
        let blackCard = ordered(.blackCard)
        let standard = ordered(.standard)
        customers = blackCard + standard
        blackCardCount = blackCard.count
        let half = WaitEstimator.customersMax / 2
        blackCardReplayed = min(blackCard.count, max(half, WaitEstimator.customersMax - standard.count))
        standardReplayed = min(standard.count, WaitEstimator.customersMax - blackCardReplayed)
    }

    /// The index of the last customer of a lane who is replayed.
    func replayedLast(_ lane: QueueLane) -> Int {
        switch lane {
        case .blackCard: max(blackCardReplayed - 1, 0)
        case .standard: max(blackCardCount + standardReplayed - 1, 0)
        }
    }
}
