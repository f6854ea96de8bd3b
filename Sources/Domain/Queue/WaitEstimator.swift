/// The estimator of waits. It simulates the shop's next hours a few hundred times.
///
/// Each run draws the rest of the current services (given their elapsed times), the services of all waiting customers,
/// and the future black-card customers, which overtake. It then serves the two lanes as the shop does: a free barber
/// takes the first of the black-card lane, then the first of the standard lane. The estimate is the median and the 90th
/// percentile of the runs. The draws are a fixed ``LatinHypercube``, so the same state always gives the same answer.
///
/// The model fits shops whose queue moves as described. If staff call customers in another order, or customers leave
/// unserved, this shows in ``EstimateAccuracy``, and ``PercentileCalibration`` adapts to it.
public enum WaitEstimator {
    /// The text of ``QueueEstimate/method``.
    public static let method =
        "median and 90th percentile of simulated runs: services at hand by elapsed time, log-normal service times from "
        + "completed bookings, black card first, later black-card arrivals overtaking"

    /// Returns the waits of all waiting customers, and of one more customer in each lane; nil if no barber will serve
    /// them.
    ///
    /// - Parameter calibration: Widens or narrows the 90th percentile by the outcomes of past estimates.
    public static func estimate(
        _ state: ShopState, calibration: PercentileCalibration = PercentileCalibration()
    ) -> QueueEstimate? {
        guard state.barbers.contains(where: \.willServe) else { return nil }
        let line = ServingOrder(state.waiting)
        if line.customers.isEmpty, state.barbers.contains(where: \.isFree) {
            // A new customer of either lane is served at once in every run.
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

    /// Returns the median service time, for `estimatedCompletion` (R-CUT-B-3).
    public static func medianServiceMinutes(_ samples: [ServiceSample], plannedMinutes: Double? = nil) -> Double {
        ServiceTimeDistribution(samples).medianMinutes(planned: plannedMinutes)
    }
}
