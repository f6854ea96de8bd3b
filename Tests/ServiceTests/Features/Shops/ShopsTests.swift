import BellhopClient
import Database
import Foundation
import TestSupport
import Testing
import Values

@testable import Service

/// Shops, their days and their people over real HTTP, and overlaps that the service's check and the database's
/// triggers would miss.
@Suite(.timed) struct ShopsTests {
    // MARK: Days

    private static func moment(_ text: String) throws -> Timestamp { try #require(Timestamp(rfc3339: text)) }

    /// R-CUT-Q-2: "today" follows the shop's time zone, also on days of 23 or 25 hours, or days that begin at one
    /// o'clock.
    @Test(arguments: [
        ("Europe/Berlin", "2026-03-29", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"),
        ("Europe/Berlin", "2026-10-25", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"),
        ("Asia/Kathmandu", "2026-01-10", "2026-01-09T18:15:00Z", "2026-01-10T18:15:00Z"),
        ("Pacific/Kiritimati", "2026-01-01", "2025-12-31T10:00:00Z", "2026-01-01T10:00:00Z"),
        // The clocks go forward at midnight: the day begins at one, and the next one at midnight again.
        ("Asia/Beirut", "2026-03-29", "2026-03-28T22:00:00Z", "2026-03-29T21:00:00Z"),
        ("Atlantic/Azores", "2026-03-29", "2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"),
        ("UTC", "2024-02-29", "2024-02-29T00:00:00Z", "2024-03-01T00:00:00Z"),
    ])
    func day_followsTheShopsTimeZone(_ zone: String, _ name: String, _ from: String, _ to: String) throws {
        let day = try Self.moment(from)..<Self.moment(to)
        #expect(TimeZones.day(named: name, in: zone) == day)
        #expect(TimeZones.day(of: day.lowerBound, in: zone) == day)
        #expect(TimeZones.day(of: day.upperBound.adding(seconds: -1), in: zone) == day)
        #expect(TimeZones.day(of: day.upperBound, in: zone).lowerBound == day.upperBound)
    }

    /// Every moment belongs to exactly one day.
    @Test(arguments: [
        "Africa/Cairo", "America/Havana", "America/Santiago", "Asia/Beirut", "Atlantic/Azores", "Australia/Lord_Howe",
        "Europe/Berlin",
    ])
    func days_followEachOther_withoutGaps(_ zone: String) throws {
        var day = TimeZones.day(of: try Self.moment("2025-01-01T12:00:00Z"), in: zone)
        for _ in 0..<800 {
            let next = TimeZones.day(of: day.upperBound, in: zone)
            #expect(next.lowerBound == day.upperBound, "\(zone): \(day)")
            day = next
        }
    }

    /// Dates that calendars dispute or that a time zone skipped are answered and do not crash the service.
    @Test(arguments: ["0001-01-01", "1582-10-10", "1582-10-15", "1844-12-31", "2011-12-30", "9999-12-31"])
    func unusualDates_areAnswered(_ name: String) async throws {
        let service = try TestService.start()
        let backend = service.client(as: .service())
        for zone in ["UTC", "Pacific/Apia", "Asia/Manila", "America/Juneau", "Europe/Berlin"] {
            #expect(try await status(of: await backend.replaceShop(id: "s1", .init(name: "X", timeZone: zone))) < 300)
            let answer = try await service.call("GET", "/v1/bookings?shopId=s1&day=\(name)", as: .service())
            #expect(answer.status == 200, "\(zone) \(answer.text)")
            #expect(answer.json["items"].array?.isEmpty == true, "\(zone) \(answer.text)")
        }
    }

    @Test func unknownTimeZones_areRefused() async throws {
        let service = try TestService.start()
        let backend = service.client(as: .service())
        for zone in ["", "IST", "Mars/Phobos", "../../etc/passwd", "/", "Europe/Berlin "] {
            let answer = try await problem(of: await backend.replaceShop(id: "s1", .init(name: "X", timeZone: zone)))
            #expect(answer.mistakes == "422 /timeZone", "\(zone)")
        }
        #expect(try await status(of: await backend.getShop(id: "s1")) == 404)
    }

    // MARK: Permission to join the line

    /// A policy that lets users write their own rows must not let them add themselves to a line.
    @Test func staffOfAnotherShop_cannotJoinTheLine() async throws {
        let service = try await BookingsTests.shop()
        let noShop = TestService.Identity(subject: "sly", metadata: ["user_role": "staff"])
        for identity in [noShop, .staff(of: "s2", named: "sly")] {
            let client = service.client(as: identity)
            let answer = try await problem(of: await client.addWalkIn(id: "s1", .init(service: "cut", userId: "sly")))
            #expect(answer.refusal == "403 booking.staff_only")
            #expect(try await client.listBookings().value.items.isEmpty)
        }
        #expect(try await service.client(as: .service()).getQueue(id: "s1").value.queueLength == 0)
    }

    // MARK: Numbers

    /// A barber goes off duty after the current service. That service does not occupy another barber.
    @Test func serviceOfABarberOffDuty_occupiesNoOtherBarber() async throws {
        let service = try await BookingsTests.shop()
        let backend = service.client(as: .service())
        let booking = try await backend.addWalkIn(id: "s1", .init(service: "cut", barberId: "b1", customerName: "Kim"))
            .value
        #expect(try await backend.change(booking, .init(status: .inProgress)).status == 200)
        #expect(try await backend.replaceBarber(id: "s1", barberId: "b1", .init(onDuty: false)).status == 200)
        let status = try await backend.getQueue(id: "s1").value
        #expect(status.inService == 1 && status.currentlyServing == 1)
        #expect(status.estimate?.standard.p90 == 0, "\(status)")
    }

    /// A customer arrives before the shop has confirmed. The estimate is made at the confirmation, and the wait
    /// starts then.
    @Test func earlyArrival_isTakenIntoAccount_whenTheShopConfirms() async throws {
        let service = try await BookingsTests.shop()
        let staff = service.client(as: .staff(of: "s1"))
        let made = try await service.client("u1").createBooking(BookingsTests.draft()).value
        let arrived = try await staff.change(made, .init(arrived: true)).value
        #expect(arrived.status == .pending)
        #expect(arrived.arrivedAt != nil)
        service.clock.advance(seconds: 300)
        let confirmed = try await staff.change(arrived, .init(status: .confirmed)).value
        service.clock.advance(seconds: 600)
        #expect(try await staff.change(confirmed, .init(status: .inProgress)).status == 200)
        let accuracy = try await staff.getQueueAccuracy(id: "s1").value.standard
        #expect(accuracy.n == 1 && accuracy.meanAbsoluteError == 10, "\(accuracy)")
    }

    /// R-CUT-Q-5: nothing happens in a closed shop at midnight, but tomorrow's bookings become today's.
    @Test func closedShop_updatesItsWatchers_whenADayBegins() async throws {
        let service = try TestService.start(at: "2026-01-10T22:50:00Z")
        let backend = service.client(as: .service())
        #expect(
            try await backend.replaceShop(id: "s1", .init(name: "Night Cuts", timeZone: "Europe/Berlin")).status == 201)
        let made = try await backend.createBooking(
            BookingsTests.draft("2026-01-11T09:00:00Z", barber: nil, user: "kim")
        ).value
        #expect(try await backend.change(made, .init(status: .confirmed)).status == 200)
        let stream = try await service.listen(as: .user("u1"), topics: ["queue:s1"])
        #expect(try await stream.next("queue:update").json["queueLength"].int == 0)
        service.clock.advance(seconds: 15 * 60)
        let delivered = try await stream.next("queue:update").json
        expect(delivered, has: ["queueLength": 1, "state": "unstaffed"])
    }

    // MARK: The audit, after the service's check and the database's triggers

    /// `bellhop check` finds overlaps that got past the service's check and the database's triggers.
    @Test func existingOverlaps_areFoundByTheAudit() async throws {
        let service = try await BookingsTests.shop()
        let user = service.client("u1")
        for start in [BookingsTests.nine, "2026-01-10T12:00:00Z"] {
            #expect(try await user.createBooking(BookingsTests.draft(start)).status == 201)
        }
        try service.expectExactCounts()
        let moved = try BookingsTests.movedStart(minutes: 20)
        try await service.alterTable(
            sqlite: "DROP TRIGGER bookings_update_overlap",
            postgres: "ALTER TABLE bookings DISABLE TRIGGER bookings_overlap")
        try await service.app.store.write { db in
            try db.run(
                """
                UPDATE \(ShopsFeature.bookings, unscoped: .audit("a test makes a forbidden change")) SET scheduled_start = \(moved.microseconds),
                    ends_at = \(moved.adding(minutes: 30).microseconds)
                WHERE scheduled_start > \(moved.adding(minutes: 60).microseconds)
                """)
        }
        let found = try service.app.store.read { try ShopsFeature.overlapAudit.run($0) }
        try #require(found.count == 1, "\(found)")
        #expect(found[0].contains("b1"), "\(found)")
    }
}

extension BookingsTests {
    /// Returns nine o'clock plus some minutes.
    static func movedStart(minutes: Int64) throws -> Timestamp {
        try #require(Timestamp(rfc3339: nine)).adding(minutes: minutes)
    }
}
