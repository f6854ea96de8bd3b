import Domain
import TestSupport
import Testing

/// R-CUT-Q-3, R-CUT-Q-4 and.
@Suite(.timed) struct QueueFormulaTests {
    @Test(arguments: [
        (0, 2, 30.0, 0), (1, 1, 30.0, 30), (3, 2, 30.0, 45), (5, 3, 24.0, 40), (4, 3, 25.0, 34), (7, 0, 30.0, 0),
        (2, 3, 0.0, 0), (1, 3, 25.0, 9), (3, 1, 0.1, 1), (200, 1, 30.0, 6_000),
    ])
    func averageWait_isLengthByBarbersTimesAverage_roundedUp(
        length: Int, barbers: Int, average: Double, minutes: Int
    ) {
        #expect(
            QueueFormula().averageWaitMinutes(queueLength: length, barbers: barbers, averageServiceMinutes: average)
                == minutes)
    }

    /// the minimum of 5 never makes the black-card lane slower than the standard lane.
    @Test(arguments: [
        (0, 0, 5), (1, 1, 5), (4, 4, 5), (5, 5, 5), (12, 5, 5), (13, 6, 6), (45, 18, 18), (46, 19, 19), (100, 40, 40),
    ])
    func blackCard_isCapped_orLiteralBySetting(average: Int, capped: Int, literal: Int) {
        #expect(QueueFormula().estimatedWaitTimes(averageWaitMinutes: average) == (average, capped))
        let document = QueueFormula(blackCardRule: .literal)
        #expect(document.estimatedWaitTimes(averageWaitMinutes: average) == (average, literal))
    }

    /// a prior of 30 minutes weighs as much as ten bookings, and only the latest fifty bookings count.
    @Test func averageService_isShrunkTowardsThirtyMinutes() {
        #expect(QueueFormula.averageServiceMinutes(completedMinutes: []) == 30)
        #expect(QueueFormula.averageServiceMinutes(completedMinutes: [Double](repeating: 18, count: 10)) == 24)
        #expect(QueueFormula.averageServiceMinutes(completedMinutes: [Double](repeating: 24, count: 50)) == 25)
        let longHistory = [Double](repeating: 24, count: 50) + [Double](repeating: 1_000, count: 50)
        #expect(QueueFormula.averageServiceMinutes(completedMinutes: longHistory) == 25)
        #expect(QueueFormula.averageServiceMinutes(completedMinutes: [-5, .nan, .infinity]) == 30)
    }

    @Test func longerQueue_neverShortensTheWait() {
        let seed = randomSeed()
        var random = SeededGenerator(seed: seed)
        for _ in 0..<2_000 {
            let barbers = Int.random(in: 1...8, using: &random)
            let length = Int.random(in: 0...100, using: &random)
            let average = Double.random(in: 5...90, using: &random)
            for formula in [QueueFormula(), QueueFormula(blackCardRule: .literal)] {
                func waits(_ length: Int, _ barbers: Int) -> (standard: Int, blackCard: Int) {
                    formula.estimatedWaitTimes(
                        averageWaitMinutes: formula.averageWaitMinutes(
                            queueLength: length, barbers: barbers, averageServiceMinutes: average))
                }
                let now = waits(length, barbers)
                let longer = waits(length + 1, barbers)
                let helped = waits(length, barbers + 1)
                #expect(longer.standard >= now.standard, "seed \(seed)")
                #expect(longer.blackCard >= now.blackCard, "seed \(seed)")
                #expect(helped.standard <= now.standard, "seed \(seed)")
                #expect(helped.blackCard <= now.blackCard, "seed \(seed)")
                #expect(formula.blackCardRule == .literal || now.blackCard <= now.standard, "seed \(seed)")
            }
        }
    }
}
