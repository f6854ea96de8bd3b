import Domain
import Threads
import Values

/// One board in memory: its name, and its order under a lock.
final class Board: Sendable {
    /// A board belongs to one challenge and has one order for as long as it exists.
    struct Key: Hashable, Sendable {
        let tenant: ID<Tenant>
        let id: String
        let challengeId: ID<Challenge>
        let order: Challenge.Order
    }

    let key: Key
    /// Those who write wait for whoever has the lock: nobody reads the database with it.
    private let state = Locked(BoardState())

    init(_ key: Key) { self.key = key }

    func withLock<Value>(_ body: (inout BoardState) -> Value) -> Value { state.withLock { body(&$0) } }

    var presence: BoardState.Presence { withLock { $0.presence } }
    var isReady: Bool { if case .ready = presence { true } else { false } }
}

/// The order of a board as of one of its changes, and what is known of those behind it.
///
/// The changes of a board are numbered in the order of their commits (`BoardRow.revision`), so that whoever has read
/// the row knows whether this is behind it, and which changes are missing.
struct BoardState: Sendable {
    enum Presence: Sendable {
        case absent
        /// Somebody reads it beside the requests.
        case building
        /// As of this change.
        case ready(Int64)
    }

    /// Changes that are not committed, behind the order as of `base`, through those of a row.
    private struct Pending {
        var changes = PendingChanges()
        var base: Int64 = -1
        var through: Int64 = -1
        var mark: Int64 = 0
    }

    private(set) var presence = Presence.absent
    private(set) var leaderboard = Leaderboard()
    /// When the moved ranks were last published, by the clock's uptime.
    private(set) var publishedAt: Duration?
    /// The change as of which it was read.
    private var installedRevision: Int64 = 0
    /// The last change whose moves are published.
    private var publishedRevision: Int64 = 0
    private var pending = Pending()
    /// Changes came while it was absent.
    private var hasMissedChanges = false

    // MARK: Following what is committed

    /// False: it is there already, or somebody is at it.
    mutating func beginBuilding() -> Bool {
        guard case .absent = presence else { return false }
        presence = .building
        return true
    }

    mutating func giveUpBuilding() {
        if case .building = presence { presence = .absent }
    }

    /// There is a change whose moves are not published. If what was read has it already, nobody knows whom it has moved.
    mutating func noteChange(_ revision: Int64) {
        switch presence {
        case .absent, .building: hasMissedChanges = true
        case .ready where revision <= installedRevision: leaderboard.noteUnknownMovement()
        case .ready: return
        }
    }

    /// Takes the order as it was read, unless a newer one is here.
    mutating func install(_ fresh: Leaderboard, revision: Int64) {
        if case .ready(let present) = presence, present >= revision { return }
        // What was to be published of the one before is not known of this one.
        let isUnknown = hasMissedChanges || leaderboard.hasMoved
        (leaderboard, hasMissedChanges) = (fresh, false)
        if isUnknown { leaderboard.noteUnknownMovement() }
        (installedRevision, publishedRevision) = (revision, revision - (isUnknown ? 1 : 0))
        presence = .ready(revision)
    }

    /// Takes what has changed through a revision. Others may have followed some of it since it was read: these rows are as
    /// new as theirs, or newer.
    mutating func follow(_ changes: [ChallengesFeature.Change], through revision: Int64) {
        guard case .ready(let present) = presence, present < revision else { return }
        for change in changes { leaderboard.set(change.standing, of: change.userId) }
        presence = .ready(revision)
    }

    /// Takes one committed change. False: there is one before it that has not come; it is to be read.
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

    /// Drops the order; whoever asks next reads it again.
    mutating func drop() {
        (presence, leaderboard, pending) = (.absent, Leaderboard(), Pending())
    }

    // MARK: Asking

    /// Nil: it is absent, or behind the revision.
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

    /// The place of a standing behind all changes through those of the row, and the one by which a user gets it, if any.
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

    /// Takes what was read of the changes that are not committed.
    mutating func setPending(_ changes: [ChallengesFeature.Change], behind base: Int64, through row: BoardRow) {
        guard case .ready(base) = presence else { return }
        pending = Pending(base: base, through: row.revision, mark: row.mark)
        for change in changes { pending.changes.set(change.standing, of: change.userId, on: leaderboard) }
    }

    // MARK: What has moved

    /// What has changed since it was last taken, with the number of changes; nil for nothing. It is published now.
    mutating func takeMovement(at now: Duration) -> (movement: Movement, changes: Int)? {
        guard case .ready(let present) = presence, leaderboard.hasMoved else { return nil }
        defer { (publishedRevision, publishedAt) = (present, now) }
        return (leaderboard.takeMovement(), Int(present - publishedRevision))
    }

    /// Where those of the users stand who have moved, with the revision of it.
    func entries(
        of users: some Sequence<ID<User>>, movedBy movement: SettledMovement
    ) -> (entries: [Leaderboard.Entry], revision: Int64) {
        guard case .ready(let revision) = presence else { return ([], 0) }
        return (users.compactMap { leaderboard.entry(of: $0, movedBy: movement) }, revision)
    }
}
