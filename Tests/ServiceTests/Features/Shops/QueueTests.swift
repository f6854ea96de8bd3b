import BellhopClient
import Foundation
import TestSupport
import Testing
import Values

/// Queue waits over real HTTP (R-CUT-Q-1 to R-CUT-Q-6; ).
@Suite(.timed) struct QueueTests {
    let service: TestService

    init() async throws { service = try await BookingsTests.shop() }

    private static func queue(_ service: TestService) async throws -> Bellhop.QueueStatus {
        try await service.client("anybody").getQueue(id: "s1").value
    }

    @discardableResult
    private static func confirm(
        _ service: TestService, _ start: String, barber: String? = "b1"
    ) async throws -> Bellhop.Booking {
        let backend = service.client(as: .service())
        let made = try await backend.createBooking(BookingsTests.draft(start, barber: barber, user: "u1")).value
        return try await backend.change(made, .init(status: .confirmed)).value
    }

    /// R-CUT-Q-1 to R-CUT-Q-4 and R-3: today's confirmed bookings ÷ barbers × average duration; the black card never
    /// waits longer.
    @Test func numbers_areTheDocuments_withTheBetterEstimateBeside() async throws {
        for start in ["2026-01-10T08:00:00Z", "2026-01-10T08:30:00Z", "2026-01-10T17:00:00Z"] {
            try await Self.confirm(service, start)
        }
        // Tomorrow's bookings, in the shop's time zone, do not count today.
        try await Self.confirm(service, "2026-01-10T23:00:00Z")
        let status = try await Self.queue(service)
        #expect(status.queueLength == 3 && status.currentlyServing == 2 && status.inService == 0)
        #expect(status.state == .open)
        #expect(status.avgWaitTime == 45)
        #expect(status.estimatedWaitTimes.standard == 45 && status.estimatedWaitTimes.blackCard == 18)
        let wait = try #require(status.estimate?.standard)
        #expect(wait.p50 <= wait.p90)
        #expect(status.updatedAt == moment("2026-01-10T08:00:00.000Z"))
    }

    ///
    @Test func shopWithoutBarbers_isUnstaffed() async throws {
        let backend = service.client(as: .service())
        try await Self.confirm(service, "2026-01-10T08:00:00Z")
        for barber in ["b1", "b2"] { try await backend.replaceBarber(id: "s1", barberId: barber, .init(onDuty: false)) }
        let status = try await Self.queue(service)
        #expect(status.state == .unstaffed && status.estimate == nil && status.avgWaitTime == 0)
        #expect(status.queueLength == 1)
        let entry = try await backend.listQueueEntries(id: "s1").value.items[0]
        #expect(entry.position == 1 && entry.wait == nil)
        #expect(try await problem(of: await backend.deleteBarber(id: "s1", barberId: "b1")).code == .barberBooked)
        #expect(try await backend.deleteBarber(id: "s1", barberId: "b2").status == 204)
    }

    /// customers due within 15 minutes are served before a newcomer, later ones are not.
    @Test func newcomer_waitsForCustomersWhoAreDue() async throws {
        let backend = service.client(as: .service())
        try await backend.replaceBarber(id: "s1", barberId: "b2", .init(onDuty: false))
        #expect(try await Self.queue(service).estimate?.standard.p50 == 0)
        for _ in 0..<2 {
            try await Self.confirm(service, "2026-01-10T08:40:00Z", barber: nil)
        }
        #expect(try await Self.queue(service).estimate?.standard.p50 == 0)
        service.clock.advance(seconds: 35 * 60)
        let estimate = try #require(try await Self.queue(service).estimate)
        #expect(estimate.standard.p50 > 35)
        #expect(estimate.blackCard.p50 == 0)
    }

    /// A shop whose only barber is on a break is neither open nor closed.
    @Test func shopWhoseBarbersAreOnABreak_isPaused_withAnEstimate() async throws {
        let backend = service.client(as: .service())
        try await backend.replaceBarber(id: "s1", barberId: "b2", .init(onDuty: false))
        try await backend.replaceBarber(id: "s1", barberId: "b1", .init(onDuty: true, onBreak: true))
        let status = try await Self.queue(service)
        #expect(status.state == .paused && status.currentlyServing == 1)
        #expect(status.estimate?.standard.p50 == 15 && status.estimate?.standard.p90 == 15)
        service.clock.advance(seconds: 12 * 60)
        #expect(try await Self.queue(service).estimate?.standard.p50 == 5)
        try await service.client(as: .service()).replaceBarber(id: "s1", barberId: "b1", .init(onDuty: true))
        let open = try await Self.queue(service)
        #expect(open.state == .open)
        #expect(open.estimate?.standard.p50 == 0)
    }

    /// a setting selects the literal formula, whose minimum of 5 can exceed the standard wait.
    @Test func literalFormula_isASetting() async throws {
        #expect(try await Self.queue(service).estimatedWaitTimes.blackCard == 0)
        let literal = try await BookingsTests.shop(["literalBlackCardFormula": "true"])
        #expect(try await literal.client("anybody").getQueue(id: "s1").value.estimatedWaitTimes.blackCard == 5)
    }

    /// R-CUT-Q-5: the queue is never older than a minute, even without activity. R-CUT-Q-6: watchers receive changes
    /// caused by time alone.
    @Test func queue_isNeverOlderThanAMinute() async throws {
        try await service.client(as: .service()).replaceBarber(id: "s1", barberId: "b2", .init(onDuty: false))
        let stream = try await service.listen(as: .user("u2"), topics: ["queue:s1"])
        _ = try await stream.next("queue:update")
        let booking = try await Self.confirm(service, "2026-01-10T08:00:00Z")
        try await service.client(as: .service()).change(booking, .init(status: .inProgress))
        while try await stream.next("queue:update").json["inService"].int != 1 {}
        service.clock.advance(seconds: 59)
        func age() async throws -> Double {
            Double(service.clock.now.seconds) - (try await Self.queue(service)).updatedAt.timeIntervalSince1970
        }
        #expect(try await age() <= 60)
        service.clock.advance(seconds: 600)
        #expect(try await age() <= 60)
        // The service is ten minutes closer to its end. The tick publishes this without any request.
        #expect(try await stream.next("queue:update").json["inService"].int == 1)
    }

    /// Walk-ins, lanes and positions. A customer sees only their own entry.
    @Test func line_hasPlacesAndWaits() async throws {
        let staff = service.client(as: .staff(of: "s1"))
        try await staff.replaceBarber(id: "s1", barberId: "b2", .init(onDuty: false))
        let first = try await staff.addWalkIn(
            id: "s1", .init(service: "cut", tier: .standard, customerName: "Kim")
        ).value
        #expect(first.source == .walkIn && first.status == .confirmed)
        #expect(first.arrivedAt != nil)
        try await staff.addWalkIn(
            id: "s1", .init(service: "cut", tier: .standard, userId: "lou", customerName: "Lou"))
        try await staff.addWalkIn(id: "s1", .init(service: "cut", tier: .blackCard, customerName: "Max"))
        let entries = try await staff.listQueueEntries(id: "s1").value.items
        #expect(entries.map(\.customerName) == ["Max", "Kim", "Lou"])
        #expect(entries.map(\.position) == [1, 2, 3])
        let waits = entries.compactMap(\.wait?.p50)
        #expect(waits == waits.sorted())
        #expect(waits.count == 3)
        #expect(try await service.client("lou").listQueueEntries(id: "s1").value.items.map(\.position) == [3])
        #expect(
            try await service.client("nobody").listQueueEntries(id: "s1").value.items.isEmpty
                == true)
        #expect(
            try await status(of: await service.client("lou").addWalkIn(id: "s1", .init(service: "cut")))
                == 403)
        #expect(
            try await status(of: await service.client(as: .staff(of: "s2")).addWalkIn(id: "s1", .init(service: "cut")))
                == 403)
    }

    /// The accuracy of past estimates: they are made at arrival and compared when the service begins.
    @Test func accuracy_comparesEstimates_withWhatCame() async throws {
        var staff = service.client(as: .staff(of: "s1"))
        try await staff.replaceBarber(id: "s1", barberId: "b2", .init(onDuty: false))
        var line: [Bellhop.Booking] = []
        for _ in 0..<3 { line.append(try await staff.addWalkIn(id: "s1", .init(service: "cut")).value) }
        for booking in line {
            let started = try await staff.change(booking, .init(status: .inProgress))
            service.clock.advance(seconds: 25 * 60)
            staff = service.client(as: .staff(of: "s1"))
            #expect(try await staff.change(started.value, .init(status: .completed)).status == 200)
        }
        let accuracy = try await staff.getQueueAccuracy(id: "s1").value
        #expect(accuracy.standard.n == 3)
        #expect(accuracy.blackCard.n == 0 && accuracy.blackCard.meanAbsoluteError == nil)
        #expect(accuracy.standard.formula.n == 3)
        #expect((accuracy.standard.meanAbsoluteError ?? 99) < 10)
        #expect(accuracy.standard.shareUnderP90 == 1)
        #expect(try await status(of: await service.client("u1").getQueueAccuracy(id: "s1")) == 403)
        // Three services of 25 minutes pull the average below the prior of 30.
        try await staff.addWalkIn(id: "s1", .init(service: "cut"))
        #expect(try await service.client("anybody").getQueue(id: "s1").value.avgWaitTime == 29)
    }
}
