import Threads
import Values

/// The newest known version of each user's counts, so that a poll which has it already costs no database.
///
/// Filled by reads and by commits; the larger version wins, since a read may see the state before a commit that was
/// noted meanwhile. Emptying starts a new generation: a read that began before it may not add what it saw.
final class BadgeVersions: Sendable {
    private struct Known {
        var versions: [Owner: Int] = [:]
        var generation = 0
    }

    private let known = Locked(Known())
    private let isAlone: Bool

    /// - Parameter isAlone: no other replica writes. If others do, what is known here may be old, and nothing is
    ///   stored.
    init(isAlone: Bool) { self.isAlone = isAlone }

    func version(of owner: Owner) -> Int? { known.withLock { $0.versions[owner] } }

    /// Asked before a read begins, and given to ``note(_:of:readIn:)`` with what it saw.
    var presentGeneration: Int { known.withLock { $0.generation } }

    func note(_ version: Int, of owner: Owner, readIn generation: Int? = nil) {
        guard isAlone else { return }
        known.withLock { known in
            if let generation, generation != known.generation { return }
            if known.versions.count >= Limits.badgeVersionsMax, known.versions[owner] == nil {
                known.versions.removeAll(keepingCapacity: true)
                known.generation += 1
                // What a commit has made is newer than all reads; what a read saw belongs to the generation before.
                guard generation == nil else { return }
            }
            known.versions[owner] = max(version, known.versions[owner] ?? 0)
        }
    }
}
