#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// The simulation behind one estimate: a few hundred runs of the shop's next hours.
///
/// One pass over the waiting customers also gives the waits of new customers in both lanes. A new black-card customer
/// starts when a barber is first free and no black-card customer waits for that barber. A new standard customer starts
/// when no other customer is left to take, overtakers included. Neither delays earlier customers, nor customers that
/// are due within minutes. A chair is free for a new customer only if enough others will be free for the due customers
///
struct ShopReplay {
    private struct Customer {
        /// The index into the serving order.
        var index: Int
        var ready: Double
        /// The index into the barbers; -1 for any.
        var barber: Int
        /// The median service time in minutes.
        var median: Double
        var dimension: Int
    }

    let serviceTimes: ServiceTimeDistribution
    private let cube: LatinHypercube
    /// The time at which each barber is free, by stratum: `barber × points + stratum`.
    private let freeTimes: [Double]
    private let barberCount: Int
    private let blackCard: [Customer]
    private let standard: [Customer]
    /// The expected customers, by time of arrival, with their indices in `called`.
    private let expected: [(customer: Customer, index: Int, isBlackCard: Bool)]
    private let blackCardPerMinute: Double
    private let rateLogDeviation: Double
    /// `exp(deviation × normal)` for each stratum: the duration of a service relative to its median.
    private let factors: [Double]
    /// The wait of each customer in the serving order: `index × points + run`; NaN while not called.
    private var waits: [Double]
    private var newcomerStandard: [Double]
    private var newcomerBlackCard: [Double]
    // Working memory of one run, reused so that a run allocates nothing.
    private var free: [Double]
    private var called: [Bool]
    private var overtakers: [Double] = []

    init(state: ShopState, line: ServingOrder) {
        let barbers = Array(state.barbers.filter(\.willServe).prefix(WaitLimits.barbersMax))
        let distribution = ServiceTimeDistribution(state.samples)
        let size = line.blackCardReplayed + line.standardReplayed + barbers.count
        let cube: LatinHypercube = size <= 30 ? .of512 : size <= 80 ? .of256 : .of128
        serviceTimes = distribution
        self.cube = cube
        barberCount = barbers.count
        freeTimes = barbers.flatMap { Self.freeTimes(of: $0, distribution, points: cube.points) }
        (blackCardPerMinute, rateLogDeviation) = state.arrivals.rate(
            barbers: barbers.count, serviceMinutes: distribution.meanMinutes)
        factors = cube.normals.map { exp(distribution.deviation * $0) }
        var dimension = 2 + barbers.count
        func customer(at index: Int) -> Customer? {
            let waiting = line.customers[index]
            let barber = waiting.barberId.map { id in barbers.firstIndex { $0.id == id } } ?? -1
            guard let barber else { return nil }
            defer { dimension += 1 }
            return Customer(
                index: index, ready: waiting.readyInMinutes.isFinite ? max(waiting.readyInMinutes, 0) : 0,
                barber: barber, median: distribution.medianMinutes(planned: waiting.plannedMinutes),
                dimension: dimension)
        }
        blackCard = (0..<line.blackCardReplayed).compactMap(customer)
        standard = (line.blackCardCount..<(line.blackCardCount + line.standardReplayed)).compactMap(customer)
        let blackCards = blackCard.count
        expected = (blackCard + standard).enumerated()
            .map { (customer: $1, index: $0, isBlackCard: $0 < blackCards) }.filter { $0.customer.ready > 0 }
            .sorted { ($0.customer.ready, $0.index) < ($1.customer.ready, $1.index) }
        waits = [Double](repeating: .nan, count: line.customers.count * cube.points)
        newcomerStandard = [Double](repeating: WaitLimits.waitMinutesMax, count: cube.points)
        newcomerBlackCard = newcomerStandard
        free = [Double](repeating: 0, count: barbers.count)
        called = [Bool](repeating: false, count: blackCard.count + standard.count)
    }

    private static func freeTimes(
        of barber: BarberState, _ distribution: ServiceTimeDistribution, points: Int
    ) -> [Double] {
        var breakEnd = 0.0
        if case .onBreak(let endsInMinutes) = barber.duty { breakEnd = max(endsInMinutes ?? 0, 0) }
        guard let service = barber.service else { return [Double](repeating: breakEnd, count: points) }
        return (0..<points).map { stratum in
            let remaining = distribution.remainingMinutes(
                elapsed: service.elapsedMinutes, planned: service.plannedMinutes,
                withProbability: 1 - (Double(stratum) + 0.5) / Double(points))
            return max(remaining, breakEnd)
        }
    }

    mutating func run() {
        for point in 0..<cube.points { run(point) }
    }

    func waitEstimate(ofCustomer index: Int) -> WaitEstimate? {
        let first = index * cube.points
        guard first < waits.count, !waits[first].isNaN else { return nil }
        return Self.percentiles(Array(waits[first..<(first + cube.points)]))
    }

    func waitEstimate(ofNewcomer lane: QueueLane) -> WaitEstimate? {
        switch lane {
        case .standard: Self.percentiles(newcomerStandard)
        case .blackCard: Self.percentiles(newcomerBlackCard)
        }
    }

    private func stratum(_ point: Int, _ dimension: Int) -> Int {
        let turn = dimension / LatinHypercube.dimensions
        // Rotates by an odd number of points per turn, so that a repeated dimension does not repeat the same draws.
        let row = turn == 0 ? point : (point &+ turn &* 37) & (cube.points - 1)
        return Int(cube.strata[row * LatinHypercube.dimensions + dimension & (LatinHypercube.dimensions - 1)])
    }

    /// Returns the first customer of a lane, from `start` on, that this barber can take now.
    private func first(of lane: [Customer], from start: Int, offset: Int, barber: Int, time: Double) -> Int? {
        var position = start
        while position < lane.count {
            let customer = lane[position]
            if !called[offset + position], customer.ready <= time, customer.barber < 0 || customer.barber == barber {
                return position
            }
            position += 1
        }
        return nil
    }

    /// Returns the next arrival, after `time`, of a customer for this barber.
    private func nextReady(after time: Double, barber: Int) -> Double {
        var next = Double.infinity
        func look(_ lane: [Customer], _ offset: Int) {
            for (position, customer) in lane.enumerated()
            where !called[offset + position] && (customer.barber < 0 || customer.barber == barber) {
                if customer.ready > time, customer.ready < next { next = customer.ready }
            }
        }
        look(blackCard, 0)
        look(standard, blackCard.count)
        return next
    }

    /// Whether a new customer in this barber's chair would delay a customer that is due soon. Each due customer needs
    /// another barber that is free by then.
    private func isReserved(_ barber: Int, at time: Double, forBlackCardOnly: Bool) -> Bool {
        var needed = 0
        for (customer, index, isBlackCard) in expected where customer.ready > time && !called[index] {
            if forBlackCardOnly, !isBlackCard { continue }
            if customer.barber == barber { return true }
            needed += 1
            guard customer.barber < 0 else { continue }
            let others = free.indices.count { $0 != barber && free[$0] <= customer.ready }
            if others < needed { return true }
        }
        return false
    }

    /// Records the start of a customer's service and returns its duration.
    private mutating func call(_ customer: Customer, at time: Double, point: Int, speed: Double) -> Double {
        waits[customer.index * cube.points + point] = min(time, WaitLimits.waitMinutesMax)
        return customer.median * speed * factors[stratum(point, customer.dimension)]
    }

    private mutating func run(_ point: Int) {
        let speed = exp(serviceTimes.locationDeviation * cube.normals[stratum(point, 0)])
        let rate =
            blackCardPerMinute
            * exp(rateLogDeviation * cube.normals[stratum(point, 1)] - rateLogDeviation * rateLogDeviation / 2)
        let anyMedian = serviceTimes.medianMinutes(planned: nil) * speed
        for barber in 0..<barberCount { free[barber] = freeTimes[barber * cube.points + stratum(point, 2 + barber)] }
        for position in called.indices { called[position] = false }
        var uncalledBlackCard = 0
        var uncalledStandard = 0
        var isStandardOpen = true
        var isBlackCardOpen = true
        var dimension = 2 + barberCount + called.count
        overtakers.removeAll(keepingCapacity: true)
        var overtaking = 0
        var arrival = gap(point, dimension, rate)
        dimension += 1
        var remaining = called.count
        while remaining > 0 || isStandardOpen || isBlackCardOpen {
            var barber = 0
            for other in 1..<max(barberCount, 1) where free[other] < free[barber] { barber = other }
            let time = free[barber]
            if time >= WaitLimits.waitMinutesMax { break }
            while arrival <= time {
                overtakers.append(arrival)
                arrival += gap(point, dimension, rate)
                dimension += 1
            }
            while uncalledBlackCard < blackCard.count, called[uncalledBlackCard] { uncalledBlackCard += 1 }
            while uncalledStandard < standard.count, called[blackCard.count + uncalledStandard] {
                uncalledStandard += 1
            }
            if let next = first(of: blackCard, from: uncalledBlackCard, offset: 0, barber: barber, time: time) {
                called[next] = true
                remaining -= 1
                free[barber] = time + call(blackCard[next], at: time, point: point, speed: speed)
                continue
            }
            if isBlackCardOpen, !isReserved(barber, at: time, forBlackCardOnly: true) {
                isBlackCardOpen = false
                newcomerBlackCard[point] = time
            }
            if overtaking < overtakers.count {
                overtaking += 1
                free[barber] = time + anyMedian * factors[stratum(point, dimension)]
                dimension += 1
                continue
            }
            if let next = first(
                of: standard, from: uncalledStandard, offset: blackCard.count, barber: barber, time: time)
            {
                called[blackCard.count + next] = true
                remaining -= 1
                free[barber] = time + call(standard[next], at: time, point: point, speed: speed)
                continue
            }
            if isStandardOpen, !isReserved(barber, at: time, forBlackCardOnly: false) {
                isStandardOpen = false
                newcomerStandard[point] = time
            }
            if remaining == 0 { break }
            free[barber] = min(arrival, nextReady(after: time, barber: barber))
        }
        if remaining > 0 { capUnserved(point) }
    }

    /// Sets the wait of the customers that the run did not reach to the maximum time of a run.
    private mutating func capUnserved(_ point: Int) {
        for (position, customer) in (blackCard + standard).enumerated() where !called[position] {
            waits[customer.index * cube.points + point] = WaitLimits.waitMinutesMax
        }
    }

    /// Returns the minutes between two black-card arrivals.
    private func gap(_ point: Int, _ dimension: Int, _ rate: Double) -> Double {
        let uniform = (Double(stratum(point, dimension)) + 0.5) / Double(cube.points)
        return -log(uniform) / rate
    }

    /// Returns the median and the 90th percentile by selection, which costs a fifth of sorting.
    static func percentiles(_ values: [Double]) -> WaitEstimate {
        var values = values
        let count = values.count
        let p90 = select(&values, rank: (count * 9) / 10)
        let p50 = select(&values, rank: count / 2)
        return WaitEstimate(p50: min(p50, p90), p90: p90)
    }

    /// Returns the value of a rank in ascending order (Hoare's selection).
    private static func select(_ values: inout [Double], rank: Int) -> Double {
        var low = 0
        var high = values.count - 1
        while low < high {
            let pivot = values[(low + high) / 2]
            var left = low
            var right = high
            while left <= right {
                while values[left] < pivot { left += 1 }
                while values[right] > pivot { right -= 1 }
                if left <= right {
                    values.swapAt(left, right)
                    left += 1
                    right -= 1
                }
            }
            if rank <= right { high = right } else if rank >= left { low = left } else { break }
        }
        return values[rank]
    }
}
