import Domain

extension Leaderboards {
    /// One board's changes on their way to those who are connected: each of them is looked at once.
    struct Round {
        let board: Board
        let movement: SettledMovement
        let changes: Int
        let users: [String]
        var next = 0
    }

    /// At most one a second and board. What changes meanwhile belongs to the next one.
    ///
    /// - Returns: false if it is not time yet.
    func beginRound(_ board: Board) -> Bool {
        let now = surroundings.now()
        if let last = lastTold(board.key), now < last.adding(seconds: LeaderboardLimits.updatePauseSeconds) {
            return false
        }
        guard !rounds.contains(where: { $0.board === board }) else { return false }
        guard let (movement, changes) = board.takeMovement() else { return true }
        note(board.key, toldAt: now)
        let users = presentAudience.users(board.key.tenant)
        guard !users.isEmpty else { return true }
        rounds.append(Round(board: board, movement: movement, changes: changes, users: users))
        return true
    }

    /// Looks up some of those who are connected, and tells those who have moved.
    func advanceRounds() {
        var budget = LeaderboardLimits.lookedUpAtOnceMax
        while budget > 0, !rounds.isEmpty {
            let round = rounds[0]
            let part = round.users[round.next...].prefix(min(budget, Self.toldAtOnce))
            let found = round.board.entries(of: part.lazy.map { ID($0) }, movedBy: round.movement)
            if !found.entries.isEmpty {
                presentAudience.tell(
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

    /// Looked up under one hold of the board's lock: those who write wait for it.
    private static let toldAtOnce = 256
}
