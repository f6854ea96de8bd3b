import Foundation
import Values

@testable import Service

/// A clock that stands until a test moves it, or lets it run. Its uptime passes with it, and stands while it is set back.
/// Loops that poll it do so ten times as often as in a service, so that they see soon that a test has moved it.
///
/// `@unchecked Sendable`: what changes is only touched with `lock` locked.
final class ManualClock: @unchecked Sendable {
    /// Guards what follows.
    private let lock = NSLock()
    private var moment: Timestamp
    private var passed: Duration = .zero
    private var isRunning = false

    /// - Parameter moment: nil starts at the present, so that tokens of other tools are valid too.
    init(_ moment: Timestamp?) {
        self.moment = moment ?? Clock.system.now()
    }

    var now: Timestamp { lock.withLock { isRunning ? Clock.system.now() : moment } }

    var clock: Clock {
        Clock(
            now: { [self] in now },
            uptime: { [self] in lock.withLock { isRunning ? Clock.system.uptime() : passed } },
            pause: { $0 / 10 })
    }

    /// Is the system's own from now on: for commands, which run for as long as they take, and whose tokens are of the
    /// present.
    func run() { lock.withLock { isRunning = true } }

    func set(_ moment: Timestamp) { lock.withLock { move(to: moment) } }

    func advance(seconds: Int64) { lock.withLock { move(to: moment.adding(seconds: seconds)) } }

    /// With `lock` locked.
    private func move(to moment: Timestamp) {
        passed += .microseconds(max(0, moment.microseconds - self.moment.microseconds))
        self.moment = moment
    }
}
