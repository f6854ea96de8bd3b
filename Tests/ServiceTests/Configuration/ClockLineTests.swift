import Logging
import TestSupport
import Testing
import Threads
import Values

@testable import Service

/// The time of the service, while the clock of the machine is set.
@Suite(.timed) struct ClockLineTests {
    private static let epoch = Timestamp(microseconds: 1_768_035_600_000_000)

    /// A machine whose clock and uptime a test moves by seconds.
    private struct Machine {
        var line = ClockLine(epoch, at: .zero)
        var uptime: Int64 = 0
        var ahead: Int64 = 0

        /// Lets time pass, sets the clock, and observes both.
        mutating func observe(after seconds: Int64, ahead: Int64? = nil) -> ClockLine.Change? {
            uptime += seconds
            self.ahead = ahead ?? self.ahead
            return line.observe(epoch.adding(seconds: uptime + self.ahead), at: .seconds(uptime))
        }

        /// The error of the service's time, in seconds.
        var error: Int64 { line.now(at: .seconds(uptime)).seconds - epoch.adding(seconds: uptime).seconds }
    }

    @Test func time_isProven_afterAnHour() {
        var machine = Machine()
        #expect(machine.observe(after: 3600) == nil && !machine.line.isTrusted)
        #expect(machine.observe(after: 1) == nil && machine.line.isTrusted)
    }

    @Test(arguments: [-34_560_000, -3_456_000, -95_040, -3600, -3, 3, 3600, 95_040, 3_456_000, 34_560_000] as [Int64])
    func provenTime_outlivesAStep_ofAnHour(_ step: Int64) {
        var machine = Machine()
        _ = machine.observe(after: 3601)
        #expect(machine.observe(after: 1, ahead: step) == .set(seconds: step))
        for seconds in [0, 1, 1799, 1800] as [Int64] {
            #expect(machine.observe(after: seconds) == nil)
            #expect(machine.error == 0 && !machine.line.isTrusted)
            #expect(machine.line.stepSeconds == step)
        }
        #expect(machine.observe(after: 0, ahead: 0) == .returned)
        #expect(machine.error == 0 && machine.line.isTrusted)
    }

    @Test func newTime_isAccepted_afterMoreThanAnHour_andTheFormerAtOnce() {
        var machine = Machine()
        _ = machine.observe(after: 3601)
        _ = machine.observe(after: 0, ahead: 86_400)
        #expect(machine.observe(after: 3601) == .accepted(seconds: 86_400))
        #expect(machine.error == 86_400 && machine.line.isTrusted)
        // The clock is corrected: its time was proven before.
        #expect(machine.observe(after: 5, ahead: 0) == .returned)
        #expect(machine.error == 0 && machine.line.isTrusted)
    }

    /// Another step starts the hour again.
    @Test func flutteringClock_isNeverAccepted() {
        var machine = Machine()
        _ = machine.observe(after: 3601)
        for round in 1...10 as ClosedRange<Int64> {
            #expect(machine.observe(after: 1800, ahead: 100 * round) == .set(seconds: 100 * round))
            #expect(machine.error == 0 && !machine.line.isTrusted)
        }
    }

    /// A machine that was started with a wrong time follows its correction, and then needs a whole hour.
    @Test func unprovenTime_followsTheClock() {
        var machine = Machine()
        _ = machine.observe(after: 1800, ahead: -34_560_000)
        #expect(machine.error == -34_560_000)
        #expect(machine.observe(after: 1800, ahead: 0) == .set(seconds: 34_560_000))
        #expect(machine.error == 0)
        #expect(machine.observe(after: 3600) == nil && !machine.line.isTrusted)
        #expect(machine.observe(after: 1) == nil && machine.line.isTrusted)
    }

    /// Time servers correct a clock by fractions of a second.
    @Test func smallCorrections_areFollowed() {
        var machine = Machine()
        _ = machine.observe(after: 3601)
        for ahead in [1, 2, 1, 0, -1] as [Int64] {
            #expect(machine.observe(after: 1, ahead: ahead) == nil)
            #expect(machine.error == ahead && machine.line.isTrusted)
        }
    }

    // MARK: The service's time

    private static func steady(
        _ clock: ManualClock, line: ClockLine? = nil, reached: Timestamp? = nil
    ) -> SteadyClock {
        SteadyClock(clock.clock, line: line, reached: reached, logger: Logger(label: "test"))
    }

    @Test func processThatStartsAgain_continues() {
        let clock = ManualClock(Self.epoch)
        let first = Self.steady(clock)
        clock.advance(seconds: 3601)
        #expect(first.age()?.now == Self.epoch.adding(seconds: 3601))
        clock.step(seconds: 3_456_000)
        let second = Self.steady(clock, line: first.line)
        #expect(second.now() == Self.epoch.adding(seconds: 3601))
        #expect(second.age() == nil)
        clock.step(seconds: -3_456_000)
        #expect(second.age()?.now == Self.epoch.adding(seconds: 3601))
    }

    /// After a start of the machine nothing is proven, except that no time comes twice.
    @Test func machineThatStartsInThePast_isNotBelieved() {
        let clock = ManualClock(Self.epoch)
        let reached = Self.epoch.adding(seconds: 3_456_000)
        let steady = Self.steady(clock, reached: reached)
        #expect(steady.now() == reached && steady.age() == nil)
        clock.step(seconds: 3_456_000 - 1)
        #expect(steady.age() != nil)
        let later = Self.steady(clock, reached: Self.epoch)
        #expect(later.now() == clock.now && later.age() == nil)
    }

    /// A database server whose clock is behind keeps rows that this machine believes to be old.
    @Test func age_isJudgedByTheEarlierClock() {
        let clock = ManualClock(Self.epoch)
        let steady = Self.steady(clock)
        clock.advance(seconds: 3601)
        steady.note(server: Self.epoch)
        clock.advance(seconds: 10)
        #expect(steady.age()?.now == Self.epoch.adding(seconds: 10))
        steady.note(server: Self.epoch.adding(seconds: 86_400))
        #expect(steady.age()?.now == clock.now)
    }

    /// The two clocks are not read at one moment: a process may be stopped in between.
    @Test func processThatIsStopped_seesNoStep() {
        let passed = Locked([Duration.zero, .zero, .zero, .seconds(600)])
        let clock = Clock(
            now: { Self.epoch },
            uptime: { passed.withLock { $0.count > 1 ? $0.removeFirst() : $0[0] } })
        let steady = SteadyClock(clock, line: nil, reached: nil, logger: Logger(label: "test"))
        #expect(steady.line.stepSeconds == 0)
    }
}
