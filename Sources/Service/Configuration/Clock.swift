import Foundation
import Values

/// The clock of the service. Tests supply their own.
public struct Clock: Sendable {
    public let now: @Sendable () -> Timestamp
    /// Returns the time since some fixed moment. Periodic work uses it, because the wall clock may be set back, and
    /// would then make the work wait until that time is reached again.
    let uptime: @Sendable () -> Duration
    /// Returns how long a polling loop waits in real time, given its pause in the service's time. A clock that a test
    /// advances by minutes makes it shorter, so that the test need not wait for the next poll.
    let pause: @Sendable (Duration) -> Duration

    public init(
        now: @escaping @Sendable () -> Timestamp, uptime: @escaping @Sendable () -> Duration,
        pause: @escaping @Sendable (Duration) -> Duration = { $0 }
    ) {
        self.now = now
        self.uptime = uptime
        self.pause = pause
    }

    /// The system's clocks.
    ///
    /// The wall clock uses `Date`, whose resolution is an eighth of a microsecond. The C type `timespec` is not used,
    /// because the module to which it belongs depends on the order in which files are compiled.
    public static let system = Clock(
        now: { Timestamp(microseconds: Int64(Date().timeIntervalSince1970 * 1_000_000)) },
        uptime: { Clock.started.duration(to: .now) })

    private static let started = ContinuousClock.now
}
