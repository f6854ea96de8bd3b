import Threads

/// The newest known version of each user's counts, so that a poll that already has it needs no query.
///
/// Reads and commits add versions. The larger version wins, because a read may see the state before a commit that was
/// recorded meanwhile. Clearing starts a new generation: a read that began before it may not add its result.
final class BadgeVersions: Sendable {
    private struct Known {
        var versions: [Owner: Int] = [:]
        var generation = 0
    }

    private let known = Locked(Known())
    private let isAlone: Bool

    /// Creates the cache.
    ///
    /// - Parameter isAlone: Whether no other replica writes. If others do, the known versions may be old, and nothing
    ///   is stored.
    init(isAlone: Bool) { self.isAlone = isAlone }

    func version(of owner: Owner) -> Int? { known.withLock { $0.versions[owner] } }

    /// Obtained before a read begins, and passed to ``note(_:of:readIn:)`` with its result.
    var presentGeneration: Int { known.withLock { $0.generation } }

    func note(_ version: Int, of owner: Owner, readIn generation: Int? = nil) {
        guard isAlone else { return }
        known.withLock { known in
            if let generation, generation != known.generation { return }
            if known.versions.count >= Limits.badgeVersionsMax, known.versions[owner] == nil {
                known.versions.removeAll(keepingCapacity: true)
                known.generation += 1
                // The version of a commit is newer than all reads; the result of a read belongs to the previous
                // generation.
                guard generation == nil else { return }
            }
            known.versions[owner] = max(version, known.versions[owner] ?? 0)
        }
    }
}
