import Rows

/// Where a score stands in the order of a board: the smaller, the better.
public struct Standing: Sendable, Hashable, Comparable {
    /// The score, turned so that the smaller is the better (`Challenge.Order.key`).
    public let key: Int64
    /// The number of the change by which the score was reached. Changes of a board are numbered in the order of their
    /// commits, so among equal scores it says who was first, and no two are equal.
    public let reached: Int64

    public init(key: Int64, reached: Int64) {
        self.key = key
        self.reached = reached
    }

    public static func < (left: Standing, right: Standing) -> Bool {
        left.key != right.key ? left.key < right.key : left.reached < right.reached
    }

    /// What comes before all that have the same key.
    var best: Standing { Standing(key: key, reached: .min) }
    /// Of nobody: changes are counted from 1.
    static let none = Standing(key: .max, reached: .max)
}

/// A place on a board.
public struct Place: Sendable, Hashable {
    /// One more than the number of better scores: equal scores share it (1, 2, 2, 4).
    public var rank: Int
    /// From 1, of each entry alone: equal scores in the order they were reached in.
    public var position: Int

    public init(rank: Int, position: Int) {
        self.rank = rank
        self.position = position
    }
}
