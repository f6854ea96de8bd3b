/// The sort key of an entry on a leaderboard; smaller is better.
public struct Standing: Sendable, Hashable, Comparable {
    /// The score, transformed so that smaller is better (`Challenge.Order.key`).
    public let key: Int64
    /// The number of the change that set the score. The changes of a leaderboard are numbered in commit order. Among
    /// equal scores, the lower number was reached first, and no two standings are equal.
    public let reached: Int64

    public init(key: Int64, reached: Int64) {
        self.key = key
        self.reached = reached
    }

    public static func < (left: Standing, right: Standing) -> Bool {
        left.key != right.key ? left.key < right.key : left.reached < right.reached
    }

    /// The bound before all standings with the same key.
    var best: Standing { Standing(key: key, reached: .min) }
    /// The absence of a standing. It belongs to no entry, because changes are counted from 1.
    static let none = Standing(key: .max, reached: .max)
}

public struct Place: Sendable, Hashable {
    /// One more than the number of better scores. Equal scores share a rank (1, 2, 2, 4).
    public var rank: Int
    /// The position from 1, unique for each entry. Equal scores are ordered by the time at which they were reached.
    public var position: Int

    public init(rank: Int, position: Int) {
        self.rank = rank
        self.position = position
    }
}
