/// Changes of a board that are decided and not yet committed: its order in memory knows only what is.
///
/// Writes commit in groups, and each of a group stands behind those before it: its place counts them too.
public struct PendingChanges: Sendable {
    private var indices: [ID<User>: Int] = [:]
    private var before: [Standing?] = []
    private var after: [Standing?] = []

    public init() {}

    public var isEmpty: Bool { before.isEmpty }

    /// Puts a user where the latest change does.
    public mutating func set(_ standing: Standing?, of user: ID<User>, on board: Leaderboard) {
        guard let index = indices[user] else {
            indices[user] = before.count
            before.append(board.standing(of: user))
            after.append(standing)
            return
        }
        after[index] = standing
    }

    /// The place that a standing has once all of them are committed.
    public func place(of standing: Standing, on board: Leaderboard) -> Place {
        let place = board.place(of: standing)
        var (rank, position) = (place.rank, place.position)
        for index in before.indices {
            if let old = before[index] {
                if old < standing.best { rank -= 1 }
                if old < standing { position -= 1 }
            }
            if let new = after[index] {
                if new < standing.best { rank += 1 }
                if new < standing { position += 1 }
            }
        }
        return Place(rank: rank, position: position)
    }
}
