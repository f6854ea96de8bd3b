import Logging
import Threads
import Values

/// The difference between the clock of the machine and its uptime, which only changes if someone sets the clock.
///
/// A difference that has stood for an hour is proven. If the clock of the machine leaves a proven difference, the service
/// keeps the proven one, until the new one has stood for an hour too. So a clock that is wrong for a moment dates no row.
/// Before the first hour is over, rows are dated by the clock of the machine: it may have been started with a wrong time
/// that is about to be corrected.
struct ClockLine: Sendable, Equatable {
    /// The wall time minus the uptime, in microseconds.
    private(set) var difference: Int64
    /// The uptime since which it stands.
    private(set) var since: Duration
    private(set) var isProven: Bool
    /// Another difference, which the clock of the machine shows at present.
    private(set) var rival: Rival?
    /// Proven differences that others have replaced. A clock that returns to one is right at once.
    private var former: [Int64] = []

    struct Rival: Sendable, Equatable {
        var difference: Int64
        let since: Duration
    }

    /// What an observation has changed.
    enum Change: Equatable {
        /// The clock of the machine was set, by this many seconds.
        case set(seconds: Int64)
        /// The clock shows the proven time again.
        case returned
        /// The new time has stood long enough.
        case accepted(seconds: Int64)
    }

    /// How long a time must stand until it is proven. Without this bound, a clock that is wrong for seconds would delete
    /// everything that has an age.
    static let proofSeconds: Int64 = 3600
    /// The largest correction of a clock that raises no doubt, in microseconds. Time servers step a clock by less.
    static let slack: Int64 = 2_000_000
    private static let formerMax = 8

    init(difference: Int64, since: Duration, isProven: Bool) {
        (self.difference, self.since, self.isProven) = (difference, since, isProven)
    }

    init(_ machine: Timestamp, at uptime: Duration) {
        self.init(difference: Self.difference(machine, uptime), since: uptime, isProven: false)
    }

    /// Whether ages can be judged.
    var isTrusted: Bool { isProven && rival == nil }

    /// The seconds by which the clock of the machine is ahead of the service's time.
    var stepSeconds: Int64 { rival.map { ($0.difference - difference) / 1_000_000 } ?? 0 }

    func now(at uptime: Duration) -> Timestamp { Timestamp(microseconds: difference + uptime.inMicroseconds) }

    static func difference(_ machine: Timestamp, _ uptime: Duration) -> Int64 {
        machine.microseconds - uptime.inMicroseconds
    }

    private static func isClose(_ left: Int64, _ right: Int64) -> Bool { abs(left - right) <= slack }

    /// Compares the clock of the machine with the uptime.
    mutating func observe(_ machine: Timestamp, at uptime: Duration) -> Change? {
        let seen = Self.difference(machine, uptime)
        if Self.isClose(seen, difference) {
            difference = seen
            if uptime - since > .seconds(Self.proofSeconds) { isProven = true }
            defer { rival = nil }
            return rival == nil ? nil : .returned
        }
        let seconds = (seen - difference) / 1_000_000
        guard isProven else {
            (difference, since) = (seen, uptime)
            return .set(seconds: seconds)
        }
        if let index = former.firstIndex(where: { Self.isClose($0, seen) }) {
            former.remove(at: index)
            follow(seen, since: uptime)
            return .returned
        }
        guard let known = rival, Self.isClose(known.difference, seen) else {
            rival = Rival(difference: seen, since: uptime)
            return .set(seconds: seconds)
        }
        rival?.difference = seen
        guard uptime - known.since > .seconds(Self.proofSeconds) else { return nil }
        former = [difference] + former.prefix(Self.formerMax - 1)
        follow(seen, since: known.since)
        return .accepted(seconds: seconds)
    }

    private mutating func follow(_ seen: Int64, since uptime: Duration) {
        (difference, since, rival) = (seen, uptime, nil)
    }
}

extension Duration {
    fileprivate var inMicroseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds * 1_000_000 + attoseconds / 1_000_000_000_000
    }
}

/// The time of the service. It follows the clock of the machine, except while that clock is in doubt (``ClockLine``).
final class SteadyClock: Sendable {
    private struct State {
        var line: ClockLine
        /// The difference between the clock of the database server and the uptime, when it was last compared.
        var server: Int64?
    }

    private let machine: Clock
    private let state: Locked<State>
    private let logger: Logger

    /// - Parameters:
    ///   - line: What an earlier process has stored in this run of the machine.
    ///   - reached: A proven time that the service has reached. An earlier time is wrong.
    init(_ machine: Clock, line: ClockLine?, reached: Timestamp?, logger: Logger) {
        (self.machine, self.logger) = (machine, logger)
        let (now, uptime) = Self.reading(machine)
        var first = line ?? ClockLine(now, at: uptime)
        if line == nil, let reached, reached > now {
            first = ClockLine(difference: ClockLine.difference(reached, uptime), since: uptime, isProven: true)
        }
        state = Locked(State(line: first))
        observe { _, _ in }
    }

    func now() -> Timestamp { observe { state, uptime in state.line.now(at: uptime) } }

    /// Returns the time that judges ages; nil while the time is in doubt. If the database server's clock is
    /// behind, its time: then a replica whose clock was wrong from the beginning deletes nothing.
    func age() -> AgeTime? {
        observe { state, uptime in
            guard state.line.isTrusted else { return nil }
            let now = state.line.now(at: uptime)
            let server = state.server.map { ClockLine(difference: $0, since: uptime, isProven: true).now(at: uptime) }
            return AgeTime(min(now, server ?? now))
        }
    }

    /// The present state, which is stored for the next process.
    var line: ClockLine { observe { state, _ in state.line } }

    func note(server: Timestamp) {
        observe { state, uptime in state.server = ClockLine.difference(server, uptime) }
    }

    func register(in metrics: MetricsRegistry) {
        metrics.register { [self] text in
            let line = line
            text.single(
                "bellhop_clock_trusted", .gauge,
                "1 if rows are deleted by their age, 0 while the time is in doubt.", value: line.isTrusted ? 1 : 0)
            text.single(
                "bellhop_clock_step_seconds", .gauge,
                "Seconds by which the clock of the machine is ahead of the time of the service.",
                value: line.stepSeconds)
        }
    }

    @discardableResult
    private func observe<Result: Sendable>(_ body: (inout State, Duration) -> Result) -> Result {
        let (now, uptime) = Self.reading(machine)
        let (result, change) = state.withLock { state in
            let change = state.line.observe(now, at: uptime)
            return (body(&state, uptime), change)
        }
        if let change { report(change) }
        return result
    }

    /// Reads both clocks at one moment. A process that is stopped in between would see a step that did not happen.
    private static func reading(_ machine: Clock) -> (Timestamp, Duration) {
        while true {
            let (before, now, after) = (machine.uptime(), machine.now(), machine.uptime())
            if after - before < .milliseconds(500) { return (now, after) }
        }
    }

    private func report(_ change: ClockLine.Change) {
        switch change {
        case .set(let seconds):
            logger.warning(
                "The clock was set. Nothing is deleted by age until the new time has stood for an hour.",
                metadata: ["seconds": "\(seconds)"])
        case .returned: logger.info("The clock shows the proven time again.")
        case .accepted(let seconds):
            logger.warning("The new time of the clock is accepted.", metadata: ["seconds": "\(seconds)"])
        }
    }
}
