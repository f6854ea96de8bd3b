import Domain
import Foundation

/// One board in memory, as of one of its changes.
///
/// The changes of a board are numbered in the order of their commits (`BoardRow.revision`), so that whoever has read
/// the row knows whether this is behind it, and which changes are missing.
///
/// `@unchecked Sendable`: the variables are only touched while `lock` is held.
final class Board: @unchecked Sendable {
    struct Key: Hashable, Sendable {
        let tenant: String
        let id: String
    }

    enum State: Sendable {
        case absent
        /// Somebody reads it beside the requests.
        case building
        /// As of this change.
        case ready(Int64)
    }

    let key: Key
    let challengeId: ID<Challenge>
    let order: Challenge.Order
    /// Guards everything below.
    private let lock = NSLock()
    private var state = State.absent
    private var leaderboard = Leaderboard()
    /// The change as of which it was read.
    private var installedRevision: Int64 = 0
    /// The last change that those who are connected were told of.
    private var toldRevision: Int64 = 0
    /// Changes that are not committed, behind `pendingBase`.
    private var pending = PendingChanges()
    private var pendingBase: Int64 = -1
    private var pendingThrough: Int64 = -1
    private var pendingMark: Int64 = 0
    private var lastUse: UInt64 = 0
    /// Changes came while it was not here.
    private var isUntold = false

    init(_ key: Key, challengeId: ID<Challenge>, order: Challenge.Order) {
        self.key = key
        self.challengeId = challengeId
        self.order = order
    }

    var present: State { lock.withLock { state } }

    // MARK: Following what is committed

    /// False: it is there already, or somebody is at it.
    func beginBuilding() -> Bool {
        lock.withLock {
            guard case .absent = state else { return false }
            state = .building
            return true
        }
    }

    func giveUpBuilding() {
        lock.withLock { if case .building = state { state = .absent } }
    }

    /// There is a change that nobody was told of. If what was read holds it already, nobody knows whom it has moved.
    func noteChange(_ revision: Int64) {
        lock.withLock {
            switch state {
            case .absent, .building: isUntold = true
            case .ready where revision <= installedRevision: leaderboard.noteUnknownMovement()
            case .ready: return
            }
        }
    }

    /// Takes the order as it was read, unless a newer one is here.
    func install(_ fresh: Leaderboard, revision: Int64) {
        lock.withLock {
            if case .ready(let present) = state, present >= revision { return }
            // What was to be told of the one before is not known of this one.
            let isUnknown = isUntold || leaderboard.hasMoved
            (leaderboard, isUntold) = (fresh, false)
            if isUnknown { leaderboard.noteUnknownMovement() }
            (installedRevision, toldRevision) = (revision, revision - (isUnknown ? 1 : 0))
            state = .ready(revision)
        }
    }

    /// Takes what has changed through a revision, as it was read behind the one that was here then.
    ///
    /// Others may have followed some of it meanwhile: these rows are as new as theirs, or newer.
    func follow(_ changes: [ChallengesFeature.Change], through revision: Int64) {
        lock.withLock {
            guard case .ready(let present) = state, present < revision else { return }
            for change in changes { leaderboard.set(change.standing, of: change.userId) }
            state = .ready(revision)
        }
    }

    /// Takes one committed change. False: there is one before it that has not come; it is to be read.
    func commit(_ standing: Standing?, of user: ID<User>, revision: Int64) -> Bool {
        lock.withLock {
            guard case .ready(let present) = state else { return false }
            guard present + 1 == revision else {
                if revision <= installedRevision { leaderboard.noteUnknownMovement() }
                return present >= revision
            }
            leaderboard.set(standing, of: user)
            state = .ready(revision)
            return true
        }
    }

    /// Forgets the order, which is read again by whoever asks next.
    func drop() {
        lock.withLock {
            state = .absent
            leaderboard = Leaderboard()
            (pending, pendingBase, pendingThrough) = (PendingChanges(), -1, -1)
        }
    }

    // MARK: Asking

    /// Nil: it is not here, or behind the revision.
    func read<Value>(atLeast revision: Int64, use: UInt64, _ body: (Leaderboard) -> Value) -> Value? {
        lock.withLock {
            guard case .ready(let present) = state, present >= revision else { return nil }
            lastUse = use
            return body(leaderboard)
        }
    }

    var size: (entries: Int, bytes: Int) { lock.withLock { (leaderboard.count, leaderboard.bytes) } }
    var lastUsed: UInt64 { lock.withLock { lastUse } }

    // MARK: Places behind what is not committed

    enum PendingAnswer {
        case place(Place)
        /// The changes with `base < revision ≤ that of the row` must be read first.
        case unknown(base: Int64)
        case absent
    }

    /// The place that a standing has with all changes through those of the row, and with one more by which a user gets
    /// it.
    ///
    /// - Parameter change: the change that the transaction makes; nil if it makes none.
    func place(
        of standing: Standing, _ user: ID<User>, behind row: BoardRow, with change: BoardRow?, use: UInt64
    ) -> PendingAnswer {
        lock.withLock {
            guard case .ready(let base) = state, base <= row.revision else { return .absent }
            lastUse = use
            if base == row.revision {
                (pending, pendingBase) = (PendingChanges(), base)
            } else if pendingBase != base || pendingThrough != row.revision || pendingMark != row.mark {
                return .unknown(base: base)
            }
            (pendingThrough, pendingMark) = (row.revision, row.mark)
            if let change {
                pending.set(standing, of: user, on: leaderboard)
                (pendingThrough, pendingMark) = (change.revision, change.mark)
            }
            return .place(pending.place(of: standing, on: leaderboard))
        }
    }

    /// Takes what was read of the changes that are not committed.
    func setPending(_ changes: [ChallengesFeature.Change], behind base: Int64, through row: BoardRow) {
        lock.withLock {
            guard case .ready(let present) = state, present == base else { return }
            pending = PendingChanges()
            for change in changes { pending.set(change.standing, of: change.userId, on: leaderboard) }
            (pendingBase, pendingThrough, pendingMark) = (base, row.revision, row.mark)
        }
    }

    // MARK: Telling

    /// What has changed since it was last taken, with the number of changes; nil for nothing.
    func takeMovement() -> (movement: SettledMovement, changes: Int)? {
        let taken: (movement: Movement, changes: Int)? = lock.withLock {
            guard case .ready(let present) = state, leaderboard.hasMoved else { return nil }
            defer { toldRevision = present }
            return (leaderboard.takeMovement(), Int(present - toldRevision))
        }
        // Sorted with nobody waiting.
        return taken.map { (SettledMovement($0.movement), $0.changes) }
    }

    /// Where those of the users stand who have moved, with the revision of it.
    func entries(
        of users: some Sequence<ID<User>>, movedBy movement: SettledMovement
    ) -> (entries: [Leaderboard.Entry], revision: Int64) {
        lock.withLock {
            guard case .ready(let revision) = state else { return ([], 0) }
            return (users.compactMap { leaderboard.entry(of: $0, movedBy: movement) }, revision)
        }
    }
}
