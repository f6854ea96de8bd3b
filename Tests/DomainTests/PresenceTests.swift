import TestSupport
import Testing

@testable import Domain
@testable import Values

/// The users present at a shop, and the code that proves presence (R-CUT-D-2, R-13).
@Suite(.timed) struct PresenceTests {
    private let noon = Timestamp(microseconds: 1_767_960_000_000_000)

    @Test(arguments: [
        ("0A1B2C", "0A1B2C"), ("0a1b2c", "0A1B2C"), (" 0a1-b2c ", "0A1B2C"), ("OalbZc", "0A1BZC"),
        ("oaIB2C", "0A1B2C"),
    ])
    func typedCodes_areNormalized(_ typed: String, _ code: String) throws {
        #expect(try #require(PresenceCode(typed: typed)).description == code)
    }

    @Test(arguments: ["", "0A1B2", "0A1B2C3", "0A1B2U", "0A1B2é", "------", "０A1B2C"])
    func malformedCodes_areRefused(_ typed: String) {
        #expect(PresenceCode(typed: typed) == nil)
    }

    @Test func codes_areDerivedFromTheDigest_andMatchOnlyThemselves() throws {
        let code = PresenceCode(digest: [0, 31, 32, 255, 10, 20, 99, 98])
        #expect(code.description == "0Z0ZAM")
        #expect(code.matches(try #require(PresenceCode(typed: "ozo-zam"))))
        #expect(!code.matches(try #require(PresenceCode(typed: "0Z0ZAN"))))
        #expect(!code.matches(try #require(PresenceCode(typed: "1Z0ZAM"))))
    }

    /// The current code and the previous one are accepted; all others are refused.
    @Test func windows_areTwo_andFollowEachOther() {
        let start = Timestamp(microseconds: noon.microseconds - noon.microseconds % 60_000_000)
        let shown = PresenceCode.Window(at: start)
        #expect(shown.rotatesAt == start.adding(seconds: 60))
        #expect(shown.expiresAt == start.adding(seconds: 120))
        for (seconds, isValid) in [(0, true), (59, true), (60, true), (119, true), (120, false), (-1, false)] {
            let valid = PresenceCode.Window.valid(at: start.adding(seconds: Int64(seconds)))
            #expect(valid.count == 2, "\(seconds)")
            #expect(valid.contains(shown) == isValid, "\(seconds)")
        }
    }

    @Test func wrongCodes_lockOut_untilTheirTimeIsOver() {
        var attempts = PresenceAttempts()
        for number in 1...PresenceLimits.wrongCodesMax {
            #expect(attempts.waitSeconds(at: noon.adding(seconds: 30)) == nil, "\(number)")
            attempts = attempts.addingFailure(at: noon.adding(seconds: number == 1 ? 0 : 30))
        }
        #expect(attempts.waitSeconds(at: noon.adding(seconds: 30)) == 570)
        #expect(attempts.waitSeconds(at: Timestamp(microseconds: noon.adding(seconds: 600).microseconds - 1)) == 1)
        #expect(attempts.waitSeconds(at: noon.adding(seconds: 600)) == nil)
        #expect(
            attempts.addingFailure(at: noon.adding(seconds: 600))
                == PresenceAttempts(failures: 1, since: noon.adding(seconds: 600)))
    }

    private func booking(_ status: BookingStatus, user: String? = "u1") -> Booking {
        var booking = Booking(
            id: ID("b"), userId: user.map { ID($0) }, shopId: ID("s1"), barberId: nil, service: "cut",
            scheduledStart: noon, durationMinutes: 30, tier: .standard, status: .confirmed, source: .online,
            customerName: nil, createdAt: noon, updatedAt: noon)
        booking.move(to: status, at: noon.adding(minutes: 5))
        return booking
    }

    /// a booking in progress proves presence for the maximum duration of a service.
    @Test(arguments: BookingStatus.allCases) func bookings_showWhoIsThere_whileInProgress(_ status: BookingStatus) {
        let presence = Presence(of: booking(status))
        guard status == .inProgress else { return #expect(presence == nil) }
        #expect(
            presence
                == Presence(
                    shopId: ID("s1"), source: .booking, since: noon.adding(minutes: 5),
                    expiresAt: noon.adding(minutes: 5 + 480)))
        #expect(Presence(of: booking(status, user: nil)) == nil)
    }

    @Test func presence_livesTenMinutes() {
        let presence = Presence(shopId: ID("s1"), source: .code, at: noon)
        #expect(presence.since == noon)
        #expect(presence.expiresAt == noon.adding(minutes: 10))
    }
}
