import Domain
import Foundation
import QueueSimulation

/// One row of the table.
struct Cell: Sendable {
    var barbers: Int
    var load: Double
    var all = EstimateAccuracy()
    var waiting = EstimateAccuracy()

    init(barbers: Int, load: Double) {
        self.barbers = barbers
        self.load = load
    }

    mutating func add(_ shop: SimulatedShop) {
        all = all + shop.accuracy
        waiting = waiting + shop.waitingAccuracy
    }

    mutating func add(_ cell: Cell) {
        all = all + cell.all
        waiting = waiting + cell.waiting
    }
}

/// One row in the form that `--json` writes; minutes and shares.
struct Row: Encodable {
    struct Lane: Encodable {
        var n: Int
        var meanAbsoluteError: Double?
        var bias: Double?
        var formulaMeanAbsoluteError: Double?
        var formulaBias: Double?
        var improvement: Double?
        var shareUnderP90: Double?
        var shareUnderP90OfWaiting: Double?

        init(_ cell: Cell, _ lane: QueueLane) {
            let all = cell.all[lane]
            n = all.estimate.n
            meanAbsoluteError = all.estimate.meanAbsoluteError
            bias = all.estimate.bias
            formulaMeanAbsoluteError = all.formula.meanAbsoluteError
            formulaBias = all.formula.bias
            improvement = all.improvement
            shareUnderP90 = all.estimate.shareUnderBound
            shareUnderP90OfWaiting = cell.waiting[lane].estimate.shareUnderBound
        }
    }

    var barbers: Int
    var load: Double
    var standard: Lane
    var blackCard: Lane

    init(_ cell: Cell) {
        barbers = cell.barbers
        load = cell.load
        standard = Lane(cell, .standard)
        blackCard = Lane(cell, .blackCard)
    }
}
