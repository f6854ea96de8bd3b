import Database
import Domain
import Logging
import Rows
import Threads
import Values

/// The boards that this process has in memory: read from the table by need, and brought up to date by the number of changes
/// that each transaction reads with the board's row.
///
/// Nothing here decides anything: the table does. A board that is not here, or behind what a transaction sees, is asked
/// for in SQL.
final class Leaderboards: Sendable {
    /// One read transaction as the tenant's service, on the calling thread.
    typealias Read = @Sendable (_ tenant: String, _ body: (Transaction) throws -> Void) throws -> Void

    private struct State {
        var boards: [Board.Key: Board] = [:]
        /// When each was last asked for, in numbers of questions.
        var uses: [Board.Key: UInt64] = [:]
        var lastUse: UInt64 = 0
        /// Boards to be read, oldest wish first.
        var wanted: [Board] = []
        /// Boards that are behind a change.
        var behind: Set<Board.Key> = []
        /// Boards that may have moved.
        var moved: Set<Board.Key> = []
        var passes = 0

        var workCount: Int { wanted.count + behind.count + moved.count }

        /// The board of a key, made if need be.
        mutating func board(_ key: Board.Key, _ challengeId: ID<Challenge>, _ order: Challenge.Order) -> Board {
            if let board = boards[key] { return board }
            let board = Board(key, challengeId: challengeId, order: order)
            boards[key] = board
            return board
        }

        mutating func want(_ board: Board) {
            if board.withLock({ $0.beginBuilding() }) { wanted.append(board) }
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

    /// Brings boards up to date and publishes what has moved (`RankUpdates`); woken when there is something to do.
    let thread = LoopThread("leaderboards")
    private let read: Read
    /// Memory of all boards; 0: everything is asked in SQL. What was used longest ago goes first, and is read again when
    /// it is asked for.
    private let bytesMax: Int
    private let logger: Logger
    private let state = Locked(State())

    init(bytesMax: Int, logger: Logger, read: @escaping Read) {
        self.read = read
        self.bytesMax = bytesMax
        self.logger = logger
    }

    private var isOn: Bool { bytesMax > 0 }

    // MARK: Asking

    /// Asks a board's order, at least as new as the row.
    ///
    /// - Returns: nil where it is not in memory: to be asked in SQL.
    func read<Value>(
        _ row: BoardRow, _ order: Challenge.Order, _ tx: Transaction, _ body: (Leaderboard) -> Value
    ) throws -> Value? {
        guard isOn else { return nil }
        let board = use(row, order, tx.tenant)
        try freshen(board, revision: row.revision, entries: row.entries, tx)
        return board.withLock { $0.leaderboard(atLeast: row.revision).map(body) }
    }

    /// The place of a user's standing in a write transaction, which has locked the challenge: behind the changes of the
    /// row and, if the transaction makes one, behind that. As if all were committed.
    ///
    /// - Returns: nil where the board is not in memory: to be asked in SQL.
    func place(
        of standing: Standing, _ user: ID<User>, _ order: Challenge.Order, behind row: BoardRow,
        with change: BoardRow?, _ tx: Transaction
    ) throws -> Place? {
        guard isOn else { return nil }
        let board = use(row, order, tx.tenant)
        // Between the question and the reading an earlier transaction of the group may be committed here.
        for _ in 0..<3 {
            switch board.withLock({ $0.place(of: standing, user, behind: row, with: change) }) {
            case .place(let place): return place
            case .absent: return nil
            case .unknown(let base):
                guard let changes = try changes(of: board, after: base, through: row.revision, tx) else { return nil }
                board.withLock { $0.setPending(changes, behind: base, through: row) }
            }
        }
        return nil
    }

    private func use(_ row: BoardRow, _ order: Challenge.Order, _ tenant: String) -> Board {
        let key = Board.Key(tenant: tenant, id: row.id)
        return state.withLock { state in
            state.lastUse += 1
            state.uses[key] = state.lastUse
            return state.board(key, row.challengeId, order)
        }
    }

    // MARK: Changes

    /// Changes what there is to do, and wakes the thread if there is more than before.
    private func enqueue(_ body: (inout State) -> Void) {
        let isMore = state.withLock { state in
            let before = state.workCount
            body(&state)
            return state.workCount > before
        }
        if isMore { thread.wake() }
    }

    /// Takes a change that is committed. Called on a writer's thread, before its request is answered.
    func committed(
        _ standing: Standing?, of user: ID<User>, _ row: BoardRow, _ order: Challenge.Order, tenant: String
    ) {
        guard isOn else { return }
        let board = use(row, order, tenant)
        let isHere = board.withLock { state in
            let isHere = state.commit(standing, of: user, revision: row.revision)
            if !isHere { state.noteChange(row.revision) }
            return isHere
        }
        enqueue { state in
            if isHere {
                state.noteMoved(board)
            } else {
                state.want(board)
                state.behind.insert(board.key)
            }
        }
    }

    /// Another replica has changed a board.
    ///
    /// - Parameter isWanted: whether the order is read if it is not in memory, for those who are to be sent their ranks.
    func changedElsewhere(
        _ key: Board.Key, _ challengeId: ID<Challenge>, _ order: Challenge.Order, revision: Int64, isWanted: Bool
    ) {
        guard isOn else { return }
        enqueue { state in
            guard isWanted || state.boards[key] != nil else { return }
            let board = state.board(key, challengeId, order)
            board.withLock { $0.noteChange(revision) }
            // Looked at also if it is not behind: it may be gone.
            if board.isReady { state.behind.insert(key) } else { state.want(board) }
        }
    }

    /// Somebody was not sent the rank on a board that is not in memory: all are, once it is.
    func publishLater(_ row: BoardRow, _ order: Challenge.Order, tenant: String) {
        guard isOn else { return }
        let board = use(row, order, tenant)
        board.withLock { $0.noteChange(row.revision) }
        enqueue { state in
            state.want(board)
            state.noteMoved(board)
        }
    }

    /// What is committed may be lost, or was missed: all is read again.
    func forget() {
        state.withLock { state in
            for key in Array(state.boards.keys) { state.remove(key) }
        }
    }

    func forget(_ row: BoardRow, tenant: String) { forget(Board.Key(tenant: tenant, id: row.id)) }

    private func forget(_ key: Board.Key) { state.withLock { $0.remove(key) } }

    // MARK: What has moved

    /// Boards that may have moved.
    var moved: [Board] { state.withLock { state in state.moved.compactMap { state.boards[$0] } } }

    /// Takes a board from those that may have moved: before its movement is taken, so that none is lost.
    func settle(_ board: Board) { state.withLock { _ = $0.moved.remove(board.key) } }

    /// Whether boards are to be read, or ranks to be published.
    var hasWork: Bool { state.withLock { $0.workCount > 0 } }
}

// MARK: Getting up to date

extension Leaderboards {
    /// Nil: so many that reading the board anew is cheaper.
    private func changes(
        of board: Board, after: Int64, through: Int64, _ tx: Transaction
    ) throws -> [ChallengesFeature.Change]? {
        let limit = LeaderboardLimits.caughtUpMax
        let changes = try ChallengesFeature.changes(
            of: board.key.id, after: after, through: through, limit: limit + 1, tx)
        return changes.count > limit ? nil : changes
    }

    private func freshen(_ board: Board, revision: Int64, entries: Int, _ tx: Transaction) throws {
        switch board.presence {
        case .ready(let present) where present >= revision: return
        case .ready(let present):
            if let changes = try changes(of: board, after: present, through: revision, tx) {
                board.withLock { $0.follow(changes, through: revision) }
                enqueue { $0.noteMoved(board) }
            } else {
                board.withLock { state in
                    state.drop()
                    state.noteChange(revision)
                }
                enqueue { $0.want(board) }
            }
        case .absent where entries <= LeaderboardLimits.builtAtOnceMax:
            let fresh = try ChallengesFeature.leaderboard(board.key.id, entries: entries, tx)
            board.withLock { $0.install(fresh, revision: revision) }
        case .absent: enqueue { $0.want(board) }
        case .building: return
        }
    }

    /// Reads the boards that are wanted, and what others lack. On the thread.
    func bringUpToDate() {
        let (wanted, behind, isTrimming) = state.withLock { state in
            defer { (state.wanted, state.behind) = ([], []) }
            state.passes += 1
            return (
                state.wanted, state.behind.compactMap { state.boards[$0] },
                !state.wanted.isEmpty || state.passes % 16 == 0
            )
        }
        for board in wanted {
            do {
                try build(board)
            } catch {
                logger.warning("A leaderboard could not be read.", metadata: ["reason": "\(error)"])
                board.withLock { $0.giveUpBuilding() }
            }
        }
        for board in behind {
            do {
                try catchUp(board)
            } catch {
                logger.warning("A leaderboard is behind.", metadata: ["reason": "\(error)"])
            }
        }
        if isTrimming { trim() }
    }

    /// Reads a board from the table.
    private func build(_ board: Board) throws {
        try read(board.key.tenant) { tx in
            guard let extent = try ChallengesFeature.extent(of: board.key.id, tx) else { return forget(board.key) }
            let fresh = try ChallengesFeature.leaderboard(board.key.id, entries: extent.entries, tx)
            // Alone larger than all may be together: it stays as if it were being read, and is asked for in SQL.
            guard fresh.bytes <= bytesMax else { return }
            board.withLock { $0.install(fresh, revision: extent.revision) }
        }
        // What was committed meanwhile.
        try catchUp(board)
    }

    private func catchUp(_ board: Board) throws {
        guard board.isReady else { return }
        try read(board.key.tenant) { tx in
            guard let extent = try ChallengesFeature.extent(of: board.key.id, tx) else { return forget(board.key) }
            try freshen(board, revision: extent.revision, entries: extent.entries, tx)
        }
        enqueue { $0.noteMoved(board) }
    }

    /// Lets go of the boards that were used longest ago, when there are too many.
    private func trim() {
        let (boards, uses) = state.withLock { ($0.boards, $0.uses) }
        var (count, bytes) = (boards.count, boards.values.reduce(0) { $0 + $1.bytes })
        func isTooMuch() -> Bool { bytes > bytesMax || count > LeaderboardLimits.residentBoardsMax }
        guard isTooMuch() else { return }
        for board in boards.values.sorted(by: { uses[$0.key] ?? 0 < uses[$1.key] ?? 0 }) {
            guard isTooMuch() else { return }
            (count, bytes) = (count - 1, bytes - board.bytes)
            forget(board.key)
        }
    }

    // MARK: Soundness

    /// Where boards in memory, as a reader finds them, differ from the table, while nobody writes.
    func differences(in db: Connection) throws -> [String] {
        try state.withLock({ Array($0.boards.values) }).flatMap { board in
            try catchUp(board)
            return try board.withLock { $0.leaderboard(atLeast: 0) }.map {
                try ChallengesFeature.differences(of: $0, board.key.tenant, board.key.id, db)
            } ?? []
        }
    }

    /// Those that are in memory.
    private var ready: [Board] { state.withLock { Array($0.boards.values) }.filter(\.isReady) }

    var count: Int { ready.count }

    func write(to text: inout MetricsText) {
        let sizes = ready.map { $0.withLock { ($0.leaderboard.count, $0.leaderboard.bytes) } }
        text.single("bellhop_leaderboards", .gauge, "Leaderboards in memory.", Double(sizes.count))
        text.single("bellhop_leaderboard_entries", .gauge, "Their entries.", Double(sizes.reduce(0) { $0 + $1.0 }))
        text.single("bellhop_leaderboard_bytes", .gauge, "Their memory.", Double(sizes.reduce(0) { $0 + $1.1 }))
    }
}
