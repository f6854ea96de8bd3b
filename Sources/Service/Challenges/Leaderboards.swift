import Database
import Domain
import Foundation
import Logging
import Realtime

/// The boards that this process has in memory: read from the table by need, kept right by the number of changes that
/// each transaction reads with the board's row, and told of to those who are connected.
///
/// Nothing here decides anything: the table does. A board that is not here, or behind what a transaction sees, is asked
/// for in SQL.
///
/// `@unchecked Sendable`: the variables are only touched while `condition` is locked, those of the rounds on their
/// thread.
final class Leaderboards: @unchecked Sendable {
    /// What the process around gives: see `App`.
    struct Surroundings: Sendable {
        let now: @Sendable () -> Timestamp
        /// One read transaction as the tenant's service, on the calling thread.
        let read: @Sendable (_ tenant: String, _ body: (Transaction) throws -> Void) throws -> Void
        /// Memory of all boards. What was used longest ago goes first, and is read again when it is asked for.
        let bytesMax: Int
        let logger: Logger
    }

    /// Those who have a stream open here.
    struct Audience: Sendable {
        let users: @Sendable (_ tenant: String) -> [String]
        let hasUsers: @Sendable (_ tenant: String) -> Bool
        /// Sends to all streams of each.
        let tell: @Sendable ([OwnState]) -> Void

        static let nobody = Audience(users: { _ in [] }, hasUsers: { _ in false }, tell: { _ in })
    }

    let surroundings: Surroundings
    /// Guards everything below but the rounds; signalled when there is work.
    let condition = NSCondition()
    private var boards: [Board.Key: Board] = [:]
    private var uses: UInt64 = 0
    /// Boards to be read, oldest wish first.
    private var wanted: [Board] = []
    /// Boards that are behind a change.
    private var behind: Set<Board.Key> = []
    /// Boards that may have moved.
    private var moved: Set<Board.Key> = []
    private var audience = Audience.nobody
    private var isWoken = false
    private var isStopping = false
    private var isRunning = false
    /// When those who are connected were last told of each board.
    private var toldAt: [Board.Key: Timestamp] = [:]
    /// Of the thread that tells.
    var rounds: [Round] = []
    private var passes = 0

    init(_ surroundings: Surroundings) { self.surroundings = surroundings }

    /// False: nothing is kept in memory, and all is asked in SQL.
    private var isOn: Bool { surroundings.bytesMax > 0 }

    // MARK: Reading

    /// Asks a board's order, at least as new as the row.
    ///
    /// - Returns: nil where it is not in memory: to be asked in SQL.
    func read<Value>(
        _ row: BoardRow, _ order: Challenge.Order, _ tx: Transaction, _ body: (Leaderboard) -> Value
    ) throws -> Value? {
        guard isOn else { return nil }
        let board = find(row, order, tx.tenant)
        try freshen(board, revision: row.revision, entries: row.entries, tx)
        return board.read(atLeast: row.revision, use: nextUse(), body)
    }

    /// The place of a user's standing in a write transaction, which holds the challenge: behind the changes of the row
    /// and, if the transaction makes one, behind that. As if all were committed.
    ///
    /// - Returns: nil where the board is not in memory: to be asked in SQL.
    func place(
        of standing: Standing, _ user: ID<User>, _ order: Challenge.Order, behind row: BoardRow,
        with change: BoardRow?, _ tx: Transaction
    ) throws -> Place? {
        guard isOn else { return nil }
        let board = find(row, order, tx.tenant)
        let use = nextUse()
        // Another transaction may have gone on between the question and the reading; it holds the challenge no more.
        for _ in 0..<3 {
            switch board.place(of: standing, user, behind: row, with: change, use: use) {
            case .place(let place): return place
            case .absent: return nil
            case .unknown(let base):
                let limit = LeaderboardLimits.caughtUpMax
                let changes = try ChallengesFeature.changes(
                    of: row.id, after: base, through: row.revision, limit: limit + 1, tx)
                guard changes.count <= limit else { return nil }
                board.setPending(changes, behind: base, through: row)
            }
        }
        return nil
    }

    /// A change is committed. Called on a writer's thread, before its request is answered.
    func committed(
        _ standing: Standing?, of user: ID<User>, _ row: BoardRow, _ order: Challenge.Order, tenant: String
    ) {
        guard isOn else { return }
        let board = find(row, order, tenant)
        let isHere = board.commit(standing, of: user, revision: row.revision)
        if !isHere { board.noteChange(row.revision) }
        condition.withLock {
            if isHere {
                noteMoved(board.key)
            } else {
                want(board)
                noteBehind(board.key)
            }
        }
    }

    /// Another replica has changed a board.
    func heard(_ key: Board.Key, _ challengeId: ID<Challenge>, _ order: Challenge.Order, revision: Int64) {
        guard isOn else { return }
        condition.withLock {
            guard boards[key] != nil || audience.hasUsers(key.tenant) else { return }
            let board = boards[key] ?? Board(key, challengeId: challengeId, order: order)
            boards[key] = board
            board.noteChange(revision)
            switch board.present {
            // Looked at also if it is not behind: it may be gone.
            case .ready: noteBehind(key)
            case .absent, .building: want(board)
            }
        }
    }

    /// What is committed may be lost, or was missed: all is read again.
    func forget() {
        condition.withLock {
            for board in boards.values { board.drop() }
            (boards, toldAt) = ([:], [:])
        }
    }

    func forget(_ row: BoardRow, tenant: String) { forget(Board.Key(tenant: tenant, id: row.id)) }

    private func forget(_ key: Board.Key) { condition.withLock { remove(key) } }

    /// Call with the lock held.
    private func remove(_ key: Board.Key) {
        boards.removeValue(forKey: key)?.drop()
        toldAt[key] = nil
    }

    /// Somebody was not told of a board that is not in memory: all are, once it is.
    func tellLater(_ row: BoardRow, _ order: Challenge.Order, tenant: String) {
        guard isOn else { return }
        let board = find(row, order, tenant)
        board.noteChange(row.revision)
        condition.withLock {
            want(board)
            noteMoved(board.key)
        }
    }

    private func find(_ row: BoardRow, _ order: Challenge.Order, _ tenant: String) -> Board {
        let key = Board.Key(tenant: tenant, id: row.id)
        return condition.withLock {
            if let board = boards[key] { return board }
            let board = Board(key, challengeId: row.challengeId, order: order)
            boards[key] = board
            return board
        }
    }

    private func nextUse() -> UInt64 {
        condition.withLock {
            uses += 1
            return uses
        }
    }

    /// Call with the lock held.
    private func want(_ board: Board) {
        guard board.beginBuilding() else { return }
        wanted.append(board)
        wake()
    }

    /// Call with the lock held.
    private func noteMoved(_ key: Board.Key) {
        if moved.insert(key).inserted { wake() }
    }

    /// Call with the lock held.
    private func noteBehind(_ key: Board.Key) {
        if behind.insert(key).inserted { wake() }
    }

    var presentAudience: Audience { condition.withLock { audience } }

    /// When those who are connected were last told of a board.
    func lastTold(_ key: Board.Key) -> Timestamp? { condition.withLock { toldAt[key] } }

    func note(_ key: Board.Key, toldAt now: Timestamp) { condition.withLock { toldAt[key] = now } }

    /// Call with the lock held.
    private func wake() {
        isWoken = true
        condition.signal()
    }

    // MARK: Getting up to date

    private func freshen(_ board: Board, revision: Int64, entries: Int, _ tx: Transaction) throws {
        switch board.present {
        case .ready(let present) where present >= revision: return
        case .ready(let present):
            let limit = LeaderboardLimits.caughtUpMax
            let changes = try ChallengesFeature.changes(
                of: board.key.id, after: present, through: revision, limit: limit + 1, tx)
            if changes.count > limit {
                board.drop()
                board.noteChange(revision)
                condition.withLock { want(board) }
            } else {
                board.follow(changes, through: revision)
                condition.withLock { noteMoved(board.key) }
            }
        case .absent where entries <= LeaderboardLimits.builtAtOnceMax:
            board.install(try Self.load(board.key.id, entries: entries, tx), revision: revision)
        case .absent: condition.withLock { want(board) }
        case .building: return
        }
    }

    /// Rows of one statement, so that no answer of a server takes more memory than a few megabytes.
    private static let loadedAtOnce = 20_000

    private static func load(_ boardId: String, entries: Int, _ tx: Transaction) throws -> Leaderboard {
        // A little more, so that the first newcomers find room.
        var builder = Leaderboard.Builder(countMax: entries + entries / 16)
        var last: Standing?
        while true {
            var count = 0
            try ChallengesFeature.ordered(boardId, after: last, limit: loadedAtOnce, tx) { user, standing in
                builder.append(user, standing)
                last = standing
                count += 1
            }
            if count < loadedAtOnce { return builder.finish() }
        }
    }

    /// Reads a board from the table.
    private func build(_ board: Board) {
        do {
            try surroundings.read(board.key.tenant) { tx in
                guard let extent = try ChallengesFeature.extent(of: board.key.id, tx) else { return forget(board.key) }
                let fresh = try Self.load(board.key.id, entries: extent.entries, tx)
                // Alone larger than all may be together: it stays as if it were being read, and is asked for in SQL.
                guard fresh.bytes <= surroundings.bytesMax else { return }
                board.install(fresh, revision: extent.revision)
            }
            // What was committed meanwhile.
            try catchUp(board)
        } catch {
            surroundings.logger.warning("A leaderboard could not be read.", metadata: ["reason": "\(error)"])
            board.giveUpBuilding()
        }
    }

    private func catchUp(_ board: Board) throws {
        guard case .ready = board.present else { return }
        try surroundings.read(board.key.tenant) { tx in
            guard let extent = try ChallengesFeature.extent(of: board.key.id, tx) else { return forget(board.key) }
            try freshen(board, revision: extent.revision, entries: extent.entries, tx)
        }
        condition.withLock { noteMoved(board.key) }
    }

    // MARK: Soundness

    /// Where boards in memory, as a reader finds them, differ from the table, while nobody writes.
    func differences(in db: Connection) throws -> [String] {
        try condition.withLock({ Array(boards.values) }).flatMap { board in
            try catchUp(board)
            let copy = board.read(atLeast: 0, use: 0) { $0 }
            return try copy.map { try ChallengesFeature.differences(of: $0, board.key.tenant, board.key.id, db) } ?? []
        }
    }

    /// Those that are in memory.
    private var ready: [Board] {
        condition.withLock { Array(boards.values) }.filter { if case .ready = $0.present { true } else { false } }
    }

    var count: Int { ready.count }

    func write(to text: inout MetricsText) {
        let sizes = ready.map(\.size)
        text.single("bellhop_leaderboards", .gauge, "Leaderboards in memory.", Double(sizes.count))
        text.single(
            "bellhop_leaderboard_entries", .gauge, "Their entries.", Double(sizes.reduce(0) { $0 + $1.entries }))
        text.single("bellhop_leaderboard_bytes", .gauge, "Their memory.", Double(sizes.reduce(0) { $0 + $1.bytes }))
    }

    /// Whether anybody has yet to be told of something.
    var hasSomethingToTell: Bool {
        condition.withLock { isWoken || !wanted.isEmpty || !behind.isEmpty || !moved.isEmpty }
    }

    // MARK: The thread

    private struct Work {
        var wanted: [Board] = []
        var behind: [Board] = []
        var moved: [Board] = []
    }

    /// How often the clock is looked at, and the pause between two passes of a round.
    private static let pauseSeconds = 0.25

    func start(telling audience: Audience) {
        condition.withLock {
            self.audience = audience
            (isRunning, isStopping) = (true, false)
        }
        let thread = Thread { [self] in
            while let work = waitForWork() { run(work) }
            condition.withLock {
                isRunning = false
                condition.broadcast()
            }
        }
        thread.name = "leaderboards"
        thread.start()
    }

    func stop() {
        condition.withLock {
            isStopping = true
            condition.broadcast()
            while isRunning { condition.wait() }
        }
    }

    /// Nil at the end.
    private func waitForWork() -> Work? {
        let isRoundOpen = !rounds.isEmpty
        return condition.withLock {
            let deadline = Date(timeIntervalSinceNow: Self.pauseSeconds)
            // Between two passes of a round nobody's wish shortens the pause.
            while !isStopping, isRoundOpen || !isWoken, condition.wait(until: deadline) {}
            if isStopping { return nil }
            defer { (isWoken, wanted, behind) = (false, [], []) }
            moved = moved.filter { boards[$0] != nil }
            return Work(
                wanted: wanted, behind: behind.compactMap { boards[$0] }, moved: moved.compactMap { boards[$0] })
        }
    }

    private func run(_ work: Work) {
        for board in work.wanted { build(board) }
        for board in work.behind {
            do {
                try catchUp(board)
            } catch {
                surroundings.logger.warning("A leaderboard is behind.", metadata: ["reason": "\(error)"])
            }
        }
        for board in work.moved {
            // First, or a change that comes while what has moved is taken would be forgotten.
            condition.withLock { _ = moved.remove(board.key) }
            if !beginRound(board) { condition.withLock { _ = moved.insert(board.key) } }
        }
        advanceRounds()
        passes += 1
        if !work.wanted.isEmpty || passes % 16 == 0 { trim() }
    }

    /// Lets go of the boards that were used longest ago, when there are too many.
    private func trim() {
        var kept = condition.withLock { boards }
        var bytes = kept.values.reduce(0) { $0 + $1.size.bytes }
        guard bytes > surroundings.bytesMax || kept.count > LeaderboardLimits.residentBoardsMax else {
            return
        }
        for board in kept.values.sorted(by: { $0.lastUsed < $1.lastUsed }) {
            guard bytes > surroundings.bytesMax || kept.count > LeaderboardLimits.residentBoardsMax
            else { break }
            bytes -= board.size.bytes
            kept[board.key] = nil
            condition.withLock { remove(board.key) }
        }
    }
}
