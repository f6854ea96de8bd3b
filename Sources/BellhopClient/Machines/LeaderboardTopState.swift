/// The top lines of a watched leaderboard, updated by the events of the topic `leaderboard:{challengeId}`.
///
/// ```swift
/// var top = LeaderboardTopState(challengeId: "c1")
/// for try await event in client.events(topics: ["leaderboard:c1"]) where top.merge(event) { draw(top.lines) }
/// ```
///
/// The first event carries all lines, later events the changes. A slow stream may miss one: then the lines stay, and
/// ``isBehind`` is true until the topic is subscribed to again or the stream reopens.
public struct LeaderboardTopState: Sendable, Hashable {
    public struct Line: Sendable, Hashable, Codable {
        public let userId: String
        public fileprivate(set) var displayName: String?
        public fileprivate(set) var score: Int
        /// Equal scores share a rank.
        public fileprivate(set) var rank: Int
        /// The position of this line, from 1; positions are unique.
        public fileprivate(set) var position: Int
    }

    public let challengeId: String
    /// In order.
    public private(set) var lines: [Line] = []
    /// The total number of entries on the board.
    public private(set) var entries = 0
    /// The version of the board that the lines show; nil before the first event.
    public private(set) var version: Int?
    /// The epoch that versions belong to. It changes after a restore.
    public private(set) var epoch: String?
    /// Whether an event was missed.
    public private(set) var isBehind = false

    public init(challengeId: String) {
        self.challengeId = challengeId
    }

    /// Applies an event of the topic. Returns whether anything changed. Ignores events about the user's own rank, which
    /// have the same name.
    public mutating func merge(_ event: ServerSentEvent) -> Bool {
        guard case .leaderboardUpdate(let update) = event.typed else { return false }
        return merge(update)
    }

    /// Shows the lines that a device has kept.
    mutating func restore(_ lines: [Line], entries: Int, version: Int, epoch: String?) {
        (self.lines, self.entries, self.version, self.epoch) = (lines, entries, version, epoch)
    }

    mutating func merge(_ update: Bellhop.LeaderboardUpdate) -> Bool {
        let before = self
        switch update {
        case .leaderboardTop(let top) where top.challengeId == challengeId:
            lines = top.top.map(Line.init)
            (version, epoch, entries, isBehind) = (top.version, top.epoch, top.entries, false)
        case .leaderboardChange(let change) where change.challengeId == challengeId:
            // Events that the state already includes are ignored.
            guard let own = version, change.epoch != epoch || change.version > own else { return false }
            // The moved lines are complete, so a change that began earlier applies too.
            guard change.epoch == epoch, change.since <= own else {
                isBehind = true
                return self != before
            }
            apply(change)
            (version, entries) = (change.version, change.entries)
        default: return false
        }
        return self != before
    }

    private mutating func apply(_ change: Bellhop.LeaderboardChange) {
        let left = Set(change.left)
        var known = Dictionary(
            uniqueKeysWithValues: lines.lazy.filter { !left.contains($0.userId) }.map { ($0.userId, $0) })
        for moved in change.moved {
            let held = known[moved.userId]
            guard let score = moved.score.map({ Int($0) }) ?? held?.score else { continue }
            known[moved.userId] = Line(
                userId: moved.userId, displayName: moved.score == nil ? held?.displayName : moved.displayName,
                score: score, rank: moved.rank, position: moved.position)
        }
        lines = known.values.sorted { $0.position < $1.position }
    }
}

extension LeaderboardTopState.Line {
    init(_ item: Bellhop.LeaderboardItem) {
        self.init(
            userId: item.userId, displayName: item.displayName, score: Int(item.score), rank: item.rank,
            position: item.position)
    }
}
