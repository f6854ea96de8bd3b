import BellhopClient
import Database
import Foundation
import TestSupport
import Testing
import Values

@testable import Service

/// Bookings over real HTTP (R-CUT-B-1 to R-CUT-B-3; ).
@Suite(.timed) struct BookingsTests {
    let service: TestService

    init() async throws { service = try await Self.shop() }

    static let nine = "2026-01-10T09:00:00Z"

    /// Starts a service with a shop that has two barbers on duty, at eight in the morning.
    static func shop(_ overrides: [String: String] = [:]) async throws -> TestService {
        let service = try TestService.start(overrides, at: "2026-01-10T08:00:00Z")
        let backend = service.client(as: .service())
        #expect(
            try await backend.replaceShop(id: "s1", .init(name: "The Cut Club", timeZone: "Europe/Berlin")).status
                == 201)
        for barber in ["b1", "b2"] {
            #expect(try await backend.replaceBarber(id: "s1", barberId: barber, .init(onDuty: true)).status == 201)
        }
        return service
    }

    static func draft(
        _ start: String = nine, barber: String? = "b1", minutes: Int = 30, tier: Bellhop.Tier = .standard,
        user: String? = nil
    ) -> Bellhop.CreateBookingBody {
        .init(
            shopId: "s1", barberId: barber, service: "cut", scheduledStart: moment(start), durationMinutes: minutes,
            tier: tier, userId: user)
    }

    /// each change recomputes the queue, and is delivered at once.
    @Test func booking_passesThroughItsStates_andReachesAllReceivers() async throws {
        let user = service.client("u1")
        let staff = service.client(as: .staff(of: "s1"))
        let stream = try await service.listen(as: .user("u1"), topics: ["queue:s1"])
        let shopStream = try await service.listen(as: .staff(of: "s1"))
        _ = try await stream.next("queue:update")
        let made = try await user.createBooking(Self.draft())
        #expect(made.status == 201)
        #expect(made.etag?.hasPrefix(made.value.versionTag.dropLast() + "-") == true)
        #expect(made.location == "/v1/bookings/\(made.value.id)")
        #expect(made.value.status == .pending)
        // R-CUT-B-3: without completed services, the median is the prior's, 28 minutes.
        let completion = try #require(made.value.estimatedCompletion)
        #expect((moment("2026-01-10T09:20:00Z")..<moment("2026-01-10T09:30:00Z")).contains(completion))
        #expect(try await stream.next("booking:status_change").json["previousStatus"].isNull)
        var booking = try await staff.change(made.value, .init(status: .confirmed)).value
        #expect(booking.version == 2)
        let delivered = try await stream.next("booking:status_change").json
        expect(delivered, has: ["status": "confirmed", "previousStatus": "pending"])
        let notified = try await stream.next("notification:created").json
        expect(notified, has: ["title": "Booking Confirmed", "category": "booking"])
        #expect(notified["data"]["event"].string == "booking_status_change")
        #expect(try await stream.next("queue:update").json["queueLength"].int == 1)
        #expect(try await stream.next("badges:update").json["bell"].int == 1)
        for status in [Bellhop.BookingStatus.inProgress, .completed] {
            booking = try await staff.change(booking, .init(status: status)).value
            #expect(try await stream.next("booking:status_change").json["status"].string == status.rawValue)
        }
        #expect(booking.startedAt != nil)
        #expect(booking.completedAt != nil)
        for _ in 0..<4 { _ = try await shopStream.next("booking:status_change") }
        let history = try await user.getBookingHistory(id: booking.id).value.items
        #expect(history.map(\.to) == [.pending, .confirmed, .inProgress, .completed])
        #expect(history[1].actorId == "staff" && history[1].actorRole == "staff")
        try service.expectExactCounts()
    }

    /// final states stay final, only the shop confirms, and setting the current status changes nothing.
    @Test func moves_thatTheMachineDoesNotKnow_areRefused() async throws {
        let (user, staff) = (service.client("u1"), service.client(as: .staff(of: "s1")))
        let made = try await user.createBooking(Self.draft()).value
        let unknown = try await problem(of: await staff.change(made, .init(status: .completed)))
        #expect(unknown.refusal == "409 booking.invalid_transition")
        #expect(unknown.allowed == ["confirmed", "cancelled"])
        #expect(
            try await problem(of: await user.change(made, .init(status: .confirmed))).code == .bookingStaffOnly)
        let same = try await user.change(made, .init(status: .pending))
        #expect(same.status == 200)
        #expect(same.value.version == 1)
        let cancelled = try await user.change(made, .init(status: .cancelled)).value
        let final = try await problem(of: await staff.change(cancelled, .init(status: .pending)))
        #expect(final.status == 409)
        #expect(final.allowed.isEmpty)
        let changed = try await problem(of: await staff.change(cancelled, .init(durationMinutes: 45)))
        #expect(changed.code == .bookingNotChangeable)
    }

    /// 428 without If-Match (RFC 6585 §3), 412 for a stale one (RFC 9110 §15.5.13).
    @Test func ifMatch_guardsEveryChange() async throws {
        let user = service.client("u1")
        let made = try await user.createBooking(Self.draft()).value
        let path = "/v1/bookings/\(made.id)"
        #expect(try await service.call("PATCH", path, as: .user("u1"), ["status": "cancelled"]).status == 428)
        // A tag needs a version and the current epoch.
        for tag in ["\"2-\(made.epoch)\"", "\"x\"", "0", "\"1\"", "\"1-zzzzzz\"", "1-", "-"] {
            let refusal = try await refusal(
                of: await user.changeBooking(id: made.id, ifMatch: tag, .init(status: .cancelled)))
            #expect(refusal == "412 precondition.stale", "\(tag)")
        }
        let weak = "W/\(made.versionTag)"
        let changed = try await user.changeBooking(id: made.id, ifMatch: weak, .init(status: .cancelled))
        #expect(try await user.getBooking(id: made.id, ifNoneMatch: try #require(changed.etag)) == nil)
    }

    @Test func overlaps_areFound_atCreationConfirmationAndChange() async throws {
        let (user, staff) = (service.client("u1"), service.client(as: .staff(of: "s1")))
        let first = try await user.createBooking(Self.draft()).value
        for start in ["2026-01-10T08:31:00Z", "2026-01-10T09:00:00Z", "2026-01-10T09:29:00Z"] {
            let taken = try await problem(of: await service.client("u2").createBooking(Self.draft(start)))
            #expect(taken.refusal == "409 booking.overlap", "\(start)")
        }
        // Times are half-open: one booking may begin when another ends. The other barber is free.
        for start in ["2026-01-10T08:30:00Z", "2026-01-10T09:30:00Z"] {
            #expect(try await user.createBooking(Self.draft(start)).status == 201, "\(start)")
        }
        #expect(try await user.createBooking(Self.draft(barber: "b2")).status == 201)
        // A booking for any barber reserves no time until it is assigned one.
        let any = try await user.createBooking(Self.draft(barber: nil)).value
        let confirmed = try await problem(of: await staff.change(any, .init(status: .confirmed, barberId: "b1")))
        #expect(confirmed.refusal == "409 booking.overlap")
        let moved = try await problem(of: await user.change(first, .init(durationMinutes: 31)))
        #expect(moved.status == 409)
        #expect(try await user.change(first, .init(status: .cancelled)).status == 200)
        #expect(try await staff.change(any, .init(status: .confirmed, barberId: "b1")).status == 200)
        try service.expectExactCounts()
    }

    /// No barber is double-booked: 10,000 concurrent attempts for 100 time slots. A contributor's run makes fewer.
    @Test func tenThousandAttempts_giveEachTimeOnce() async throws {
        let slots = effort(quick: 25, full: 100, long: 100)
        let statuses = try await concurrently(0..<slots) { worker -> [Int] in
            let client = service.client("w\(worker)")
            var statuses: [Int] = []
            for attempt in 0..<slots {
                let start = try Self.movedStart(minutes: Int64((attempt + worker) % slots * 10)).rfc3339
                statuses.append(try await status(of: await client.createBooking(Self.draft(start, minutes: 10))))
            }
            return statuses
        }.joined()
        #expect(statuses.count { $0 == 201 } == slots)
        #expect(statuses.count { $0 == 409 } == slots * (slots - 1))
        try service.expectExactCounts()
    }

    /// The second line of defence: the database refuses overlaps that the service's check would miss.
    @Test func database_refusesOverlaps_andChangesOfHistory() async throws {
        let made = try await service.client("u1").createBooking(Self.draft()).value
        let id = made.id
        let store = service.app.store
        let tampering = Unscoped.audit("a test makes a forbidden change")
        for sql in [
            """
            INSERT INTO \(ShopsFeature.bookings, unscoped: tampering) SELECT tenant, 'copy', user_id, shop_id, barber_id, service, scheduled_start, ends_at,
                duration_minutes, tier, status, version, source, customer_name, arrived_at, started_at, completed_at,
                created_at, updated_at FROM bookings WHERE id = \(id)
            """, "UPDATE \(ShopsFeature.history, unscoped: tampering) SET status = 'x'",
            "DELETE FROM \(ShopsFeature.history, unscoped: tampering)",
        ] as [SQL] {
            await #expect(throws: DatabaseError.self) { try await store.write { try $0.run(sql) } }
        }
    }

    /// A row that the caller may not see is a 404, for every caller and method.
    @Test func unrelatedUsers_findNothing() async throws {
        try await service.client(as: .service()).replaceShop(id: "s2", .init(name: "Other", timeZone: "UTC"))
        let made = try await service.client("u1").createBooking(Self.draft()).value
        let strangers: [TestService.Identity] = [
            .user("u2"), .user("u1", tenant: "t2"), .staff(of: "s2"), .service(tenant: "t2"),
        ]
        for stranger in strangers {
            let client = service.client(as: stranger)
            #expect(try await status(of: await client.getBooking(id: made.id)) == 404, "\(stranger)")
            #expect(try await status(of: await client.getBookingHistory(id: made.id)) == 404, "\(stranger)")
            #expect(try await status(of: await client.change(made, .init(status: .cancelled))) == 404, "\(stranger)")
            #expect(try await client.listBookings().value.items.isEmpty, "\(stranger)")
        }
        for friend in [TestService.Identity.user("u1"), .staff(of: "s1"), .admin, .service()] {
            #expect(try await service.client(as: friend).getBooking(id: made.id).status == 200, "\(friend)")
        }
        for foreigner in [TestService.Identity.staff(of: "s2"), .user("u1")] {
            let client = service.client(as: foreigner)
            #expect(
                try await status(of: await client.replaceShop(id: "s1", .init(name: "X", timeZone: "UTC"))) == 403)
        }
        let forOther = Self.draft(barber: nil, user: "u2")
        #expect(try await status(of: await service.client("u1").createBooking(forOther)) == 422)
    }

    @Test func badBookings_areRefusedWithTheirPlaces() async throws {
        let user = service.client("u1")
        let body: JSON = ["shopId": "s1", "durationMinutes": 4, "scheduledStart": "soon"]
        let wrong = try await service.call("POST", "/v1/bookings", as: .user("u1"), body)
        #expect(wrong.status == 422)
        #expect(Set(wrong.pointers) == ["/service", "/durationMinutes", "/scheduledStart"])
        #expect(
            try await problem(of: await user.createBooking(Self.draft(barber: "nobody"))).pointers.first
                == "/barberId")
        let tiered = TestService.Identity(subject: "u1", metadata: ["tier": "standard"])
        #expect(
            try await status(of: await service.client(as: tiered).createBooking(Self.draft(tier: .blackCard))) == 422)
        #expect(try await status(of: await user.listBookings(day: "2026-01-10")) == 422)
        #expect(try await status(of: await user.listBookings(shopId: "s1", day: "2026-02-30")) == 422)
    }

    /// without the claim in the token, the black card is only a request.
    @Test func blackCard_needsItsClaim() async throws {
        let draft = Self.draft(barber: nil, tier: .blackCard)
        let refusal = try await refusal(of: await service.client("u1").createBooking(draft))
        #expect(refusal == "403 booking.tier_not_claimed")
        let holder = service.client(as: TestService.Identity(subject: "u1", metadata: ["tier": "blackCard"]))
        #expect(try await holder.createBooking(draft).value.tier == .blackCard)
        for identity in [TestService.Identity.staff(of: "s1"), .service()] {
            let draft = Self.draft(barber: nil, tier: .blackCard, user: "u1")
            #expect(try await service.client(as: identity).createBooking(draft).status == 201)
        }
        let trusting = try await Self.shop(["selfDeclared": "true"])
        #expect(try await trusting.client("u1").createBooking(draft).value.tier == .blackCard)
    }

    @Test func bookingsInThePast_areCreatedByStaffOnly() async throws {
        let user = service.client("u1")
        let past = Self.draft("2026-01-10T07:50:00Z", barber: nil)
        let refused = try await problem(of: await user.createBooking(past))
        #expect(refused.refusal == "403 booking.in_past")
        #expect(refused.pointers.first == "/scheduledStart")
        // A start of "now" is slightly in the past when the request arrives.
        #expect(try await user.createBooking(Self.draft("2026-01-10T07:59:00Z", barber: nil)).status == 201)
        let made = try await user.createBooking(Self.draft()).value
        let moved = try await problem(
            of: await user.change(made, .init(scheduledStart: moment("2026-01-10T07:00:00Z"))))
        #expect(moved.refusal == "403 booking.in_past")
        for identity in [TestService.Identity.staff(of: "s1"), .service()] {
            let draft = Self.draft("2026-01-10T07:50:00Z", barber: nil, user: "u1")
            #expect(try await service.client(as: identity).createBooking(draft).status == 201)
        }
        service.clock.advance(seconds: 4 * 3600)
        // Changes to other fields do not check the time.
        let later = service.client("u1")
        #expect(try await later.change(made, .init(durationMinutes: 25)).status == 200)
    }

    /// The day follows the shop's time zone: 23:30 UTC is the next day in Berlin.
    @Test func day_isThatOfTheShopsTimeZone() async throws {
        let user = service.client("u1")
        for start in ["2026-01-10T22:30:00Z", "2026-01-10T23:30:00Z"] {
            #expect(try await user.createBooking(Self.draft(start)).status == 201)
        }
        func starts(_ day: String) async throws -> [Date] {
            try await user.listBookings(shopId: "s1", day: day).value.items.map(\.scheduledStart)
        }
        #expect(try await starts("2026-01-10") == [moment("2026-01-10T22:30:00Z")])
        #expect(try await starts("2026-01-11") == [moment("2026-01-10T23:30:00Z")])
        let page = try await user.listBookings(limit: 1).value
        let rest = try await user.listBookings(limit: 1, cursor: page.next).value
        #expect(rest.items.map(\.scheduledStart) == [moment("2026-01-10T22:30:00Z")])
        #expect(rest.next == nil)
    }
}

extension BellhopClient {
    /// Changes the version of a booking that the caller knows.
    @discardableResult
    func change(_ booking: Bellhop.Booking, _ change: Bellhop.ChangeBookingBody) async throws
        -> Bellhop.Answer<Bellhop.Booking>
    {
        try await changeBooking(id: booking.id, ifMatch: booking.versionTag, change)
    }
}
