import Values

/// Decided but uncommitted changes of a leaderboard. The order in memory contains only committed changes.
///
/// Writes commit in groups. A write must count the changes of the writes before it in the group to compute its place.
public struct PendingChanges: Sendable {
    private var changes: [ID<User>: (before: Standing?, after: Standing?)] = [:]

    public init() {}

    /// Sets a user's standing to that of the latest change.
    public mutating func set(_ standing: Standing?, of user: ID<User>, on board: Leaderboard) {
        changes[user, default: (before: board.standing(of: user), after: nil)].after = standing
    }

    /// Returns the place that a standing will have once all pending changes are committed.
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
    /// Adds another user's standing to the count, or subtracts it, if it is ahead of the given standing.
    fileprivate mutating func count(_ other: Standing, by change: Int, ahead standing: Standing) {
        if other < standing.best { rank += change }
        if other < standing { position += change }
    }
}
