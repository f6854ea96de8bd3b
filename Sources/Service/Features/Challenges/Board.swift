import Domain
import Threads
import Values

/// A leaderboard in memory: its key, and its order under a lock.
final class Board: Sendable {
    /// A leaderboard belongs to one challenge, and its sort order never changes.
    struct Key: Hashable, Sendable {
        let tenant: ID<Tenant>
        let id: String
        let challengeId: ID<Challenge>
        let order: Challenge.Order
    }

    let key: Key
    /// Writers wait for the lock, so the database is never read while it is held.
    private let state = Locked(BoardState())

    init(_ key: Key) { self.key = key }

    func withLock<Value>(_ body: (inout BoardState) -> Value) -> Value { state.withLock { body(&$0) } }

    var presence: BoardState.Presence { withLock { $0.presence } }
    var isReady: Bool { if case .ready = presence { true } else { false } }
}

/// The order of a leaderboard at one of its changes, and the known pending changes after it.
///
/// The changes of a leaderboard are numbered in commit order (`BoardRow.revision`). So a reader of the row knows
/// whether this state is behind, and which changes are missing.
struct BoardState: Sendable {
    enum Presence: Sendable {
        case absent
        /// It is being loaded in the background.
        case building
        /// Loaded, up to this revision.
        case ready(Int64)
    }

    /// Uncommitted changes after the order at `base`, up to the changes of a row.
    private struct Pending {
        var changes = PendingChanges()
        var base: Int64 = -1
        var through: Int64 = -1
        var mark: Int64 = 0
    }

    private(set) var presence = Presence.absent
    private(set) var leaderboard = Leaderboard()
    /// The time when the moved ranks were last published, by the clock's uptime.
    private(set) var publishedAt: Duration?
    /// The revision at which the order was loaded.
    private var installedRevision: Int64 = 0
    /// The revision up to which moves are published.
    private var publishedRevision: Int64 = 0
    private var pending = Pending()
    /// Whether changes arrived while the order was absent.
    private var hasMissedChanges = false

    // MARK: Following committed changes

    /// Returns false if the order is already present, or is being loaded.
    mutating func beginBuilding() -> Bool {
        guard case .absent = presence else { return false }
        presence = .building
        return true
    }

    mutating func cancelBuilding() {
        if case .building = presence { presence = .absent }
    }

    /// Records a change whose moves are not published. If the loaded order already contains it, the moved entries are
    /// unknown.
    mutating func noteChange(_ revision: Int64) {
        switch presence {
        case .absent, .building: hasMissedChanges = true
        case .ready where revision <= installedRevision: leaderboard.noteUnknownMovement()
        case .ready: return
        }
    }

    /// Installs the loaded order, unless a newer one is present.
    mutating func install(_ fresh: Leaderboard, revision: Int64) {
        if case .ready(let present) = presence, present >= revision { return }
        // The unpublished moves of the previous order are unknown in this one.
        let isUnknown = hasMissedChanges || leaderboard.hasMoved
        (leaderboard, hasMissedChanges) = (fresh, false)
        if isUnknown { leaderboard.noteUnknownMovement() }
        (installedRevision, publishedRevision) = (revision, revision - (isUnknown ? 1 : 0))
        presence = .ready(revision)
    }

    /// Applies the changes up to a revision. Some of them may have been applied since they were read; these rows are at
    /// least as new.
    mutating func follow(_ changes: [ChallengesFeature.Change], through revision: Int64) {
        guard case .ready(let present) = presence, present < revision else { return }
        for change in changes { leaderboard.set(change.standing, of: change.userId) }
        presence = .ready(revision)
    }

    /// Applies one committed change. Returns false if a change before it is missing and must be read.
    mutating func commit(_ standing: Standing?, of user: ID<User>, revision: Int64) -> Bool {
        guard case .ready(let present) = presence else { return false }
        guard present + 1 == revision else {
            if revision <= installedRevision { leaderboard.noteUnknownMovement() }
            return present >= revision
        }
        leaderboard.set(standing, of: user)
        presence = .ready(revision)
        return true
    }

    /// Drops the order. The next request loads it again.
    mutating func drop() {
        (presence, leaderboard, pending) = (.absent, Leaderboard(), Pending())
    }

    // MARK: Reading

    /// Returns the order; nil if it is absent, or behind the revision.
    func leaderboard(atLeast revision: Int64) -> Leaderboard? {
        guard case .ready(let present) = presence, present >= revision else { return nil }
        return leaderboard
    }

    enum PendingAnswer {
        case place(Place)
        /// The changes with `base < revision ≤ that of the row` must be read first.
        case unknown(base: Int64)
        case absent
    }

    /// Returns the place of a standing after all changes up to and including the row's, and the change that gives it to
    /// the user, if any.
    mutating func place(
        of standing: Standing, _ user: ID<User>, behind row: BoardRow, with change: BoardRow?
    ) -> PendingAnswer {
        guard case .ready(let base) = presence, base <= row.revision else { return .absent }
        if base == row.revision { pending = Pending(base: base, through: row.revision, mark: row.mark) }
        guard pending.base == base, pending.through == row.revision, pending.mark == row.mark else {
            return .unknown(base: base)
        }
        if let change {
            pending.changes.set(standing, of: user, on: leaderboard)
            (pending.through, pending.mark) = (change.revision, change.mark)
        }
        return .place(pending.changes.place(of: standing, on: leaderboard))
    }

    /// Sets the uncommitted changes that were read.
    mutating func setPending(_ changes: [ChallengesFeature.Change], behind base: Int64, through row: BoardRow) {
        guard case .ready(base) = presence else { return }
        pending = Pending(base: base, through: row.revision, mark: row.mark)
        for change in changes { pending.changes.set(change.standing, of: change.userId, on: leaderboard) }
    }

    // MARK: Movement

    /// Takes the movement since the last call, with the number of changes, to be published now; nil without changes.
    mutating func takeMovement(at now: Duration) -> (movement: Movement, changes: Int)? {
        guard case .ready(let present) = presence, leaderboard.hasMoved else { return nil }
        defer { (publishedRevision, publishedAt) = (present, now) }
        return (leaderboard.takeMovement(), Int(present - publishedRevision))
    }

    /// Returns the entries of the moved users, with their revision.
    func entries(
        of users: some Sequence<ID<User>>, movedBy movement: SettledMovement
    ) -> (entries: [Leaderboard.Entry], revision: Int64) {
        guard case .ready(let revision) = presence else { return ([], 0) }
        return (users.compactMap { leaderboard.entry(of: $0, movedBy: movement) }, revision)
    }
}
