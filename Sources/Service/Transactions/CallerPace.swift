import Threads
import Values

/// The pace at which each user may cause effects at others, such as push messages. Nothing is refused: what exceeds the
/// pace is dated later.
///
/// A user may cause the effects of a minute at once. Then the allowance grows back evenly. Each replica has its own.
final class CallerPace: Sendable {
    private static let minute: Int64 = 60_000_000

    /// The time until which the allowance is used up, by user. Times that have passed say nothing.
    private let usedUntil = Locked([Owner: Timestamp]())

    /// Returns after how many seconds some effects of a user are due.
    ///
    /// - Parameters:
    ///   - perMinute: The allowance.
    ///   - isTaken: False only asks.
    func delaySeconds(
        of count: Int, by owner: Owner, perMinute: Int, at now: Timestamp, isTaken: Bool = true
    ) -> Int64 {
        let cost = Int64(count) * Self.minute / Int64(perMinute)
        return usedUntil.withLock { usedUntil in
            // A clock that was set back must not hold the effects of a user until it has caught up.
            let latest = now.microseconds + Limits.paceSecondsMax * 1_000_000
            let begun = min(max(usedUntil[owner]?.microseconds ?? 0, now.microseconds), latest)
            if isTaken {
                if usedUntil.count >= Limits.rateBucketsMax { usedUntil = usedUntil.filter { $0.value > now } }
                usedUntil[owner] = Timestamp(microseconds: begun + cost)
            }
            return max(0, (begun + cost - now.microseconds - Self.minute + 999_999) / 1_000_000)
        }
    }
}
