import BellhopClient
import Foundation
import Rows
import TestSupport
import Testing
import Values

@testable import Service

/// Queue waits over real HTTP (R-CUT-Q-1 to R-CUT-Q-6; ).
@Suite(.timed) struct QueueTests {
    let service: TestService

    init() async throws { service = try await BookingsTests.shop() }

    private static func queue(_ service: TestService) async throws -> JSON {
        try await service.client(as: .user("anybody")).get("/v1/shops/s1/queue").json
    }

    private static func confirm(_ service: TestService, _ draft: JSON) async throws -> JSON {
        let backend = service.client(as: .service())
        var draft = draft.object ?? [:]
        draft["userId"] = draft["userId"] ?? "u1"
        let made = try await backend.post("/v1/bookings", .object(draft))
        #expect(made.status == 201, "\(made.problem)")
        return try await BookingsTests.move(backend, made.json, to: ["status": "confirmed"]).json
    }

    /// R-CUT-Q-1 to R-CUT-Q-4 and R-3: today's confirmed bookings ÷ barbers × average duration; the black card never
    /// waits longer.
    @Test func numbers_areTheDocuments_withTheBetterEstimateBeside() async throws {
        for start in ["2026-01-10T08:00:00Z", "2026-01-10T08:30:00Z", "2026-01-10T17:00:00Z"] {
            _ = try await Self.confirm(service, BookingsTests.draft(start))
        }
        // Tomorrow's bookings, in the shop's time zone, do not count today.
        _ = try await Self.confirm(service, BookingsTests.draft("2026-01-10T23:00:00Z"))
        let status = try await Self.queue(service)
        expect(status, has: ["queueLength": 3, "currentlyServing": 2, "inService": 0, "state": "open"])
        expect(status, has: ["avgWaitTime": 45])
        expect(status["estimatedWaitTimes"], has: ["standard": 45, "blackCard": 18])
        #expect((status["estimate"]["standard"]["p50"].int ?? -1) <= (status["estimate"]["standard"]["p90"].int ?? -2))
        #expect(status["updatedAt"].string == "2026-01-10T08:00:00.000Z")
    }

    ///
    @Test func shopWithoutBarbers_isUnstaffed() async throws {
        let backend = service.client(as: .service())
        _ = try await Self.confirm(service, BookingsTests.draft("2026-01-10T08:00:00Z"))
        for barber in ["b1", "b2"] { _ = try await backend.put("/v1/shops/s1/barbers/\(barber)", ["onDuty": false]) }
        let status = try await Self.queue(service)
        expect(status, has: ["state": "unstaffed", "estimate": nil, "avgWaitTime": 0, "queueLength": 1])
        let entry = try await backend.get("/v1/shops/s1/queue/entries").json["items"][0]
        expect(entry, has: ["position": 1, "wait": nil])
        #expect(try await backend.delete("/v1/shops/s1/barbers/b1").json["code"].string == "barber.booked")
        #expect(try await backend.delete("/v1/shops/s1/barbers/b2").status == 204)
    }

    /// customers due within 15 minutes are served before a newcomer, later ones are not.
    @Test func newcomer_waitsForCustomersWhoAreDue() async throws {
        let backend = service.client(as: .service())
        _ = try await backend.put("/v1/shops/s1/barbers/b2", ["onDuty": false])
        #expect(try await Self.queue(service)["estimate"]["standard"]["p50"].int == 0)
        for _ in 0..<2 {
            _ = try await Self.confirm(service, BookingsTests.draft("2026-01-10T08:40:00Z", barber: nil))
        }
        #expect(try await Self.queue(service)["estimate"]["standard"]["p50"].int == 0)
        service.clock.advance(seconds: 35 * 60)
        let estimate = try await Self.queue(service)["estimate"]
        #expect((estimate["standard"]["p50"].int ?? 0) > 35)
        #expect((estimate["blackCard"]["p50"].int ?? 99) == 0)
    }

    /// A shop whose only barber is on a break is neither open nor closed.
    @Test func shopWhoseBarbersAreOnABreak_isPaused_withAnEstimate() async throws {
        let backend = service.client(as: .service())
        _ = try await backend.put("/v1/shops/s1/barbers/b2", ["onDuty": false])
        _ = try await backend.put("/v1/shops/s1/barbers/b1", ["onDuty": true, "onBreak": true])
        let status = try await Self.queue(service)
        expect(status, has: ["state": "paused", "currentlyServing": 1])
        expect(status["estimate"]["standard"], has: ["p50": 15, "p90": 15])
        service.clock.advance(seconds: 12 * 60)
        #expect(try await Self.queue(service)["estimate"]["standard"]["p50"].int == 5)
        _ = try await service.client(as: .service()).put("/v1/shops/s1/barbers/b1", ["onDuty": true])
        let open = try await Self.queue(service)
        expect(open, has: ["state": "open"])
        #expect(open["estimate"]["standard"]["p50"].int == 0)
    }

    /// a setting selects the literal formula, whose minimum of 5 can exceed the standard wait.
    @Test func literalFormula_isASetting() async throws {
        #expect(try await Self.queue(service)["estimatedWaitTimes"]["blackCard"].int == 0)
        let literal = try await BookingsTests.shop(["literalBlackCardFormula": "true"])
        #expect(try await Self.queue(literal)["estimatedWaitTimes"]["blackCard"].int == 5)
    }

    /// R-CUT-Q-5: the queue is never older than a minute, even without activity. R-CUT-Q-6: watchers receive changes
    /// caused by time alone.
    @Test func queue_isNeverOlderThanAMinute() async throws {
        _ = try await service.client(as: .service()).put("/v1/shops/s1/barbers/b2", ["onDuty": false])
        let stream = try await service.listen(as: .user("u2"), topics: ["queue:s1"])
        _ = try await stream.next("queue:update")
        let booking = try await Self.confirm(service, BookingsTests.draft("2026-01-10T08:00:00Z"))
        _ = try await BookingsTests.move(service.client(as: .service()), booking, to: ["status": "in-progress"])
        while try await stream.next("queue:update").json["inService"].int != 1 {}
        service.clock.advance(seconds: 59)
        let soon = try #require(try await Self.queue(service)["updatedAt"].string.flatMap { Timestamp(rfc3339: $0) })
        #expect(service.clock.now.seconds - soon.seconds <= 60)
        service.clock.advance(seconds: 600)
        let later = try #require(try await Self.queue(service)["updatedAt"].string.flatMap { Timestamp(rfc3339: $0) })
        #expect(service.clock.now.seconds - later.seconds <= 60)
        // The service is ten minutes closer to its end. The tick publishes this without any request.
        #expect(try await stream.next("queue:update").json["inService"].int == 1)
    }

    /// Walk-ins, lanes and positions. A customer sees only their own entry.
    @Test func line_hasPlacesAndWaits() async throws {
        let staff = service.client(as: .staff(of: "s1"))
        _ = try await staff.put("/v1/shops/s1/barbers/b2", ["onDuty": false])
        func walkIn(_ name: String, _ tier: String, user: String? = nil) async throws -> JSON {
            let body: JSON = [
                "customerName": .string(name), "service": "cut", "tier": .string(tier),
                "userId": user.map(JSON.string) ?? .null,
            ]
            let answer = try await staff.post("/v1/shops/s1/queue/entries", body)
            #expect(answer.status == 201, "\(answer.problem)")
            return answer.json
        }
        let first = try await walkIn("Kim", "standard")
        expect(first, has: ["source": "walkIn", "status": "confirmed"])
        #expect(!first["arrivedAt"].isNull)
        _ = try await walkIn("Lou", "standard", user: "lou")
        _ = try await walkIn("Max", "blackCard")
        let entries = try await staff.get("/v1/shops/s1/queue/entries").json["items"].array ?? []
        #expect(entries.map { $0["customerName"].string } == ["Max", "Kim", "Lou"])
        #expect(entries.map { $0["position"].int } == [1, 2, 3])
        let waits = entries.compactMap { $0["wait"]["p50"].int }
        #expect(waits == waits.sorted())
        #expect(waits.count == 3)
        let own = try await service.client(as: .user("lou")).get("/v1/shops/s1/queue/entries").json["items"].array ?? []
        try #require(own.count == 1)
        #expect(own[0]["position"].int == 3)
        #expect(
            try await service.client(as: .user("nobody")).get("/v1/shops/s1/queue/entries").json["items"].array?.isEmpty
                == true)
        #expect(
            try await service.client(as: .user("lou")).post("/v1/shops/s1/queue/entries", ["service": "cut"]).status
                == 403)
        #expect(
            try await service.client(as: .staff(of: "s2")).post("/v1/shops/s1/queue/entries", ["service": "cut"]).status
                == 403)
    }

    /// The accuracy of past estimates: they are made at arrival and compared when the service begins.
    @Test func accuracy_comparesEstimates_withWhatCame() async throws {
        var staff = service.client(as: .staff(of: "s1"))
        _ = try await staff.put("/v1/shops/s1/barbers/b2", ["onDuty": false])
        var line: [JSON] = []
        for _ in 0..<3 { line.append(try await staff.post("/v1/shops/s1/queue/entries", ["service": "cut"]).json) }
        for booking in line {
            let started = try await BookingsTests.move(staff, booking, to: ["status": "in-progress"])
            service.clock.advance(seconds: 25 * 60)
            staff = service.client(as: .staff(of: "s1"))
            #expect(try await BookingsTests.move(staff, started.json, to: ["status": "completed"]).status == 200)
        }
        let accuracy = try await staff.get("/v1/shops/s1/queue/accuracy").json
        #expect(accuracy["standard"]["n"].int == 3)
        expect(accuracy["blackCard"], has: ["n": 0, "meanAbsoluteError": nil])
        #expect(accuracy["standard"]["formula"]["n"].int == 3)
        #expect((accuracy["standard"]["meanAbsoluteError"].double ?? 99) < 10)
        #expect(accuracy["standard"]["shareUnderP90"].double == 1)
        #expect(try await service.client(as: .user("u1")).get("/v1/shops/s1/queue/accuracy").status == 403)
        // Three services of 25 minutes pull the average below the prior of 30.
        _ = try await staff.post("/v1/shops/s1/queue/entries", ["service": "cut"])
        #expect(try await Self.queue(service)["avgWaitTime"].int == 29)
    }
}
