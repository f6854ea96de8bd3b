import Domain
import QueueSimulation
import TestSupport
import Testing

@Suite(.timed) struct QueueAccuracyTests {
    private let outcomes = [
        EstimateOutcome(lane: .standard, p50: 20, p90: 40, formula: 30, waited: 25),
        EstimateOutcome(lane: .standard, p50: 30, p90: 45, formula: 10, waited: 50),
        EstimateOutcome(lane: .blackCard, p50: 6, p90: 10, formula: 12, waited: 10),
    ]

    @Test func accuracy_foldsOutcomesByLane() {
        let accuracy = EstimateAccuracy(outcomes)
        #expect(accuracy.standard.estimate.n == 2)
        #expect(accuracy.standard.estimate.meanAbsoluteError == 12.5)
        #expect(accuracy.standard.estimate.bias == -12.5)
        #expect(accuracy.standard.estimate.shareUnderBound == 0.5)
        #expect(accuracy.standard.formula.meanAbsoluteError == 22.5)
        #expect(accuracy.standard.formula.bias == -17.5)
        #expect(accuracy.standard.formula.shareUnderBound == 0.5)
        #expect(accuracy.blackCard.estimate.shareUnderBound == 1)
        #expect(accuracy.blackCard.improvement == -1)
        #expect(accuracy.overall.estimate.n == 3)
    }

    /// A wait of some seconds keeps an estimate of 0 minutes.
    @Test func waitOfSeconds_isWithinABoundOfZeroMinutes() {
        let accuracy = EstimateAccuracy([
            EstimateOutcome(lane: .standard, p50: 0, p90: 0, formula: 0, waited: 0.03),
            EstimateOutcome(lane: .standard, p50: 0, p90: 0, formula: 0, waited: 1.5),
        ])
        #expect(accuracy.standard.estimate.shareUnderBound == 0.5)
        #expect(accuracy.standard.formula.shareUnderBound == 0.5)
    }

    @Test func accuracyWithoutOutcomes_isNil_notZero() {
        let accuracy = EstimateAccuracy()
        #expect(accuracy.standard.estimate.meanAbsoluteError == nil)
        #expect(accuracy.standard.formula.bias == nil)
        #expect(accuracy.blackCard.estimate.shareUnderBound == nil)
        #expect(accuracy.overall.improvement == nil)
    }

    /// Sums computed by SQL equal outcomes folded one by one.
    @Test func accuracy_isTheSumOfItsParts() {
        let parts = EstimateAccuracy(outcomes[..<1]) + EstimateAccuracy(outcomes[1...])
        #expect(parts == EstimateAccuracy(outcomes))
    }

    /// The calibration settles where nine of ten waits are below p90, even if the given p90 is far too low.
    @Test func calibration_widensTooNarrowPercentiles() {
        var random = SeededGenerator(seed: 7)
        var calibration = PercentileCalibration()
        var under = 0
        for number in 0..<6_000 {
            let waited = 20 + Double.random(in: -10...10, using: &random)
            let outcome = EstimateOutcome(
                lane: .standard, p50: 20, p90: 20 + 4 * calibration.factor, formula: 0, waited: waited)
            if number >= 2_000, waited <= outcome.p90 { under += 1 }
            calibration.add(outcome)
        }
        #expect((0.88...0.92).contains(Double(under) / 4_000))
        #expect((1.7...2.3).contains(calibration.factor))
        #expect(PercentileCalibration(factor: 100).factor == 3)
    }

    @Test func calibration_learnsNothingFromCertainEstimates() {
        var calibration = PercentileCalibration()
        calibration.add(EstimateOutcome(lane: .standard, p50: 0, p90: 0, formula: 0, waited: 0))
        #expect(calibration == PercentileCalibration())
    }

    @Test func calibratedEstimator_movesOnlyTheUpperPercentile() throws {
        let state = ShopState(
            barbers: [BarberState(id: "a", service: BarberState.Service(elapsedMinutes: 5))], waiting: [])
        let plain = try #require(WaitEstimator.estimate(state)).standard
        let wide = try #require(WaitEstimator.estimate(state, calibration: PercentileCalibration(factor: 1.5))).standard
        #expect(wide.p50 == plain.p50)
        #expect(abs((wide.p90 - wide.p50) - 1.5 * (plain.p90 - plain.p50)) < 1e-9)
    }

    /// The goals on a simulated shop with a fixed seed. The error is at least 20 % below the plain formula's in the
    /// standard lane, and at least 60 % in the black-card lane. Nine of ten waits are below p90. The benchmark prints
    /// the full table.
    @Test(arguments: [(1, 0.9), (3, 0.93)])
    func estimates_beatThePlainFormula_onASimulatedShop(barbers: Int, load: Double) throws {
        var shop = SimulatedShop(ShopParameters(barbers: barbers, load: load), seed: 11)
        shop.run(customers: 20_000, measuringEvery: 20)
        let accuracy = shop.accuracy
        #expect(accuracy.overall.estimate.n == 1_000)
        #expect(try #require(accuracy.standard.improvement) > 0.2)
        #expect(try #require(accuracy.blackCard.improvement) > 0.6)
        for lane in QueueLane.allCases {
            let share = try #require(shop.waitingAccuracy[lane].estimate.shareUnderBound)
            #expect((0.85...0.95).contains(share))
        }
    }
}
