import Domain
import Realtime
import Threads
import Values

/// The updates of connected users' own ranks when their entries have moved: at most once per second and leaderboard,
/// from the order in memory.
struct RankUpdates: Sendable {
    /// One leaderboard's changes that are being delivered to connected users. Each user is looked up once.
    private struct Round {
        let board: Board
        let movement: SettledMovement
        let changes: Int
        let users: [String]
        var next = 0
    }

    let boards: Leaderboards
    let log: LogIdentity
    let clock: Clock
    /// Returns the users of a tenant with a stream open here.
    let users: @Sendable (_ tenant: ID<Tenant>) -> [String]
    /// Whether there are any.
    let hasUsers: @Sendable (_ tenant: ID<Tenant>) -> Bool
    /// Sends each state to all streams of its user.
    let deliver: @Sendable ([OwnState]) -> Void

    func start() {
        // The pause between two checks, and between two passes of a round.
        let pause = clock.pause(.milliseconds(250))
        boards.thread.start {
            var rounds: [Round] = []
            // Between two passes of a round, the pause cannot be shortened.
            while rounds.isEmpty ? boards.thread.wait(atMost: pause) : boards.thread.pause(for: pause) {
                boards.loadPendingBoards()
                for board in boards.moved { begin(board, &rounds) }
                advance(&rounds)
            }
        }
    }

    func stop() { boards.thread.stop() }

    /// Handles the event that this or another replica has published a leaderboard's change.
    @Sendable func handleBoardChange(_ event: StreamEvent) {
        guard case .object(let members)? = try? JSONValue(parsing: event.data),
            let id = members.string("boardId"), let challengeId = members.string("challengeId"),
            let order = members.string("order").flatMap(Challenge.Order.init(rawValue:)),
            let revision = members.integer("revision")
        else { return }
        let key = Board.Key(tenant: event.tenant, id: id, challengeId: ID(challengeId), order: order)
        if members.bool("reloaded") == true { boards.forget(key) }
        boards.noteRemoteChange(key, revision: revision, isWanted: hasUsers(event.tenant))
    }

    /// Begins a round if the leaderboard's pause is over and its last round has ended. Until then the leaderboard stays
    /// marked as moved.
    private func begin(_ board: Board, _ rounds: inout [Round]) {
        let now = clock.uptime()
        let due = board.withLock { $0.publishedAt }.map { $0 + .seconds(LeaderboardLimits.updatePauseSeconds) }
        guard due ?? now <= now, !rounds.contains(where: { $0.board === board }) else { return }
        boards.settle(board)
        guard let (movement, changes) = board.withLock({ $0.takeMovement(at: now) }) else { return }
        let users = users(board.key.tenant)
        guard !users.isEmpty else { return }
        // Sorted outside the lock.
        rounds.append(Round(board: board, movement: SettledMovement(movement), changes: changes, users: users))
    }

    /// Looks up some of the connected users, and sends their ranks to the moved ones.
    private func advance(_ rounds: inout [Round]) {
        var budget = LeaderboardLimits.lookupsPerPassMax
        while budget > 0, let round = rounds.first {
            let part = round.users[round.next...].prefix(min(budget, Self.lookedUpWithLock))
            let found = round.board.withLock { $0.entries(of: part.lazy.map { ID($0) }, movedBy: round.movement) }
            let epoch = log.epoch
            let ranks = found.entries.map {
                ChallengesFeature.ownRank(
                    $0, on: round.board.key, changes: round.changes, revision: found.revision, epoch: epoch)
            }
            if !ranks.isEmpty { deliver(ranks) }
            budget -= part.count
            rounds[0].next += part.count
            if rounds[0].next == round.users.count { rounds.removeFirst() }
        }
    }

    /// Users per lookup under one lock of the leaderboard. Writers wait for the lock.
    private static let lookedUpWithLock = 256
}
