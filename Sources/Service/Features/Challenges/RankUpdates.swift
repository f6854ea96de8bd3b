import Domain
import Realtime
import Rows
import Threads
import Values

/// Sends connected users their own ranks when others, or they themselves, have moved them: at most once a second and
/// board, from the order in memory.
final class RankUpdates: Sendable {
    /// One board's changes on their way to those who are connected: each of them is looked up once.
    private struct Round {
        let board: Board
        let movement: SettledMovement
        let changes: Int
        let users: [String]
        var next = 0
    }

    private let boards: Leaderboards
    private let now: @Sendable () -> Timestamp
    private let users: @Sendable (_ tenant: String) -> [String]
    private let hasUsers: @Sendable (_ tenant: String) -> Bool
    private let deliver: @Sendable ([OwnState]) -> Void

    /// - Parameters:
    ///   - users: those of a tenant who have a stream open here.
    ///   - hasUsers: whether there are any.
    ///   - deliver: sends each state to all streams of its user.
    init(
        _ boards: Leaderboards, now: @escaping @Sendable () -> Timestamp,
        users: @escaping @Sendable (_ tenant: String) -> [String],
        hasUsers: @escaping @Sendable (_ tenant: String) -> Bool, deliver: @escaping @Sendable ([OwnState]) -> Void
    ) {
        self.boards = boards
        self.now = now
        self.users = users
        self.hasUsers = hasUsers
        self.deliver = deliver
    }

    /// How often the clock is looked at, and the pause between two passes of a round.
    private static let pause: Duration = .milliseconds(250)

    func start() {
        boards.thread.start { [self] in
            var rounds: [Round] = []
            // Between two passes of a round nobody shortens the pause.
            while rounds.isEmpty ? boards.thread.wait(atMost: Self.pause) : boards.thread.pause(for: Self.pause) {
                boards.bringUpToDate()
                for board in boards.moved { begin(board, &rounds) }
                advance(&rounds)
            }
        }
    }

    func stop() { boards.thread.stop() }

    /// Receives that this replica or another one has published a board's change.
    @Sendable func boardMoved(_ event: StreamEvent) {
        guard case .object(let members)? = try? JSONValue(parsing: event.data),
            let id = members.string("boardId"), let challengeId = members.string("challengeId"),
            let order = members.string("order").flatMap(Challenge.Order.init(rawValue:)),
            let revision = members.integer("revision")
        else { return }
        boards.changedElsewhere(
            Board.Key(tenant: event.tenant, id: id), ID(challengeId), order, revision: revision,
            isWanted: hasUsers(event.tenant))
    }

    /// Begins a round if the board's pause is over and its last one has ended; until then the board stays among those
    /// that have moved.
    private func begin(_ board: Board, _ rounds: inout [Round]) {
        let now = now()
        if let last = board.withLock({ $0.publishedAt }),
            now < last.adding(seconds: LeaderboardLimits.updatePauseSeconds)
        {
            return
        }
        guard !rounds.contains(where: { $0.board === board }) else { return }
        boards.settle(board)
        guard let (movement, changes) = board.takeMovement() else { return }
        board.withLock { $0.publishedAt = now }
        let users = users(board.key.tenant)
        guard !users.isEmpty else { return }
        rounds.append(Round(board: board, movement: movement, changes: changes, users: users))
    }

    /// Looks up some of those who are connected, and sends those who have moved their ranks.
    private func advance(_ rounds: inout [Round]) {
        var budget = LeaderboardLimits.lookedUpAtOnceMax
        while budget > 0, let round = rounds.first {
            let part = round.users[round.next...].prefix(min(budget, Self.lookedUpWithLock))
            let found = round.board.withLock { $0.entries(of: part.lazy.map { ID($0) }, movedBy: round.movement) }
            if !found.entries.isEmpty {
                deliver(
                    found.entries.map {
                        ChallengesFeature.ownRank(
                            $0, of: round.board.challengeId, round.board.order, tenant: round.board.key.tenant,
                            changes: round.changes, revision: found.revision)
                    })
            }
            budget -= part.count
            rounds[0].next += part.count
            if rounds[0].next == round.users.count { rounds.removeFirst() }
        }
    }

    /// Users who are looked up under one lock of the board: those who write wait for it.
    private static let lookedUpWithLock = 256
}
