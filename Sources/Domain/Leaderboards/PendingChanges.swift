import Rows
import Values

/// Changes of a board that are decided and not yet committed: its order in memory knows only what is.
///
/// Writes commit in groups, and each of a group stands behind those before it: its place counts them too.
public struct PendingChanges: Sendable {
    private var changes: [ID<User>: (before: Standing?, after: Standing?)] = [:]

    public init() {}

    /// Puts a user where the latest change does.
    public mutating func set(_ standing: Standing?, of user: ID<User>, on board: Leaderboard) {
        changes[user, default: (before: board.standing(of: user), after: nil)].after = standing
    }

    /// The place that a standing has once all of them are committed.
    public func place(of standing: Standing, on board: Leaderboard) -> Place {
        var place = board.place(of: standing)
        for (before, after) in changes.values {
            if let before { place.count(before, by: -1, ahead: standing) }
            if let after { place.count(after, by: 1, ahead: standing) }
        }
        return place
    }
}

extension Place {
    /// Counts another's standing, or no longer, if it is ahead of the one whose place this is.
    fileprivate mutating func count(_ other: Standing, by change: Int, ahead standing: Standing) {
        if other < standing.best { rank += change }
        if other < standing { position += change }
    }
}
