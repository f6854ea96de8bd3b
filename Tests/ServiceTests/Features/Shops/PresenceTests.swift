import BellhopClient
import Database
import Domain
import Foundation
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
        try await service.client(as: .service()).getPresenceCode(id: shop).value.code
    }

    private static func asking(_ overrides: [String: String] = [:]) async throws -> TestService {
        let service = try await DJTests.open(overrides)
        #expect(
            try await service.client(as: .staff(of: "s1")).replacePresenceRule(id: "s1", .init(codeRequired: true))
                .status == 200)
        return service
    }

    /// Presence lasts ten minutes. Showing the code again renews it; leaving, or being at another shop, ends it.
    @Test func presence_livesTenMinutes_andIsAtOneShop() async throws {
        let service = try await DJTests.open()
        try await service.client(as: .service()).replaceShop(id: "s2", .init(name: "Other", timeZone: "UTC"))
        let ada = service.client("ada")
        #expect(try await ada.getPresence(id: "s1").value.isPresent == false)
        let arrived = try await ada.showPresence(id: "s1")
        #expect(arrived.value.isPresent && arrived.value.source == .claim)
        #expect(arrived.value.since == moment("2026-01-10T20:00:00.000Z"))
        #expect(arrived.value.expiresAt == moment("2026-01-10T20:10:00.000Z"))
        service.clock.advance(seconds: 300)
        let renewed = try await ada.showPresence(id: "s1", .init())
        #expect(renewed.value.since == moment("2026-01-10T20:00:00.000Z"))
        #expect(renewed.value.expiresAt == moment("2026-01-10T20:15:00.000Z"))
        service.clock.advance(seconds: 599)
        #expect(try await ada.getPresence(id: "s1").value.isPresent)
        service.clock.advance(seconds: 1)
        #expect(try await ada.getPresence(id: "s1").value.expiresAt == nil)
        let back = try await ada.showPresence(id: "s1")
        #expect(back.value.since == moment("2026-01-10T20:15:00.000Z"))
        #expect(try await ada.showPresence(id: "s2").value.isPresent)
        #expect(try await ada.getPresence(id: "s1").value.isPresent == false)
        // Leaving one shop does not end presence at another.
        #expect(try await ada.endPresence(id: "s1").status == 204)
        #expect(try await ada.getPresence(id: "s2").value.isPresent)
        #expect(try await ada.endPresence(id: "s2").status == 204)
        #expect(try await ada.getPresence(id: "s2").value.isPresent == false)
        #expect(
            try await service.call("PUT", Self.me, as: .user("ada"), ["cod": "x"]).json["errors"][0]["pointer"].string
                == "/cod")
    }

    /// The current code and the previous one are accepted at their own shop only.
    @Test func codes_rotate_andTwoAreValid() async throws {
        let backend = service.client(as: .service())
        try await backend.replaceShop(id: "s2", .init(name: "Other", timeZone: "UTC"))
        try await backend.replacePresenceRule(id: "s2", .init(codeRequired: true))
        let ada = service.client("ada")
        let bare = try await problem(of: await ada.showPresence(id: "s1"))
        #expect(bare.refusal == "403 presence.code_required")
        let code = try await Self.code(service)
        #expect(code.count == 6)
        #expect(try await Self.code(service, shop: "s2") != code)
        let arrived = try await ada.showPresence(id: "s1", .init(code: code.lowercased()))
        #expect(arrived.value.source == .code && arrived.value.codeRequired)
        #expect(try await status(of: await ada.showPresence(id: "s2", .init(code: code))) == 403)
        service.clock.advance(seconds: 60)
        let next = try await Self.code(service)
        #expect(next != code)
        for valid in [code, next] { #expect(try await ada.showPresence(id: "s1", .init(code: valid)).status == 200) }
        service.clock.advance(seconds: 60)
        let stale = try await problem(of: await ada.showPresence(id: "s1", .init(code: code)))
        #expect(stale.refusal == "403 presence.wrong_code")
        #expect(try await ada.showPresence(id: "s1", .init(code: next)).status == 200)
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
            let answer = try await service.call("GET", "\(Self.rule)/code", as: identity)
            #expect(answer.status == status, "\(identity)")
            #expect(status != 200 || answer[header: "Cache-Control"] == "no-store")
        }
        for identity in [TestService.Identity.user("ada"), .staff(of: "s2")] {
            let stranger = service.client(as: identity)
            #expect(
                try await status(of: await stranger.replacePresenceRule(id: "s1", .init(codeRequired: false))) == 403)
        }
        #expect(try await service.client("ada").getPresenceRule(id: "s1").value.codeRequired)
        let staff = service.client(as: .staff(of: "s1"))
        #expect(try await staff.replacePresenceRule(id: "s1", .init(codeRequired: false)).status == 200)
        #expect(try await problem(of: await staff.getPresenceCode(id: "s1")).code == .presenceNoCode)
    }

    /// Guesses are limited per user over all shops, even if the user knows a valid code of some shop.
    @Test func guesses_areBounded() async throws {
        let (ada, code) = (service.client("ada"), try await Self.code(service))
        let wrong = code == "000000" ? "000001" : "000000"
        for number in 0..<PresenceLimits.wrongCodesMax {
            if number == 5 { #expect(try await ada.showPresence(id: "s1", .init(code: code)).status == 200) }
            let guess = number % 2 == 0 ? wrong : "no code at all"
            let refusal = try await refusal(of: await ada.showPresence(id: "s1", .init(code: guess)))
            #expect(refusal == "403 presence.wrong_code", "\(number)")
        }
        for code in [wrong, code] {
            let locked = try await problem(of: await ada.showPresence(id: "s1", .init(code: code)))
            #expect(locked.refusal == "429 presence.too_many_codes")
            #expect(locked.retryAfter == .seconds(600))
        }
        #expect(try await service.client("ben").showPresence(id: "s1", .init(code: code)).status == 200)
        service.clock.advance(seconds: PresenceLimits.wrongCodesSeconds)
        let later = try await Self.code(service)
        #expect(try await ada.showPresence(id: "s1", .init(code: later)).status == 200)
    }

    /// Concurrent wrong codes count as well.
    @Test func guesses_atOnce_areBoundedToo() async throws {
        let ada = service.client("ada")
        let statuses = try await concurrently(0..<40) { _ in
            try await status(of: await ada.showPresence(id: "s1", .init(code: "no code")))
        }
        #expect(statuses.count { $0 == 403 } == PresenceLimits.wrongCodesMax)
        #expect(statuses.count { $0 == 429 } == 40 - PresenceLimits.wrongCodesMax)
    }

    /// a user whose booking is in progress is present until it ends.
    @Test func bookingInProgress_isPresence() async throws {
        let (ada, staff) = (service.client("ada"), service.client(as: .staff(of: "s1")))
        #expect(try await staff.addTrack(id: "s1", DJTests.track("t1")).status == 201)
        let waiting = try await staff.addWalkIn(id: "s1", .init(service: "cut", userId: "ada")).value
        #expect(try await status(of: await ada.vote(.up, on: "t1")) == 403)
        let serving = try await staff.change(waiting, .init(status: .inProgress))
        #expect(serving.status == 200)
        let presence = try await ada.getPresence(id: "s1").value
        #expect(presence.isPresent && presence.source == .booking)
        #expect(try await ada.vote(.up, on: "t1").status == 200)
        // A user cannot leave while being served.
        #expect(try await ada.endPresence(id: "s1").status == 204)
        #expect(try await ada.vote(.down, on: "t1").status == 200)
        let changed = try await staff.change(serving.value, .init(durationMinutes: 45))
        #expect(try await ada.getPresence(id: "s1").value.isPresent)
        #expect(try await staff.change(changed.value, .init(status: .completed)).status == 200)
        #expect(try await ada.getPresence(id: "s1").value.isPresent == false)
        #expect(try await status(of: await ada.vote(.up, on: "t1")) == 403)
    }

    /// Expired presences are deleted.
    @Test func pastPresences_areForgotten() async throws {
        let (ada, code) = (service.client("ada"), try await Self.code(service))
        #expect(try await ada.showPresence(id: "s1", .init(code: code)).status == 200)
        #expect(try await status(of: await ada.showPresence(id: "s1", .init(code: "wrong"))) == 403)
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
