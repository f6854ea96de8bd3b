import Domain
import Logging
import Threads
import Values

/// The leaderboards that this process has in memory. They are loaded from the table on demand, and caught up by the
/// revision that each transaction reads with the leaderboard's row. Leaderboards that are absent or behind are queried
/// in SQL.
final class Leaderboards: Sendable {
    /// Runs a read transaction as the tenant's service, on the calling thread.
    typealias Read = @Sendable (_ tenant: ID<Tenant>, _ body: (Transaction) throws -> Void) throws -> Void

    private struct State {
        var boards: [Board.Key: Board] = [:]
        /// The last use of each leaderboard, as a number of the use counter.
        var uses: [Board.Key: UInt64] = [:]
        var lastUse: UInt64 = 0
        /// Leaderboards that must be loaded, or are behind a change.
        var behind: Set<Board.Key> = []
        /// Leaderboards that may have moved.
        var moved: Set<Board.Key> = []
        var passes = 0

        var workCount: Int { behind.count + moved.count }

        /// Returns the leaderboard of a key, and creates it if necessary.
        mutating func board(_ key: Board.Key) -> Board {
            if let board = boards[key] { return board }
            let board = Board(key)
            boards[key] = board
            return board
        }

        mutating func noteMoved(_ board: Board) {
            if boards[board.key] != nil { moved.insert(board.key) }
        }

        mutating func remove(_ key: Board.Key) {
            boards.removeValue(forKey: key)?.withLock { $0.drop() }
            uses[key] = nil
            behind.remove(key)
            moved.remove(key)
        }
    }

    /// The thread that catches leaderboards up and publishes their moves (`RankUpdates`); woken when there is work.
    let thread = LoopThread("leaderboards")
    private let read: Read
    /// Memory of all leaderboards; 0 makes all queries use SQL. The least recently used leaderboards are evicted first.
    private let bytesMax: Int
    private let logger: Logger
    private let state = Locked(State())

    init(bytesMax: Int, logger: Logger, read: @escaping Read) {
        self.read = read
        self.bytesMax = bytesMax
        self.logger = logger
    }

    // MARK: Reading

    /// Reads a leaderboard's order, at least as new as the row; nil if it is not in memory.
    func read<Value>(_ row: BoardRow, _ tx: Transaction, _ body: (Leaderboard) -> Value) throws -> Value? {
        guard let board = use(row.key(in: tx.tenant)) else { return nil }
        try freshen(board, revision: row.revision, entries: row.entries, tx)
        return board.withLock { $0.leaderboard(atLeast: row.revision).map(body) }
    }

    /// Returns the place of a user's standing in a write transaction that has locked the challenge. It counts the
    /// changes of the row, and the transaction's own, as if they were committed. Nil if the leaderboard is not in
    /// memory.
    func place(
        of standing: Standing, _ user: ID<User>, behind row: BoardRow, with change: BoardRow?, _ tx: Transaction
    ) throws -> Place? {
        guard let board = use(row.key(in: tx.tenant)) else { return nil }
        // Between the lookup and the read, an earlier transaction of the group may be committed here.
        for _ in 0..<3 {
            switch board.withLock({ $0.place(of: standing, user, behind: row, with: change) }) {
            case .place(let place): return place
            case .absent: return nil
            case .unknown(let base):
                let missing = try ChallengesFeature.changes(of: row.id, after: base, through: row.revision, tx)
                guard let changes = missing else { return nil }
                board.withLock { $0.setPending(changes, behind: base, through: row) }
            }
        }
        return nil
    }

    /// Returns the leaderboard of a key and records the use; nil if leaderboards are not kept in memory.
    private func use(_ key: Board.Key) -> Board? {
        guard bytesMax > 0 else { return nil }
        return state.withLock { state in
            state.lastUse += 1
            state.uses[key] = state.lastUse
            return state.board(key)
        }
    }

    // MARK: Changes

    /// Adds work, and wakes the thread if there is more than before.
    private func enqueue(_ body: (inout State) -> Void) {
        let isMore = state.withLock { state in
            let before = state.workCount
            body(&state)
            return state.workCount > before
        }
        if isMore { thread.wake() }
    }

    /// Applies a committed change. Called on a writer's thread, before its request is answered.
    func committed(_ standing: Standing?, of user: ID<User>, _ key: Board.Key, revision: Int64) {
        guard let board = use(key) else { return }
        let isInMemory = board.withLock { state in
            let isInMemory = state.commit(standing, of: user, revision: revision)
            if !isInMemory { state.noteChange(revision) }
            return isInMemory
        }
        enqueue { state in
            if isInMemory { state.noteMoved(board) } else { state.behind.insert(key) }
        }
    }

    /// Records that another replica has changed a leaderboard.
    ///
    /// - Parameter isWanted: Whether to load the order if it is not in memory, because connected users are to receive
    ///   their ranks.
    func noteRemoteChange(_ key: Board.Key, revision: Int64, isWanted: Bool) {
        guard bytesMax > 0 else { return }
        enqueue { state in
            guard isWanted || state.boards[key] != nil else { return }
            state.board(key).withLock { $0.noteChange(revision) }
            // Checked even if it is not behind, because it may have been deleted.
            state.behind.insert(key)
        }
    }

    /// Records that a rank could not be sent because the leaderboard was not in memory. All ranks are sent once it is
    /// loaded.
    func publishLater(_ key: Board.Key, revision: Int64) {
        guard let board = use(key) else { return }
        board.withLock { $0.noteChange(revision) }
        enqueue { state in
            state.behind.insert(key)
            state.noteMoved(board)
        }
    }

    /// Reloads everything, because changes may have been lost or missed.
    func forget() {
        state.withLock { state in
            for key in Array(state.boards.keys) { state.remove(key) }
        }
    }

    func forget(_ key: Board.Key) { state.withLock { $0.remove(key) } }

    // MARK: Movement

    var moved: [Board] { state.withLock { state in state.moved.compactMap { state.boards[$0] } } }

    /// Removes a leaderboard from the moved ones. It is called before the movement is taken, so that no movement is
    /// lost.
    func settle(_ board: Board) { state.withLock { _ = $0.moved.remove(board.key) } }

    /// Whether leaderboards must be loaded, or ranks published.
    var hasWork: Bool { state.withLock { $0.workCount > 0 } }
}

// MARK: Catching up

extension Leaderboards {
    private func freshen(_ board: Board, revision: Int64, entries: Int, _ tx: Transaction) throws {
        switch board.presence {
        case .ready(let present) where present >= revision: return
        case .ready(let present):
            if let changes = try ChallengesFeature.changes(of: board.key.id, after: present, through: revision, tx) {
                board.withLock { $0.follow(changes, through: revision) }
                enqueue { $0.noteMoved(board) }
            } else {
                board.withLock { state in
                    state.drop()
                    state.noteChange(revision)
                }
                enqueue { $0.behind.insert(board.key) }
            }
        case .absent where entries <= LeaderboardLimits.loadedInlineMax:
            let fresh = try ChallengesFeature.leaderboard(board.key.id, entries: entries, tx)
            board.withLock { $0.install(fresh, revision: revision) }
        case .absent: enqueue { $0.behind.insert(board.key) }
        case .building: return
        }
    }

    /// Loads the leaderboards that are not in memory, and the missing changes of others. Called on the thread.
    func loadPendingBoards() {
        let (behind, passes) = state.withLock { state in
            defer { state.behind = [] }
            state.passes += 1
            return (state.behind.compactMap { state.boards[$0] }, state.passes)
        }
        var isTrimming = passes % 16 == 0
        for board in behind {
            let isNew = board.withLock { $0.beginBuilding() }
            if isNew { isTrimming = true }
            do {
                try isNew ? build(board) : catchUp(board)
            } catch {
                logger.warning(
                    isNew ? "A leaderboard could not be read." : "A leaderboard is not up to date.",
                    metadata: ["reason": "\(error)"])
                if isNew { board.withLock { $0.cancelBuilding() } }
            }
        }
        if isTrimming { trim() }
    }

    /// Loads a leaderboard from the table.
    private func build(_ board: Board) throws {
        try read(board.key.tenant) { tx in
            guard let extent = try ChallengesFeature.extent(of: board.key.id, tx) else { return forget(board.key) }
            let fresh = try ChallengesFeature.leaderboard(board.key.id, entries: extent.entries, tx)
            // It alone exceeds the limit of all. It stays marked as being loaded, and is queried in SQL.
            guard fresh.bytes <= bytesMax else { return }
            board.withLock { $0.install(fresh, revision: extent.revision) }
        }
        // Applies the changes that were committed meanwhile.
        try catchUp(board)
    }

    func catchUp(_ board: Board) throws {
        guard board.isReady else { return }
        try read(board.key.tenant) { tx in
            guard let extent = try ChallengesFeature.extent(of: board.key.id, tx) else { return forget(board.key) }
            try freshen(board, revision: extent.revision, entries: extent.entries, tx)
        }
        enqueue { $0.noteMoved(board) }
    }

    /// Evicts the least recently used leaderboards if there are too many.
    private func trim() {
        let (boards, uses) = state.withLock { ($0.boards, $0.uses) }
        var (count, bytes) = (boards.count, boards.values.reduce(0) { $0 + $1.withLock { $0.leaderboard.bytes } })
        func exceedsLimits() -> Bool { bytes > bytesMax || count > LeaderboardLimits.residentBoardsMax }
        guard exceedsLimits() else { return }
        for board in boards.values.sorted(by: { uses[$0.key] ?? 0 < uses[$1.key] ?? 0 }) {
            guard exceedsLimits() else { return }
            (count, bytes) = (count - 1, bytes - board.withLock { $0.leaderboard.bytes })
            forget(board.key)
        }
    }

    var ready: [Board] { state.withLock { Array($0.boards.values) }.filter(\.isReady) }

    func write(to text: inout MetricsText) {
        let sizes = ready.map { $0.withLock { ($0.leaderboard.count, $0.leaderboard.bytes) } }
        text.single("bellhop_leaderboards", .gauge, "Leaderboards in memory.", value: sizes.count)
        text.single(
            "bellhop_leaderboard_entries", .gauge, "Entries of the leaderboards in memory.",
            value: sizes.reduce(0) { $0 + $1.0 })
        text.single(
            "bellhop_leaderboard_bytes", .gauge, "Bytes of the leaderboards in memory.",
            value: sizes.reduce(0) { $0 + $1.1 })
    }
}
