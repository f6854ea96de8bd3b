import Foundation
import Values

/// The clock of the service. Tests supply their own.
public struct Clock: Sendable {
    /// Returns the time that dates rows. In a running service, it is the time of a ``SteadyClock``.
    public let now: @Sendable () -> Timestamp
    /// Returns the time since the machine was started. Periodic work uses it, because the wall clock may be set back, and
    /// would then make the work wait until that time is reached again.
    let uptime: @Sendable () -> Duration
    /// Returns how long a polling loop waits in real time, given its pause in the service's time. A clock that a test
    /// advances by minutes makes it shorter, so that the test need not wait for the next poll.
    let pause: @Sendable (Duration) -> Duration
    /// Returns the time of the machine. Tokens are judged by it, because their issuers have clocks of their own.
    let machine: @Sendable () -> Timestamp
    /// Returns the time that judges the age of rows; nil while the time is in doubt. Then nothing is deleted
    /// because of its age.
    let age: @Sendable () -> AgeTime?
    /// The run of the machine to which the uptime belongs; nil if it is unknown. A process that starts again in the same
    /// run finds the same uptime.
    let boot: String?
    /// Whether the clock of a database server shows the same time.
    let isSystem: Bool

    public init(
        now: @escaping @Sendable () -> Timestamp, uptime: @escaping @Sendable () -> Duration,
        pause: @escaping @Sendable (Duration) -> Duration = { $0 }
    ) {
        self.init(now: now, uptime: uptime, pause: pause, boot: nil, isSystem: false)
    }

    init(
        now: @escaping @Sendable () -> Timestamp, uptime: @escaping @Sendable () -> Duration,
        pause: @escaping @Sendable (Duration) -> Duration, boot: String?, isSystem: Bool
    ) {
        (self.now, self.uptime, self.pause, self.machine) = (now, uptime, pause, now)
        age = { AgeTime(now()) }
        (self.boot, self.isSystem) = (boot, isSystem)
    }

    /// Creates the clock of a running service.
    init(_ steady: SteadyClock, on machine: Clock) {
        now = { steady.now() }
        age = { steady.age() }
        (self.machine, uptime, pause) = (machine.now, machine.uptime, machine.pause)
        (boot, isSystem) = (machine.boot, machine.isSystem)
    }

    /// The system's clocks.
    ///
    /// The wall clock uses `Date`, whose resolution is an eighth of a microsecond. The C type `timespec` is not used,
    /// because the module to which it belongs depends on the order in which files are compiled.
    public static let system = Clock(
        now: { Timestamp(microseconds: Int64(Date().timeIntervalSince1970 * 1_000_000)) },
        uptime: { started.uptime + started.at.duration(to: .now) },
        pause: { $0 }, boot: systemBoot, isSystem: true)

    /// The uptime of the machine when the process began. Without `/proc`, the uptime of the process takes its place.
    private static let started: (uptime: Duration, at: ContinuousClock.Instant) = {
        let seconds = file("/proc/uptime")?.split(separator: " ").first.flatMap { Double($0) }
        return (.seconds(seconds ?? 0), .now)
    }()

    private static let systemBoot = file("/proc/sys/kernel/random/boot_id")

    private static func file(_ path: String) -> String? {
        let text = try? String(contentsOfFile: path, encoding: .utf8).trimmingCharacters(in: .whitespacesAndNewlines)
        return text?.isEmpty == false ? text : nil
    }
}

/// The time that judges the age of stored rows. Every deletion by age needs one, and only a clock that is not in
/// doubt gives one (``Clock/age``).
struct AgeTime: Sendable {
    let now: Timestamp

    init(_ now: Timestamp) { self.now = now }

    /// Returns the moment before which rows are older than this.
    func end(ofSeconds seconds: Int64) -> Timestamp { now.adding(seconds: -seconds) }

    /// Returns the moment before which rows are older than this.
    func end(ofDays days: Int) -> Timestamp { end(ofSeconds: Int64(days) * 86_400) }
}
