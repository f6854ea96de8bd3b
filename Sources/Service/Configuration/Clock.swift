import Foundation
import Values

/// Where the service gets the time from; tests put in their own.
public struct Clock: Sendable {
    public let now: @Sendable () -> Timestamp
    /// How much time has passed since some moment: what comes round asks this one, since the wall clock may be set back,
    /// and would have it wait until the hour is reached again.
    let uptime: @Sendable () -> Duration
    /// Returns how long a loop that polls waits in real time, given how long a service waits. A clock that a test moves by
    /// minutes makes it shorter, so that the test need not wait for the next poll.
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
    /// The wall clock by `Date`, whose steps are of an eighth of a microsecond: which module C's `timespec` belongs to
    /// changes with the order in which files are compiled.
    public static let system = Clock(
        now: { Timestamp(microseconds: Int64(Date().timeIntervalSince1970 * 1_000_000)) },
        uptime: { Clock.started.duration(to: .now) })

    private static let started = ContinuousClock.now
}
