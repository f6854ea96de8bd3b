import Threads

/// The pauses of erasures, in which other replicas become aware of something.
///
/// They are measured by the uptime of this process. The time that dates rows may be set, or may differ between the
/// replicas that take turns, and a pause that ended early would leave traces of a person. A process that has not seen a
/// pause from its beginning waits for all of it.
final class ErasurePauses: Sendable {
    /// When each pause was seen first.
    private let seen = Locked([String: Duration]())
    /// Pauses that are remembered: many more than there are rounds at the same time.
    private static let seenMax = 1000

    /// Returns whether a pause has lasted long enough. The first call for a name begins it.
    func isOver(_ name: String, _ seconds: Int64, _ uptime: Duration) -> Bool {
        seen.withLock { seen in
            guard let first = seen[name] else {
                if seen.count >= Self.seenMax { seen = [:] }
                seen[name] = uptime
                return false
            }
            return uptime - first >= .seconds(seconds)
        }
    }
}
