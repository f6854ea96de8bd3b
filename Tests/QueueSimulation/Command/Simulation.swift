import Domain
import Foundation
import QueueSimulation

/// Compares the wait estimates with the plain formula on simulated shops, and prints one row for each number of
/// barbers and load.
///
///     queue-simulation [--customers N] [--every N] [--seeds N] [--mean MINUTES] [--variation V]
///         [--calibrated] [--exact] [--json FILE]
@main
struct Simulation {
    static func main() async throws {
        let options: Options
        do {
            options = try Options(CommandLine.arguments.dropFirst())
        } catch {
            FileHandle.standardError.write(Data("queue-simulation: \(error.description)\n".utf8))
            exit(2)
        }
        let started = ContinuousClock.now
        let cells = await simulate(options)
        printTable(cells, options)
        try printTiming(total: ContinuousClock.now - started)
        if let path = options.jsonPath {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
            try encoder.encode(cells.map(Row.init)).write(to: URL(fileURLWithPath: path), options: .atomic)
        }
    }

    /// Returns every cell of the table with every seed; runs as many at a time as there are cores.
    private static func simulate(_ options: Options) async -> [Cell] {
        var cells = (1...5).flatMap { barbers in [0.85, 0.89, 0.93].map { Cell(barbers: barbers, load: $0) } }
        await withTaskGroup(of: (Int, SimulatedShop).self) { group in
            for index in cells.indices {
                for seed in 1...options.seeds {
                    let parameters = ShopParameters(
                        barbers: cells[index].barbers, load: cells[index].load, meanServiceMinutes: options.mean,
                        variation: options.variation, blackCardShare: 0.2)
                    group.addTask {
                        var shop = SimulatedShop(
                            parameters, seed: UInt64(1_000 * index + seed), isCalibrated: options.isCalibrated,
                            isExact: options.isExact)
                        shop.run(customers: options.customers, measuringEvery: options.stride)
                        return (index, shop)
                    }
                }
            }
            for await (index, shop) in group { cells[index].add(shop) }
        }
        return cells
    }

    private static func printTable(_ cells: [Cell], _ options: Options) {
        let minutes = options.isExact ? "exact" : "as shown (whole, rounded up)"
        print(
            "\(options.seeds) seeds × \(options.customers) customers a row, one of \(options.stride) asks; "
                + "service \(options.mean) min, variation \(options.variation), 20 % black card; "
                + "our minutes \(minutes)")
        print("MAE: ours / plain formula (less); under p90: of those who had to wait (of all)")
        print("barbers load | standard MAE           p90            | blackCard MAE          p90            | both")
        var total = Cell(barbers: 0, load: 0)
        for cell in cells {
            print(line("\(cell.barbers)       \(text(cell.load, 2))", cell))
            total.add(cell)
        }
        print(line("all        ", total))
    }

    private static func line(_ title: String, _ cell: Cell) -> String {
        let lanes = QueueLane.allCases.map { lane -> String in
            let all = cell.all[lane]
            return text(all.estimate.meanAbsoluteError, 2) + " /" + text(all.formula.meanAbsoluteError, 2) + " ("
                + text(all.improvement.map { -100 * $0 }, 1) + " %) "
                + text(cell.waiting[lane].estimate.shareUnderBound.map { 100 * $0 }, 1) + " ("
                + text(all.estimate.shareUnderBound.map { 100 * $0 }, 1) + ")"
        }
        let both =
            text(cell.waiting.overall.estimate.shareUnderBound.map { 100 * $0 }, 1)
            + " (" + text(cell.all.overall.estimate.shareUnderBound.map { 100 * $0 }, 1) + ")"
        return "\(title) | \(lanes.joined(separator: " | ")) | \(both)"
    }

    private static func text(_ value: Double?, _ digits: Int) -> String {
        value.map { String(format: "%6.\(digits)f", $0) } ?? "     –"
    }

    /// Prints the cost of one estimate, for five barbers and growing queues.
    private static func printTiming(total: Duration) throws {
        for waiting in [0, 20, 200] {
            let state = busyState(waiting: waiting)
            let runs = 50
            _ = WaitEstimator.estimate(state)
            let clock = ContinuousClock()
            let times = (0..<runs).map { _ in clock.measure { precondition(WaitEstimator.estimate(state) != nil) } }
                .sorted()
            let microseconds = times[runs / 2].components.attoseconds / 1_000_000_000_000
            print("one estimate, 5 barbers, \(waiting) waiting: median \(microseconds) µs")
        }
        print("total \(total.formatted(.units(allowed: [.seconds], fractionalPart: .show(length: 1))))")
    }

    private static func busyState(waiting: Int) -> ShopState {
        ShopState(
            barbers: (0..<5).map {
                BarberState(id: "b\($0)", service: BarberState.Service(elapsedMinutes: Double($0) * 7))
            },
            waiting: (0..<waiting).map {
                WaitingCustomer(
                    id: "c\($0)", lane: $0 % 5 == 0 ? .blackCard : .standard, readyInMinutes: -Double(waiting - $0))
            },
            samples: (0..<200).map { ServiceSample(minutes: 20 + Double($0 % 17)) },
            arrivals: ArrivalHistory(count: 200, openMinutes: 6_000))
    }
}
