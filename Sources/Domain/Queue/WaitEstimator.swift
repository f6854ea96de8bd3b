/// The estimator of waits, which simulates the shop's next hours a few hundred times.
///
/// Each run draws the rest of the services at hand (given how long they have taken), the services of all who wait and
/// the black-card customers who will come and overtake, then serves the two lanes as the shop does: a free
/// barber takes the first of the black-card lane, then the first of the standard lane. The median and the 90th
/// percentile of the runs are the estimate. The draws are a fixed ``LatinHypercube``: the same state always has the
/// same answer.
///
/// The answer is for shops whose queue moves as described; staff who call customers in another order, and customers
/// who leave unserved, show in ``EstimateAccuracy``, and ``PercentileCalibration`` adapts to them.
public enum WaitEstimator {
    /// The text of ``QueueEstimate/method``.
    public static let method =
        "median and 90th percentile of simulated runs: services at hand by elapsed time, log-normal service times from "
        + "completed bookings, black card first, later black-card arrivals overtaking"

    /// The waits of everybody in the shop, and of one more customer in each lane; nil when nobody will serve them
    /// (decision 2).
    ///
    /// - Parameter calibration: widens or narrows the 90th percentile by what past estimates taught.
    public static func estimate(
        _ state: ShopState, calibration: PercentileCalibration = PercentileCalibration()
    ) -> QueueEstimate? {
        guard state.barbers.contains(where: \.willServe) else { return nil }
        let line = ServingOrder(state.waiting)
        if line.customers.isEmpty, state.barbers.contains(where: \.isFree) {
            // Whatever would be drawn, a newcomer of either lane is served at once.
            let none = WaitEstimate(p50: 0, p90: 0)
            return QueueEstimate(
                standard: none, blackCard: none, customers: [], method: method,
                sampleSize: ServiceTimeDistribution(state.samples).sampleSize)
        }
        var replay = ShopReplay(state: state, line: line)
        replay.run()
        func calibrated(_ wait: WaitEstimate?) -> WaitEstimate? {
            wait.map { WaitEstimate(p50: $0.p50, p90: $0.p50 + ($0.p90 - $0.p50) * calibration.factor) }
        }
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
            standard: standard, blackCard: blackCard, customers: customers, method: method,
            sampleSize: replay.serviceTimes.sampleSize)
    }

    /// The usual time a service takes, for `estimatedCompletion` (CUT B-3).
    public static func medianServiceMinutes(_ samples: [ServiceSample], plannedMinutes: Double? = nil) -> Double {
        ServiceTimeDistribution(samples).medianMinutes(planned: plannedMinutes)
    }
}
