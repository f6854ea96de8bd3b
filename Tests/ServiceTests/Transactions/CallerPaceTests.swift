import TestSupport
import Testing
import Values

@testable import Service

/// The pace of what users cause at others.
@Suite(.timed) struct CallerPaceTests {
    private static let ada = Owner(tenant: "default", userId: "ada")
    private let pace = CallerPace()
    private let start = Timestamp(microseconds: 1_800_000_000_000_000)

    private func delay(_ count: Int, _ seconds: Int64 = 0, of owner: Owner = ada, isTaken: Bool = true) -> Int64 {
        pace.delaySeconds(
            of: count, by: owner, perMinute: 60, at: start.adding(seconds: seconds), isTaken: isTaken)
    }

    @Test func effectsOfAMinute_areDueAtOnce_andTheRestLater() {
        #expect(delay(60) == 0)
        #expect(delay(1, isTaken: false) == 1)
        #expect(delay(30) == 30)
        #expect(delay(60) == 90)
        #expect(delay(60, of: Owner(tenant: "other", userId: "ada")) == 0)
        #expect(delay(60, of: Owner(tenant: "default", userId: "ben")) == 0)
    }

    @Test func allowance_growsBack() {
        #expect(delay(60) == 0)
        #expect(delay(10, 10) == 0)
        #expect(delay(1, 10) == 1)
        #expect(delay(60, 200) == 0)
    }

    @Test func clockThatIsSetBack_delaysByADayAtMost() {
        #expect(delay(1, 400_000) == 0)
        #expect(delay(1, 0) <= Limits.paceSecondsMax)
    }
}
