import TestSupport
import Testing

@testable import Domain

@Suite(.timed) struct QueueWaitEstimatorTests {
    private static let learned = (0..<100).map { ServiceSample(minutes: 20 + Double($0 % 21)) }
    private static let noOvertaking = ArrivalHistory(count: 0, openMinutes: 1_000_000)

    private func barber(
        _ id: String, busyFor elapsed: Double? = nil, _ duty: BarberState.Duty = .working
    ) -> BarberState {
        BarberState(id: id, duty: duty, service: elapsed.map { BarberState.Service(elapsedMinutes: $0) })
    }

    private func line(_ lane: QueueLane, _ count: Int, barberId: String? = nil) -> [WaitingCustomer] {
        (0..<count).map {
            WaitingCustomer(
                id: "\(lane.rawValue)-\($0)", lane: lane, readyInMinutes: Double($0 - count), barberId: barberId)
        }
    }

    private func state(
        _ barbers: [BarberState], _ waiting: [WaitingCustomer] = [], arrivals: ArrivalHistory = noOvertaking
    ) -> ShopState {
        ShopState(barbers: barbers, waiting: waiting, samples: Self.learned, arrivals: arrivals)
    }

    /// without a working barber there is no estimate.
    @Test func shopWithoutActiveBarbers_hasNoEstimate() {
        #expect(WaitEstimator.estimate(state([])) == nil)
        #expect(WaitEstimator.estimate(state([], line(.standard, 3))) == nil)
        let onBreak = barber("a", busyFor: 10, .onBreak(endsInMinutes: nil))
        #expect(WaitEstimator.estimate(state([onBreak], line(.blackCard, 1))) == nil)
    }

    /// due customers are served before a newcomer, unless another chair is free for them.
    @Test func dueCustomers_countForNewcomers() throws {
        func due(_ lane: QueueLane, _ minutes: Double..., barberId: String? = nil) -> [WaitingCustomer] {
            minutes.map { WaitingCustomer(id: "\(lane) \($0)", lane: lane, readyInMinutes: $0, barberId: barberId) }
        }
        func newcomers(_ barbers: [BarberState], _ waiting: [WaitingCustomer]) throws -> QueueEstimate {
            try #require(WaitEstimator.estimate(state(barbers, waiting)))
        }
        let (a, b, c) = (barber("a"), barber("b"), barber("c"))
        let alone = try newcomers([a], due(.standard, 5, 5))
        #expect((55...75).contains(alone.standard.p50))
        #expect(alone.blackCard.p50 == 0)
        #expect((25...45).contains(try newcomers([a, b], due(.standard, 5, 5)).standard.p50))
        #expect(try newcomers([a, b, c], due(.standard, 5, 5)).standard.p50 == 0)
        #expect(try newcomers([a, b], due(.standard, 5)).standard.p50 == 0)
        #expect(try newcomers([a], due(.standard, 16)).standard.p50 == 0)
        let blackCards = try newcomers([a], due(.blackCard, 5, 5))
        #expect((55...75).contains(blackCards.blackCard.p50))
        // A customer with a preferred barber waits for that barber's chair.
        #expect(try newcomers([a, b], due(.standard, 5, barberId: "a")).standard.p50 == 0)
        #expect((25...45).contains(try newcomers([a], due(.standard, 5, barberId: "a")).standard.p50))
    }

    @Test func idleBarber_meansNoWait() throws {
        let estimate = try #require(WaitEstimator.estimate(state([barber("a"), barber("b", busyFor: 3)])))
        #expect(estimate.standard == WaitEstimate(p50: 0, p90: 0))
        #expect(estimate.blackCard == WaitEstimate(p50: 0, p90: 0))
        #expect(estimate.customers.isEmpty)
        #expect(estimate.sampleSize == 100)
    }

    /// With a free chair and an empty line, chance has no influence, so the estimator draws no samples. The
    /// simulation gives the same result.
    @Test(arguments: [1, 2, 7]) func freeChair_withAnEmptyLine_meansNoWait(busy: Int) throws {
        var barbers = (0..<busy).map { number in
            BarberState(
                id: "b\(number)", duty: number % 2 == 0 ? .working : .onBreak(endsInMinutes: 9),
                service: .init(elapsedMinutes: 3))
        }
        barbers.append(BarberState(id: "free"))
        let state = ShopState(
            barbers: barbers, waiting: [], samples: [ServiceSample(minutes: 20)],
            arrivals: ArrivalHistory(count: 400, openMinutes: 10_000))
        var replay = ShopReplay(state: state, line: ServingOrder([]))
        replay.run()
        let estimate = try #require(WaitEstimator.estimate(state))
        #expect(estimate.standard == replay.waitEstimate(ofNewcomer: .standard))
        #expect(estimate.blackCard == replay.waitEstimate(ofNewcomer: .blackCard))
        #expect(estimate.standard == WaitEstimate(p50: 0, p90: 0))
        #expect(estimate.sampleSize == 1)
    }

    @Test func knownEndOfBreak_isTheWait() throws {
        let estimate = try #require(WaitEstimator.estimate(state([barber("a", .onBreak(endsInMinutes: 12))])))
        #expect(estimate.standard == WaitEstimate(p50: 12, p90: 12))
        #expect(estimate.blackCard.p50Minutes == 12)
    }

    /// One barber and an empty line: both lanes wait for the rest of the service, which gets shorter as the service
    /// goes on.
    @Test func restOfService_shrinksWithElapsedTime_andIsNotMemoryless() throws {
        var last = Double.infinity
        for elapsed in [0.0, 5, 10, 15, 20, 25] {
            let estimate = try #require(WaitEstimator.estimate(state([barber("a", busyFor: elapsed)])))
            #expect(estimate.blackCard == estimate.standard)
            #expect(estimate.standard.p50 < last)
            #expect(estimate.standard.p90 > estimate.standard.p50)
            last = estimate.standard.p50
        }
        let fresh = try #require(WaitEstimator.estimate(state([barber("a", busyFor: 0)])))
        #expect((27...32).contains(fresh.standard.p50))
    }

    @Test(arguments: [60.0, 300, 10_000, .infinity, -5, .nan])
    func invalidElapsedTime_givesAFiniteWait(elapsed: Double) throws {
        let estimate = try #require(WaitEstimator.estimate(state([barber("a", busyFor: elapsed)])))
        #expect(estimate.standard.p50.isFinite)
        #expect(estimate.standard.p90 <= WaitLimits.waitMinutesMax)
        #expect(estimate.standard.p50 >= 0)
    }

    @Test func oneBarber_servesOneAfterTheOther() throws {
        let estimate = try #require(WaitEstimator.estimate(state([barber("a", busyFor: 15)], line(.standard, 4))))
        #expect(estimate.customers.map(\.position) == [1, 2, 3, 4])
        #expect(estimate.customers.map(\.id) == (0..<4).map { "standard-\($0)" })
        let waits = estimate.customers.compactMap { $0.wait?.p50 }
        for (before, after) in zip(waits, waits.dropFirst()) { #expect((25...35).contains(after - before)) }
        #expect((25...35).contains(estimate.standard.p50 - (waits.last ?? 0)))
        #expect(estimate.blackCard.p50 == waits[0])
    }

    @Test func blackCard_standsBeforeStandard() throws {
        let waiting = line(.standard, 3) + line(.blackCard, 2)
        let estimate = try #require(WaitEstimator.estimate(state([barber("a", busyFor: 15)], waiting)))
        #expect(
            estimate.customers.map(\.id) == ["blackCard-0", "blackCard-1", "standard-0", "standard-1", "standard-2"])
        // A black-card newcomer waits for the two customers of that lane, as the first customer of the standard lane
        // does.
        #expect(estimate.blackCard.p50 == estimate.customers[2].wait?.p50)
        #expect(estimate[.blackCard].p90 < estimate[.standard].p50)
    }

    @Test func blackCardLaneAlone_isServedInOrder() throws {
        let estimate = try #require(
            WaitEstimator.estimate(state([barber("a", busyFor: 5), barber("b", busyFor: 20)], line(.blackCard, 5))))
        #expect(estimate.customers.allSatisfy { $0.lane == .blackCard })
        #expect(estimate.standard.p50 == estimate.blackCard.p50)
        let waits = estimate.customers.compactMap { $0.wait?.p50 }
        #expect(waits == waits.sorted())
    }

    @Test func laterBlackCards_lengthenTheStandardWaitOnly() throws {
        let waiting = line(.standard, 4) + line(.blackCard, 1)
        let barbers = [barber("a", busyFor: 5), barber("b", busyFor: 20)]
        let calm = try #require(WaitEstimator.estimate(state(barbers, waiting)))
        let rush = ArrivalHistory(count: 400, openMinutes: 10_000)
        let overtaken = try #require(WaitEstimator.estimate(state(barbers, waiting, arrivals: rush)))
        #expect(overtaken.blackCard == calm.blackCard)
        #expect(overtaken.standard.p50 > calm.standard.p50 + 10)
        #expect(overtaken.standard.p90 > calm.standard.p90 + 10)
    }

    /// More black-card customers arrive than the barbers can serve. The standard lane is never served, and the
    /// estimate still ends.
    @Test func blackCardFlood_endsAtTheLongestWait() throws {
        let flood = ArrivalHistory(count: 10_000, openMinutes: 10_000)
        let estimate = try #require(
            WaitEstimator.estimate(state([barber("a", busyFor: 5)], line(.standard, 2), arrivals: flood)))
        #expect(estimate.standard.p90 == WaitLimits.waitMinutesMax)
        #expect(estimate.blackCard.p90 < 60)
        #expect(estimate.customers.count == 2)
    }

    ///
    @Test func bookingDueLater_doesNotCount_butOneDueSoonDoes() throws {
        let barbers = [barber("a", busyFor: 25)]
        let later = WaitingCustomer(id: "later", lane: .standard, readyInMinutes: 16)
        let soon = WaitingCustomer(id: "soon", lane: .standard, readyInMinutes: 2)
        let empty = try #require(WaitEstimator.estimate(state(barbers)))
        #expect(try #require(WaitEstimator.estimate(state(barbers, [later]))) == empty)
        let estimate = try #require(WaitEstimator.estimate(state(barbers, [later, soon])))
        #expect(estimate.customers.map(\.id) == ["soon"])
        #expect(estimate.standard.p50 > empty.standard.p50 + 15)
        let idle = try #require(WaitEstimator.estimate(state([barber("a")], [soon])))
        #expect(idle.customers[0].wait == WaitEstimate(p50: 2, p90: 2))
    }

    @Test func customerWhoAsksForABarber_waitsForThatBarber() throws {
        let barbers = [barber("a"), barber("b", busyFor: 1)]
        let waiting = line(.standard, 1, barberId: "b")
        let estimate = try #require(WaitEstimator.estimate(state(barbers, waiting)))
        #expect(try #require(estimate.customers[0].wait).p50 > 20)
        #expect(estimate.standard == WaitEstimate(p50: 0, p90: 0))
        let absent = try #require(WaitEstimator.estimate(state(barbers, line(.standard, 1, barberId: "nobody"))))
        #expect(absent.customers[0].wait == nil)
        #expect(absent.customers[0].position == 1)
    }

    @Test func plannedDuration_movesTheWait() throws {
        func wait(planned: Double?) throws -> Double {
            let customer = WaitingCustomer(id: "x", lane: .standard, readyInMinutes: -1, plannedMinutes: planned)
            return try #require(WaitEstimator.estimate(state([barber("a", busyFor: 20)], [customer]))).standard.p50
        }
        let short = try wait(planned: 15)
        let usual = try wait(planned: 30)
        let long = try wait(planned: 60)
        #expect(short < usual - 8)
        #expect(usual + 15 < long)
        #expect(try wait(planned: nil) == usual)
    }

    @Test func estimate_learnsToIgnorePlans() {
        let samples = (0..<200).map {
            ServiceSample(minutes: 25 + Double($0 % 11), plannedMinutes: $0 % 2 == 0 ? 20 : 60)
        }
        let short = WaitEstimator.medianServiceMinutes(samples, plannedMinutes: 20)
        let long = WaitEstimator.medianServiceMinutes(samples, plannedMinutes: 60)
        #expect(long / short < 1.1)
        #expect(WaitEstimator.medianServiceMinutes([], plannedMinutes: 60) > 50)
    }

    @Test func implausibleServiceTimes_areIgnored() throws {
        let odd = [0, -3, 0.2, 5_000, .nan, .infinity].map { ServiceSample(minutes: $0) }
        let estimate = try #require(
            WaitEstimator.estimate(ShopState(barbers: [barber("a", busyFor: 0)], waiting: [], samples: odd)))
        #expect(estimate.sampleSize == 0)
        #expect((20...32).contains(estimate.standard.p50))
    }

    @Test func manyWaiting_areAllAnswered_andTheStandardWaitGrows() throws {
        let barbers = (0..<5).map { barber("b\($0)", busyFor: Double($0) * 5) }
        let estimate = try #require(
            WaitEstimator.estimate(state(barbers, line(.standard, 260) + line(.blackCard, 40))))
        #expect(estimate.customers.map(\.position) == Array(1...300))
        #expect(estimate.customers.allSatisfy { $0.wait != nil })
        #expect(estimate.standard.p50 > 500)
        #expect(estimate.blackCard.p50 < estimate.standard.p50)
    }

    /// Every replica computes the same estimate for the same state, regardless of the order of the rows.
    @Test func estimate_doesNotDependOnTheOrderOfItsInput() {
        let seed = randomSeed()
        var random = SeededGenerator(seed: seed)
        for _ in 0..<10 {
            var shop = randomState(&random)
            let estimate = WaitEstimator.estimate(shop)
            #expect(WaitEstimator.estimate(shop) == estimate, "seed \(seed)")
            shop.waiting.shuffle(using: &random)
            #expect(WaitEstimator.estimate(shop) == estimate, "seed \(seed)")
        }
    }

    @Test func estimates_areOrdered_andPositionsComplete() throws {
        let seed = randomSeed()
        var random = SeededGenerator(seed: seed)
        for _ in 0..<25 {
            let shop = randomState(&random)
            let estimate = try #require(WaitEstimator.estimate(shop), "seed \(seed)")
            let waits = estimate.customers.compactMap(\.wait) + [estimate.standard, estimate.blackCard]
            for wait in waits {
                #expect(0 <= wait.p50, "seed \(seed)")
                #expect(wait.p50 <= wait.p90, "seed \(seed)")
                #expect(wait.p90 <= WaitLimits.waitMinutesMax, "seed \(seed)")
            }
            #expect(estimate.blackCard.p50 <= estimate.standard.p50, "seed \(seed)")
            #expect(estimate.customers.map(\.position) == shop.waiting.indices.map { $0 + 1 }, "seed \(seed)")
            #expect(Set(estimate.customers.map(\.id)) == Set(shop.waiting.map(\.id)), "seed \(seed)")
        }
    }

    private func randomState(_ random: inout SeededGenerator) -> ShopState {
        let barbers = (0..<Int.random(in: 1...5, using: &random)).map {
            barber("b\($0)", busyFor: Bool.random(using: &random) ? Double.random(in: 0...60, using: &random) : nil)
        }
        let waiting = (0..<Int.random(in: 0...20, using: &random)).map {
            WaitingCustomer(
                id: "c\($0)", lane: Int.random(in: 0..<5, using: &random) == 0 ? .blackCard : .standard,
                readyInMinutes: Double.random(in: -60...15, using: &random),
                plannedMinutes: Bool.random(using: &random) ? 45 : nil)
        }
        let arrivals = ArrivalHistory(count: Int.random(in: 0...50, using: &random), openMinutes: 3_000)
        return state(barbers, waiting, arrivals: arrivals)
    }
}
