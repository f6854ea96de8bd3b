import Foundation
import Values

@testable import Service

/// A clock that stands still until a test advances it or lets it run. Its uptime advances with it, and stands still
/// when it is set back. Loops poll this clock ten times as often as in a service, so that they notice changes soon.
///
/// `@unchecked Sendable`: the variables are only accessed while `lock` is held.
final class ManualClock: @unchecked Sendable {
    /// Guards the variables below.
    private let lock = NSLock()
    private var moment: Timestamp
    private var passed: Duration = .zero
    private var isRunning = false
    private let boot = UUID().uuidString

    /// - Parameter moment: nil starts at the current time, so that tokens of other tools are valid too.
    init(_ moment: Timestamp?) {
        self.moment = moment ?? Clock.system.now()
    }

    var now: Timestamp { lock.withLock { isRunning ? Clock.system.now() : moment } }

    var clock: Clock {
        Clock(
            now: { [self] in now },
            uptime: { [self] in lock.withLock { isRunning ? Clock.system.uptime() : passed } },
            pause: { $0 / 10 }, boot: boot, isSystem: false)
    }

    /// Follows the system clock from now on. For commands, which take real time and whose tokens use the current
    /// time.
    func run() { lock.withLock { isRunning = true } }

    func set(_ moment: Timestamp) { lock.withLock { move(to: moment) } }

    func advance(seconds: Int64) { lock.withLock { move(to: moment.adding(seconds: seconds)) } }

    /// Sets the clock of the machine, as an operator or a time server does. The uptime stays.
    func step(seconds: Int64) { lock.withLock { moment = moment.adding(seconds: seconds) } }

    /// Call with `lock` held.
    private func move(to moment: Timestamp) {
        passed += .microseconds(max(0, moment.microseconds - self.moment.microseconds))
        self.moment = moment
    }
}
