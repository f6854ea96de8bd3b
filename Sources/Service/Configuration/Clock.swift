import Foundation
import Values

/// Where the service gets the time from; tests put in their own.
public struct Clock: Sendable {
    public let now: @Sendable () -> Timestamp

    public init(now: @escaping @Sendable () -> Timestamp) {
        self.now = now
    }

    /// The system's wall clock.
    ///
    /// By `Date`, whose steps are of an eighth of a microsecond: which module C's `timespec` belongs to changes with the
    /// order in which files are compiled.
    public static let system = Clock {
        Timestamp(microseconds: Int64(Date().timeIntervalSince1970 * 1_000_000))
    }
}
