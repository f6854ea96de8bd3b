import Values

/// A guest's vote on a track: up, down or none (R-CUT-D-3).
public enum DJVote: String, CaseIterable, Sendable, Hashable {
    case up
    case down
    /// Withdraws a vote.
    case none

    /// The stored value of a vote; nil for a withdrawn one.
    public var side: Int? {
        switch self {
        case .up: 1
        case .down: -1
        case .none: nil
        }
    }

    /// Creates the vote of a stored value; nil for an unknown value.
    public init?(side: Int?) {
        switch side {
        case nil: self = .none
        case 1: self = .up
        case -1: self = .down
        default: return nil
        }
    }
}

/// The vote counts of a track.
public struct DJTally: Sendable, Hashable {
    public var upvotes: Int
    public var downvotes: Int

    public init(upvotes: Int = 0, downvotes: Int = 0) {
        self.upvotes = upvotes
        self.downvotes = downvotes
    }

    public var score: Int { upvotes - downvotes }

    /// Returns the counts after one guest's vote changes. The result equals a recount of all votes.
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
}

extension DJTally: Record {
    public init() { self.init(upvotes: 0) }

    @inlinable
    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("upvotes", &upvotes)
        members.member("downvotes", &downvotes)
        members.derived("score", score)
    }
}

/// The number of vote updates that a shop may still publish in the current second.
public struct DJUpdateBudget: Sendable, Hashable {
    /// Seconds since 1970.
    public private(set) var second: Int64
    public private(set) var publishedCount: Int

    /// The assumed maximum clock skew between replicas. A replica whose clock was further ahead and is correct again
    /// must not block a shop's updates for long.
    private static let clockSkewSecondsMax: Int64 = 60

    public init(second: Int64, publishedCount: Int) {
        self.second = second
        self.publishedCount = publishedCount
    }

    /// Returns whether one more update may be published now, and counts it if so.
    ///
    /// A replica whose clock is slightly behind counts in the second that has begun. Otherwise two replicas that take
    /// turns would begin a new second with every vote.
    public mutating func take(at now: Timestamp) -> Bool {
        let isBehind = now.seconds <= second && now.seconds > second - Self.clockSkewSecondsMax
        if !isBehind { (second, publishedCount) = (now.seconds, 0) }
        guard publishedCount < DJLimits.updatesPerSecondMax else { return false }
        publishedCount += 1
        return true
    }
}
