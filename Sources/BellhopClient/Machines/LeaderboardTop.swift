/// The top lines of a watched leaderboard, updated by the events of the topic `leaderboard:{challengeId}`.
///
/// ```swift
/// var top = LeaderboardTop(challengeId: "c1")
/// for try await event in client.events(topics: ["leaderboard:c1"]) where top.merge(event) { draw(top.lines) }
/// ```
///
/// The first event carries all lines, later events the changes. A slow stream may miss one: then the lines stay, and
/// ``isBehind`` is true until the topic is subscribed to again or the stream reopens.
public struct LeaderboardTop: Sendable, Hashable {
    public struct Line: Sendable, Hashable {
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
        guard event.name == "leaderboard:update" else { return false }
        let json = event.json
        guard json["challengeId"].string == challengeId, let version = json["version"].int else { return false }
        let before = self
        if let top = json["top"].array {
            lines = top.compactMap(Self.line)
            (self.version, epoch, isBehind) = (version, json["epoch"].string, false)
        } else if let since = json["since"].int, let moved = json["moved"].array {
            // Events that the state already includes are ignored.
            guard let own = self.version, json["epoch"].string != epoch || version > own else { return false }
            guard json["epoch"].string == epoch, since == own else {
                isBehind = true
                return self != before
            }
            let left = Set((json["left"].array ?? []).compactMap(\.string))
            apply(moved, left)
            self.version = version
        } else {
            return false
        }
        entries = json["entries"].int ?? entries
        return self != before
    }

    private mutating func apply(_ moved: [JSON], _ left: Set<String>) {
        var known = Dictionary(
            uniqueKeysWithValues: lines.lazy.filter { !left.contains($0.userId) }.map { ($0.userId, $0) })
        for json in moved {
            guard let userId = json["userId"].string else { continue }
            guard var line = known[userId] else {
                known[userId] = Self.line(json)
                continue
            }
            line.rank = json["rank"].int ?? line.rank
            line.position = json["position"].int ?? line.position
            if let score = json["score"].int { (line.score, line.displayName) = (score, json["displayName"].string) }
            known[userId] = line
        }
        lines = known.values.sorted { $0.position < $1.position }
    }

    private static func line(_ json: JSON) -> Line? {
        guard let userId = json["userId"].string, let score = json["score"].int, let rank = json["rank"].int,
            let position = json["position"].int
        else { return nil }
        return Line(
            userId: userId, displayName: json["displayName"].string, score: score, rank: rank, position: position)
    }
}
