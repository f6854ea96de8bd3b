import BellhopClient
import Database
import Domain
import Foundation
import Rows
import TestSupport
import Testing
import Values

@testable import Service

/// Bookings over real HTTP (R-CUT-B-1 to R-CUT-B-3; R-1 and R-8).
@Suite(.timed) struct BookingsTests {
    let service: TestService

    init() async throws { service = try await Self.shop() }

    static let nine = "2026-01-10T09:00:00Z"

    /// Starts a service with a shop that has two barbers on duty, at eight in the morning.
    static func shop(_ overrides: [String: String] = [:]) async throws -> TestService {
        let service = try TestService.start(overrides, at: "2026-01-10T08:00:00Z")
        let backend = service.client(as: .service())
        #expect(
            try await backend.put("/v1/shops/s1", ["name": "The Cut Club", "timeZone": "Europe/Berlin"]).status == 201)
        for barber in ["b1", "b2"] {
            #expect(try await backend.put("/v1/shops/s1/barbers/\(barber)", ["onDuty": true]).status == 201)
        }
        return service
    }

    static func draft(_ start: String = nine, barber: String? = "b1", minutes: Int64 = 30) -> JSON {
        [
            "shopId": "s1", "barberId": barber.map(JSON.string) ?? .null, "service": "cut",
            "scheduledStart": .string(start), "durationMinutes": .integer(minutes), "tier": "standard",
        ]
    }

    static func move(
        _ client: BellhopClient, _ booking: JSON, to change: JSON
    ) async throws -> ServiceAnswer {
        try await client.patch(
            "/v1/bookings/\(booking["id"].string ?? "")", change,
            headers: ["If-Match": tag(of: booking)])
    }

    /// Returns the entity tag for a version that a client knows from an event or a list.
    static func tag(of booking: JSON, version: Int? = nil) -> String {
        "\"\(version ?? booking["version"].int ?? 0)-\(booking["epoch"].string ?? "")\""
    }

    @Test func booking_passesThroughItsStates_andReachesAllReceivers() async throws {
        let user = service.client(as: .user("u1"))
        let staff = service.client(as: .staff(of: "s1"))
        let stream = try await service.listen(as: .user("u1"), topics: ["queue:s1"])
        let shopStream = try await service.listen(as: .staff(of: "s1"))
        _ = try await stream.next("queue:update")
        let made = try await user.post("/v1/bookings", Self.draft())
        #expect(made.status == 201)
        #expect(made[header: "ETag"]?.hasPrefix(Self.tag(of: made.json).dropLast() + "-") == true)
        #expect(made[header: "Location"] == "/v1/bookings/\(made.json["id"].string ?? "")")
        #expect(made.json["status"].string == "pending")
        // R-CUT-B-3: without completed services, the median is the prior's, 28 minutes.
        #expect(made.json["estimatedCompletion"].string?.hasPrefix("2026-01-10T09:2") == true)
        #expect(try await stream.next("booking:status_change").json["previousStatus"].isNull)
        let confirmed = try await Self.move(staff, made.json, to: ["status": "confirmed"])
        #expect(confirmed.status == 200)
        #expect(confirmed.json["version"].int == 2)
        let delivered = try await stream.next("booking:status_change").json
        expect(delivered, has: ["status": "confirmed", "previousStatus": "pending"])
        let notified = try await stream.next("notification:created").json
        expect(notified, has: ["title": "Booking Confirmed", "category": "booking"])
        #expect(notified["data"]["event"].string == "booking_status_change")
        #expect(try await stream.next("queue:update").json["queueLength"].int == 1)
        #expect(try await stream.next("badges:update").json["bell"].int == 1)
        var booking = confirmed.json
        for status in ["in-progress", "completed"] {
            let moved = try await Self.move(staff, booking, to: ["status": .string(status)])
            #expect(moved.status == 200, "\(moved.problem)")
            booking = moved.json
            #expect(try await stream.next("booking:status_change").json["status"].string == status)
        }
        #expect(!booking["startedAt"].isNull)
        #expect(!booking["completedAt"].isNull)
        for _ in 0..<4 { _ = try await shopStream.next("booking:status_change") }
        let history = try await user.get("/v1/bookings/\(booking["id"].string ?? "")/history").json["items"]
        #expect(history.array?.map { $0["to"].string } == ["pending", "confirmed", "in-progress", "completed"])
        expect(history[1], has: ["actorId": "staff", "actorRole": "staff"])
        try service.expectExactCounts()
    }

    /// R-1: final states stay final, only the shop confirms, and setting the current status changes nothing.
    @Test func moves_thatTheMachineDoesNotKnow_areRefused() async throws {
        let (user, staff) = (service.client(as: .user("u1")), service.client(as: .staff(of: "s1")))
        let made = try await user.post("/v1/bookings", Self.draft()).json
        let unknown = try await Self.move(staff, made, to: ["status": "completed"])
        #expect(unknown.refusal == "409 booking.invalid_transition")
        #expect(unknown.json["allowed"].array?.compactMap(\.string) == ["confirmed", "cancelled"])
        #expect(
            try await Self.move(user, made, to: ["status": "confirmed"]).json["code"].string == "booking.staff_only")
        let same = try await Self.move(user, made, to: ["status": "pending"])
        #expect(same.status == 200)
        #expect(same.json["version"].int == 1)
        let cancelled = try await Self.move(user, made, to: ["status": "cancelled"])
        #expect(cancelled.status == 200)
        let final = try await Self.move(staff, cancelled.json, to: ["status": "pending"])
        #expect(final.status == 409)
        #expect(final.json["allowed"].array?.isEmpty == true)
        let changed = try await Self.move(staff, cancelled.json, to: ["durationMinutes": 45])
        #expect(changed.json["code"].string == "booking.not_changeable")
    }

    /// 428 without If-Match (RFC 6585 §3), 412 for a stale one (RFC 9110 §15.5.13).
    @Test func ifMatch_guardsEveryChange() async throws {
        let user = service.client(as: .user("u1"))
        let made = try await user.post("/v1/bookings", Self.draft()).json
        let path = "/v1/bookings/\(made["id"].string ?? "")"
        #expect(try await user.patch(path, ["status": "cancelled"]).status == 428)
        // A tag needs a version and the current epoch (R-34).
        for tag in [Self.tag(of: made, version: 2), "\"x\"", "0", "\"1\"", "\"1-zzzzzz\"", "1-", "-"] {
            let refused = try await user.patch(path, ["status": "cancelled"], headers: ["If-Match": tag])
            #expect(refused.refusal == "412 precondition.stale", "\(tag)")
        }
        let weak = "W/\(Self.tag(of: made))"
        let changed = try await user.patch(path, ["status": "cancelled"], headers: ["If-Match": weak])
        #expect(changed.status == 200)
        let tag = try #require(changed[header: "ETag"])
        #expect(try await user.get(path, headers: ["If-None-Match": tag]).status == 304)
    }

    @Test func overlaps_areFound_atCreationConfirmationAndChange() async throws {
        let (user, staff) = (service.client(as: .user("u1")), service.client(as: .staff(of: "s1")))
        let first = try await user.post("/v1/bookings", Self.draft()).json
        for start in ["2026-01-10T08:31:00Z", "2026-01-10T09:00:00Z", "2026-01-10T09:29:00Z"] {
            let taken = try await service.client(as: .user("u2")).post("/v1/bookings", Self.draft(start))
            #expect(taken.refusal == "409 booking.overlap", "\(start)")
        }
        // Times are half-open: one booking may begin when another ends. The other barber is free.
        for start in ["2026-01-10T08:30:00Z", "2026-01-10T09:30:00Z"] {
            #expect(try await user.post("/v1/bookings", Self.draft(start)).status == 201, "\(start)")
        }
        #expect(try await user.post("/v1/bookings", Self.draft(barber: "b2")).status == 201)
        // A booking for any barber reserves no time until it is assigned one.
        let any = try await user.post("/v1/bookings", Self.draft(barber: nil)).json
        let confirmed = try await Self.move(staff, any, to: ["status": "confirmed", "barberId": "b1"])
        #expect(confirmed.refusal == "409 booking.overlap")
        let moved = try await Self.move(user, first, to: ["durationMinutes": 31])
        #expect(moved.status == 409)
        #expect(try await Self.move(user, first, to: ["status": "cancelled"]).status == 200)
        #expect(try await Self.move(staff, any, to: ["status": "confirmed", "barberId": "b1"]).status == 200)
        try service.expectExactCounts()
    }

    /// No barber is double-booked: 10,000 concurrent attempts for 100 time slots. A contributor's run makes fewer.
    @Test func tenThousandAttempts_giveEachTimeOnce() async throws {
        let slots = effort(quick: 25, full: 100, long: 100)
        let statuses = try await concurrently(0..<slots) { worker -> [Int] in
            let client = service.client(as: .user("w\(worker)"))
            var statuses: [Int] = []
            for attempt in 0..<slots {
                let start = try Self.movedStart(minutes: Int64((attempt + worker) % slots * 10)).rfc3339
                statuses.append(try await client.post("/v1/bookings", Self.draft(start, minutes: 10)).status)
            }
            return statuses
        }.joined()
        #expect(statuses.count { $0 == 201 } == slots)
        #expect(statuses.count { $0 == 409 } == slots * (slots - 1))
        try service.expectExactCounts()
    }

    /// The second line of defence: the database refuses overlaps that the service's check would miss.
    @Test func database_refusesOverlaps_andChangesOfHistory() async throws {
        let made = try await service.client(as: .user("u1")).post("/v1/bookings", Self.draft()).json
        let id = try #require(made["id"].string)
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
        _ = try await service.client(as: .service()).put("/v1/shops/s2", ["name": "Other", "timeZone": "UTC"])
        let made = try await service.client(as: .user("u1")).post("/v1/bookings", Self.draft()).json
        let path = "/v1/bookings/\(made["id"].string ?? "")"
        let strangers: [TestService.Identity] = [
            .user("u2"), .user("u1", tenant: "t2"), .staff(of: "s2"), .service(tenant: "t2"),
        ]
        for stranger in strangers {
            let client = service.client(as: stranger)
            #expect(try await client.get(path).status == 404, "\(stranger)")
            #expect(try await client.get(path + "/history").status == 404, "\(stranger)")
            #expect(try await Self.move(client, made, to: ["status": "cancelled"]).status == 404, "\(stranger)")
            #expect(try await client.get("/v1/bookings").json["items"].array?.isEmpty == true, "\(stranger)")
        }
        for friend in [TestService.Identity.user("u1"), .staff(of: "s1"), .admin, .service()] {
            #expect(try await service.client(as: friend).get(path).status == 200, "\(friend)")
        }
        let foreign = try await service.client(as: .staff(of: "s2")).put(
            "/v1/shops/s1", ["name": "X", "timeZone": "UTC"])
        #expect(foreign.status == 403, "\(foreign.text)")
        #expect(
            try await service.client(as: .user("u1")).put("/v1/shops/s1", ["name": "X", "timeZone": "UTC"]).status
                == 403)
        let forOther: JSON = [
            "shopId": "s1", "service": "cut", "scheduledStart": .string(Self.nine), "durationMinutes": 30,
            "userId": "u2",
        ]
        #expect(try await service.client(as: .user("u1")).post("/v1/bookings", forOther).status == 422)
    }

    @Test func badBookings_areRefusedWithTheirPlaces() async throws {
        let user = service.client(as: .user("u1"))
        let wrong = try await user.post(
            "/v1/bookings", ["shopId": "s1", "durationMinutes": 4, "scheduledStart": "soon"])
        #expect(wrong.status == 422)
        let pointers = Set(wrong.json["errors"].array?.compactMap { $0["pointer"].string } ?? [])
        #expect(pointers == ["/service", "/durationMinutes", "/scheduledStart"])
        #expect(
            try await user.post("/v1/bookings", Self.draft(barber: "nobody")).json["errors"][0]["pointer"].string
                == "/barberId")
        let tiered = TestService.Identity(subject: "u1", claims: ["tier": "standard"])
        var draft = try #require(Self.draft().object)
        draft["tier"] = "blackCard"
        #expect(try await service.client(as: tiered).post("/v1/bookings", .object(draft)).status == 422)
        #expect(try await user.get("/v1/bookings?day=2026-01-10").status == 422)
        #expect(try await user.get("/v1/bookings?shopId=s1&day=2026-02-30").status == 422)
    }

    /// R-29: without the claim in the token, the black card is only a request.
    @Test func blackCard_needsItsClaim() async throws {
        func book(_ service: TestService, _ identity: TestService.Identity, _ more: [String: JSON] = [:]) async throws
            -> ServiceAnswer
        {
            let draft = (Self.draft(barber: nil).object ?? [:]).merging(["tier": "blackCard"]) { $1 }
            return try await service.client(as: identity).post("/v1/bookings", .object(draft.merging(more) { $1 }))
        }
        #expect(try await book(service, .user("u1")).refusal == "403 booking.tier_not_claimed")
        let claims: [String: JSON] = ["tier": "blackCard"]
        let holder = try await book(service, TestService.Identity(subject: "u1", claims: claims))
        #expect(holder.status == 201)
        #expect(holder.json["tier"].string == "blackCard")
        for identity in [TestService.Identity.staff(of: "s1"), .service()] {
            #expect(try await book(service, identity, ["userId": "u1"]).status == 201)
        }
        let trusting = try await Self.shop(["selfDeclared": "true"])
        #expect(try await book(trusting, .user("u1")).json["tier"].string == "blackCard")
    }

    @Test func bookingsInThePast_areCreatedByStaffOnly() async throws {
        let user = service.client(as: .user("u1"))
        let past = Self.draft("2026-01-10T07:50:00Z", barber: nil)
        let refused = try await user.post("/v1/bookings", past)
        #expect(refused.refusal == "403 booking.in_past")
        #expect(refused.json["errors"][0]["pointer"].string == "/scheduledStart")
        // A start of "now" is slightly in the past when the request arrives.
        #expect(try await user.post("/v1/bookings", Self.draft("2026-01-10T07:59:00Z", barber: nil)).status == 201)
        let made = try await user.post("/v1/bookings", Self.draft()).json
        let moved = try await Self.move(user, made, to: ["scheduledStart": "2026-01-10T07:00:00Z"])
        #expect(moved.refusal == "403 booking.in_past")
        for identity in [TestService.Identity.staff(of: "s1"), .service()] {
            var draft = past.object ?? [:]
            draft["userId"] = "u1"
            #expect(try await service.client(as: identity).post("/v1/bookings", .object(draft)).status == 201)
        }
        service.clock.advance(seconds: 4 * 3600)
        // Changes to other fields do not check the time.
        let later = service.client(as: .user("u1"))
        #expect(try await Self.move(later, made, to: ["durationMinutes": 25]).status == 200)
    }

    /// The day follows the shop's time zone: 23:30 UTC is the next day in Berlin.
    @Test func day_isThatOfTheShopsTimeZone() async throws {
        let user = service.client(as: .user("u1"))
        for start in ["2026-01-10T22:30:00Z", "2026-01-10T23:30:00Z"] {
            #expect(try await user.post("/v1/bookings", Self.draft(start)).status == 201)
        }
        func starts(_ day: String) async throws -> [String] {
            let page = try await user.get("/v1/bookings?shopId=s1&day=\(day)")
            return page.json["items"].array?.compactMap { $0["scheduledStart"].string } ?? []
        }
        #expect(try await starts("2026-01-10") == ["2026-01-10T22:30:00.000Z"])
        #expect(try await starts("2026-01-11") == ["2026-01-10T23:30:00.000Z"])
        let page = try await user.get("/v1/bookings?limit=1")
        let rest = try await user.get("/v1/bookings?limit=1&cursor=\(page.json["next"].string ?? "")")
        #expect(rest.json["items"][0]["scheduledStart"].string == "2026-01-10T22:30:00.000Z")
        #expect(rest.json["next"].isNull)
    }
}
