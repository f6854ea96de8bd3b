import Domain
import Foundation

/// The newest known version of each user's counts, so that a poll which has it already costs no database.
///
/// Filled by reads and by commits; the larger version wins, since a read may see the state before a commit that was
/// noted meanwhile. Emptying starts a new generation: a read that began before it may not add what it saw.
///
/// `@unchecked Sendable`: both tables are only touched while `lock` is held.
final class BadgeVersions: @unchecked Sendable {
    private struct Owner: Hashable {
        let tenant: String
        let userId: String
    }

    /// Guards `versions` and `generation`.
    private let lock = NSLock()
    private var versions: [Owner: Int] = [:]
    private var generation = 0
    private let isAlone: Bool

    /// - Parameter isAlone: no other replica writes. If others do, what is known here may be old, and nothing is
    ///   remembered.
    init(isAlone: Bool = true) {
        self.isAlone = isAlone
    }

    func version(of userId: ID<User>, tenant: String) -> Int? {
        lock.withLock { versions[Owner(tenant: tenant, userId: userId.text)] }
    }

    /// Asked before a read begins, and given to ``note(_:of:tenant:readIn:)`` with what it saw.
    var presentGeneration: Int { lock.withLock { generation } }

    func note(_ version: Int, of userId: ID<User>, tenant: String, readIn generation: Int? = nil) {
        guard isAlone else { return }
        let owner = Owner(tenant: tenant, userId: userId.text)
        lock.withLock {
            if let generation, generation != self.generation { return }
            if versions.count >= Limits.badgeVersionsMax, versions[owner] == nil {
                versions.removeAll(keepingCapacity: true)
                self.generation += 1
                // What a commit has made is newer than all reads; what a read saw belongs to the generation before.
                guard generation == nil else { return }
            }
            versions[owner] = max(version, versions[owner] ?? 0)
        }
    }
}
