import Values

/// A guest's vote on a track: up, down or none (CUT D-3).
public enum DJVote: String, CaseIterable, Sendable, Hashable {
    case up
    case down
    /// Withdraws a vote (decision 9).
    case none

    /// The stored value of a vote; nil for none.
    public var side: Int? {
        switch self {
        case .up: 1
        case .down: -1
        case .none: nil
        }
    }

    /// The vote of a stored value; nil for an unknown one.
    public init?(side: Int?) {
        switch side {
        case nil: self = .none
        case 1: self = .up
        case -1: self = .down
        default: return nil
        }
    }
}

/// A track's votes, counted.
public struct DJTally: Sendable, Hashable {
    public var upvotes: Int
    public var downvotes: Int

    public init(upvotes: Int = 0, downvotes: Int = 0) {
        self.upvotes = upvotes
        self.downvotes = downvotes
    }

    public var score: Int { upvotes - downvotes }

    /// The counts when one guest's vote becomes another. Equal to counting all votes anew.
    public func replacing(_ old: DJVote, by new: DJVote) -> DJTally {
        var tally = self
        tally.add(old, times: -1)
        tally.add(new, times: 1)
        return tally
    }

    private mutating func add(_ vote: DJVote, times: Int) {
        switch vote {
        case .up: upvotes += times
        case .down: downvotes += times
        case .none: return
        }
    }

    public func write(membersTo writer: inout JSONWriter) {
        writer.member("upvotes", upvotes)
        writer.member("downvotes", downvotes)
        writer.member("score", score)
    }
}

/// The budget of vote updates that a shop may publish in the present second.
public struct DJUpdateBudget: Sendable, Hashable {
    /// Seconds since 1970.
    public private(set) var second: Int64
    public private(set) var publishedCount: Int

    /// Clocks of replicas differ by less. One that was far ahead, and is right again, must not block a shop's updates
    /// for long.
    private static let clockSkewSecondsMax: Int64 = 60

    public init(second: Int64, publishedCount: Int) {
        self.second = second
        self.publishedCount = publishedCount
    }

    /// Whether one more update may be published now; counts it if so.
    ///
    /// A clock that is a little behind, another replica's, counts in the second that has begun: two clocks in turn
    /// would begin a new one with every vote.
    public mutating func take(at now: Timestamp) -> Bool {
        let isBehind = now.seconds <= second && now.seconds > second - Self.clockSkewSecondsMax
        if !isBehind { (second, publishedCount) = (now.seconds, 0) }
        guard publishedCount < DJLimits.updatesPerSecondMax else { return false }
        publishedCount += 1
        return true
    }
}
