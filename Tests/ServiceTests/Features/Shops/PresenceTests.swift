import BellhopClient
import Database
import Domain
import Foundation
import Rows
import TestSupport
import Testing

@testable import Service

/// Presence over real HTTP (R-CUT-D-2, R-13).
@Suite(.timed) struct PresenceTests {
    let service: TestService

    init() async throws { service = try await Self.asking() }

    private static let me = "/v1/shops/s1/presence/me"
    private static let rule = "/v1/shops/s1/presence"

    private static func code(_ service: TestService, shop: String = "s1") async throws -> String {
        let answer = try await service.client(as: .service()).get("/v1/shops/\(shop)/presence/code")
        #expect(answer.status == 200, "\(answer.problem)")
        return try #require(answer.json["code"].string)
    }

    private static func asking(_ overrides: [String: String] = [:]) async throws -> TestService {
        let service = try await DJTests.open(overrides)
        #expect(try await service.client(as: .staff(of: "s1")).put(rule, ["codeRequired": true]).status == 200)
        return service
    }

    /// Presence lasts ten minutes. Showing the code again renews it; leaving, or being at another shop, ends it.
    @Test func presence_livesTenMinutes_andIsAtOneShop() async throws {
        let service = try await DJTests.open()
        _ = try await service.client(as: .service()).put("/v1/shops/s2", ["name": "Other", "timeZone": "UTC"])
        let ada = service.client(as: .user("ada"))
        #expect(try await ada.get(Self.me).json["isPresent"].bool == false)
        let arrived = try await ada.put(Self.me)
        expect(arrived.json, has: ["isPresent": true, "source": "claim", "since": "2026-01-10T20:00:00.000Z"])
        expect(arrived.json, has: ["expiresAt": "2026-01-10T20:10:00.000Z"])
        service.clock.advance(seconds: 300)
        let renewed = try await ada.put(Self.me, [:])
        expect(renewed.json, has: ["since": "2026-01-10T20:00:00.000Z", "expiresAt": "2026-01-10T20:15:00.000Z"])
        service.clock.advance(seconds: 599)
        #expect(try await ada.get(Self.me).json["isPresent"].bool == true)
        service.clock.advance(seconds: 1)
        #expect(try await ada.get(Self.me).json["expiresAt"].isNull)
        let back = try await ada.put(Self.me)
        #expect(back.json["since"].string == "2026-01-10T20:15:00.000Z")
        #expect(try await ada.put("/v1/shops/s2/presence/me").json["isPresent"].bool == true)
        #expect(try await ada.get(Self.me).json["isPresent"].bool == false)
        // Leaving one shop does not end presence at another.
        #expect(try await ada.delete(Self.me).status == 204)
        #expect(try await ada.get("/v1/shops/s2/presence/me").json["isPresent"].bool == true)
        #expect(try await ada.delete("/v1/shops/s2/presence/me").status == 204)
        #expect(try await ada.get("/v1/shops/s2/presence/me").json["isPresent"].bool == false)
        #expect(try await ada.put(Self.me, ["cod": "x"]).json["errors"][0]["pointer"].string == "/cod")
    }

    /// The current code and the previous one are accepted at their own shop only.
    @Test func codes_rotate_andTwoAreValid() async throws {
        let backend = service.client(as: .service())
        _ = try await backend.put("/v1/shops/s2", ["name": "Other", "timeZone": "UTC"])
        _ = try await backend.put("/v1/shops/s2/presence", ["codeRequired": true])
        let ada = service.client(as: .user("ada"))
        let bare = try await ada.put(Self.me)
        #expect(bare.refusal == "403 presence.code_required")
        let code = try await Self.code(service)
        #expect(code.count == 6)
        #expect(try await Self.code(service, shop: "s2") != code)
        let arrived = try await ada.put(Self.me, ["code": .string(code.lowercased())])
        expect(arrived.json, has: ["source": "code", "codeRequired": true])
        #expect(try await ada.put("/v1/shops/s2/presence/me", ["code": .string(code)]).status == 403)
        service.clock.advance(seconds: 60)
        let next = try await Self.code(service)
        #expect(next != code)
        for valid in [code, next] { #expect(try await ada.put(Self.me, ["code": .string(valid)]).status == 200) }
        service.clock.advance(seconds: 60)
        let stale = try await ada.put(Self.me, ["code": .string(code)])
        #expect(stale.refusal == "403 presence.wrong_code")
        #expect(try await ada.put(Self.me, ["code": .string(next)]).status == 200)
        // The code is the same after a restart, because its secret is stored in the database.
        let shown = try await Self.code(service)
        try await service.restart()
        #expect(try await Self.code(service) == shown)
    }

    /// Only people of the shop may read the code.
    @Test func code_isVisibleToTheShopsStaffAndBackends() async throws {
        for (identity, status) in [
            (TestService.Identity.user("ada"), 403), (.staff(of: "s2"), 403), (.service(tenant: "t2"), 404),
            (.staff(of: "s1"), 200), (.admin, 200), (.service(), 200),
        ] {
            let answer = try await service.client(as: identity).get("\(Self.rule)/code")
            #expect(answer.status == status, "\(identity)")
            #expect(status != 200 || answer[header: "Cache-Control"] == "no-store")
        }
        #expect(try await service.client(as: .user("ada")).put(Self.rule, ["codeRequired": false]).status == 403)
        #expect(try await service.client(as: .staff(of: "s2")).put(Self.rule, ["codeRequired": false]).status == 403)
        #expect(try await service.client(as: .user("ada")).get(Self.rule).json["codeRequired"].bool == true)
        let staff = service.client(as: .staff(of: "s1"))
        #expect(try await staff.put(Self.rule, ["codeRequired": false]).status == 200)
        #expect(try await staff.get("\(Self.rule)/code").json["code"].string == "presence.no_code")
    }

    /// Guesses are limited per user over all shops, even if the user knows a valid code of some shop.
    @Test func guesses_areBounded() async throws {
        let (ada, code) = (service.client(as: .user("ada")), try await Self.code(service))
        let wrong: JSON = ["code": .string(code == "000000" ? "000001" : "000000")]
        for number in 0..<PresenceLimits.wrongCodesMax {
            if number == 5 { #expect(try await ada.put(Self.me, ["code": .string(code)]).status == 200) }
            let refused = try await ada.put(Self.me, number % 2 == 0 ? wrong : ["code": "no code at all"])
            #expect(refused.refusal == "403 presence.wrong_code", "\(number)")
        }
        for body in [wrong, ["code": .string(code)]] {
            let locked = try await ada.put(Self.me, body)
            #expect(locked.refusal == "429 presence.too_many_codes")
            #expect(locked[header: "Retry-After"] == "600")
        }
        #expect(try await service.client(as: .user("ben")).put(Self.me, ["code": .string(code)]).status == 200)
        service.clock.advance(seconds: PresenceLimits.wrongCodesSeconds)
        let later = try await Self.code(service)
        #expect(try await ada.put(Self.me, ["code": .string(later)]).status == 200)
    }

    /// Concurrent wrong codes count as well.
    @Test func guesses_atOnce_areBoundedToo() async throws {
        let ada = service.client(as: .user("ada"))
        let statuses = try await concurrently(0..<40) { _ in try await ada.put(Self.me, ["code": "no code"]).status }
        #expect(statuses.count { $0 == 403 } == PresenceLimits.wrongCodesMax)
        #expect(statuses.count { $0 == 429 } == 40 - PresenceLimits.wrongCodesMax)
    }

    /// a user whose booking is in progress is present until it ends.
    @Test func bookingInProgress_isPresence() async throws {
        let (ada, staff) = (service.client(as: .user("ada")), service.client(as: .staff(of: "s1")))
        #expect(try await staff.post("\(DJTests.session)/tracks", DJTests.track("t1")).status == 201)
        let walkIn: JSON = ["service": "cut", "userId": "ada"]
        let waiting = try await staff.post("/v1/shops/s1/queue/entries", walkIn).json
        #expect(try await DJTests.vote(ada, "t1", "up").status == 403)
        let serving = try await BookingsTests.move(staff, waiting, to: ["status": "in-progress"])
        #expect(serving.status == 200)
        let presence = try await ada.get(Self.me).json
        expect(presence, has: ["isPresent": true, "source": "booking"])
        #expect(try await DJTests.vote(ada, "t1", "up").status == 200)
        // A user cannot leave while being served.
        #expect(try await ada.delete(Self.me).status == 204)
        #expect(try await DJTests.vote(ada, "t1", "down").status == 200)
        let changed = try await BookingsTests.move(staff, serving.json, to: ["durationMinutes": 45])
        #expect(try await ada.get(Self.me).json["isPresent"].bool == true)
        #expect(try await BookingsTests.move(staff, changed.json, to: ["status": "completed"]).status == 200)
        #expect(try await ada.get(Self.me).json["isPresent"].bool == false)
        #expect(try await DJTests.vote(ada, "t1", "up").status == 403)
    }

    /// Expired presences are deleted.
    @Test func pastPresences_areForgotten() async throws {
        let (ada, code) = (service.client(as: .user("ada")), try await Self.code(service))
        #expect(try await ada.put(Self.me, ["code": .string(code)]).status == 200)
        #expect(try await ada.put(Self.me, ["code": "wrong"]).status == 403)
        let audit = Unscoped.audit("a test counts")
        try await eventually("no expired rows are left", step: { service.clock.advance(seconds: 60) }) {
            try service.app.store.read { db in
                let present = try db.integer("SELECT count(*) FROM \(DJFeature.presences, unscoped: audit)")
                let guesses = try db.integer("SELECT count(*) FROM \(DJFeature.attempts, unscoped: audit)")
                return present == 0 && guesses == 0
            }
        }
    }
}
