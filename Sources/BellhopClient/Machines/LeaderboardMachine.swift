/// The top lines of a challenge's leaderboard, and the user's own row wherever it is on the board.
///
/// The topic sends all lines once and then the changes (``LeaderboardTopState``). After a missed change the machine fetches
/// the lines again, and reports them as behind until they fit.
public struct LeaderboardMachine: ShownMachine {
    public let challengeId: String
    public private(set) var user: String?
    public private(set) var top: LeaderboardTopState
    /// The user's own row; nil for a user without a score.
    public private(set) var me: OwnRow?
    private var ownVersion: StateVersion?
    public private(set) var isBehind = false
    public private(set) var isLive = false
    public var isLoaded: Bool { loading.isLoaded || top.version != nil }
    public var problem: JSON { loading.problem.isNull ? topic.problem : loading.problem }
    /// The lines of the topic, while newer fetched ones show. The next change follows these.
    private var published: LeaderboardTopState?
    private var fetchedAt = -LeaderboardMachine.refetchMilliseconds
    private var loading = Loading()
    private var topic = WatchedTopic()

    /// Minimum time between two fetches of lines that do not fit: on a busy board, mismatches occur every second.
    private static let refetchMilliseconds = 5000

    public init(challengeId: String, user: String? = nil) {
        self.challengeId = challengeId
        self.user = user
        top = LeaderboardTopState(challengeId: challengeId)
    }

    public mutating func receive(_ input: FeatureInput<Never>, now: Int) -> [FeatureAction] {
        if case .user(let user, let isSignedIn) = input {
            let topic = topic.forAnotherUser
            self = LeaderboardMachine(challengeId: challengeId, user: user)
            self.topic = topic
            return begin(for: user, isSignedIn: isSignedIn, now: now)
        }
        if case .start(let user, _) = input { self.user = user ?? self.user }
        let plan = Loading.Plan(name: "leaderboard", path: "/v1/challenges/\(challengeId.pathSegment)/leaderboard")
        let step = loading.advance(input, plan, now: now)
        var actions = topic.advance(input, topic: "leaderboard:\(challengeId)", now: now) + step.actions
        if step.isGone { (top, me, ownVersion) = (LeaderboardTopState(challengeId: challengeId), nil, nil) }
        if let answer = step.answer {
            if let board = answer.model(Bellhop.Leaderboard.self) { take(board) }
            fetchedAt = now
        }
        if case .event(let event) = input, case .streamReady(let ready) = event.typed { user = user ?? ready.userId }
        if case .event(let event) = input, case .leaderboardUpdate(let update) = event.typed {
            let wasBehind = isBehind
            handle(update)
            let at = max(now, fetchedAt + LeaderboardMachine.refetchMilliseconds)
            if isBehind != wasBehind { actions.append(.timer(name: "leaderboard", at: isBehind ? at : nil)) }
        }
        if let kept = input.restored(Kept.self) { restore(kept) }
        if case .connection(false) = input { isLive = false }
        if !topic.isSubscribed { isLive = false }
        if isLive { topic.noteAccepted() }
        return actions
    }

    /// The state to keep on the device.
    private struct Kept: Codable, Sendable {
        let lines: [LeaderboardTopState.Line]
        let me: OwnRow?
        let entries: Int
        let version: Int
        let epoch: String?
    }

    public var kept: (any Encodable & Sendable)? {
        top.version.map { Kept(lines: top.lines, me: me, entries: top.entries, version: $0, epoch: top.epoch) }
    }

    private mutating func restore(_ kept: Kept) {
        guard loading.restore(), top.version == nil else { return }
        top.restore(kept.lines, entries: kept.entries, version: kept.version, epoch: kept.epoch)
        if me == nil { (me, ownVersion) = (kept.me, StateVersion(number: kept.version, epoch: kept.epoch ?? "")) }
    }

    private var held: StateVersion? {
        top.version.map { StateVersion(number: $0, epoch: top.epoch ?? "") }
    }

    /// Applies a fetched board, unless the topic's lines are live and not behind.
    private mutating func take(_ board: Bellhop.Leaderboard) {
        let version = StateVersion(number: board.version, epoch: board.epoch)
        if !isLive || isBehind, version.replaces(held) {
            let lines = Bellhop.LeaderboardTop(
                challengeId: challengeId, entries: board.entries, top: board.items, changed: 0, version: board.version,
                epoch: board.epoch)
            _ = top.merge(.leaderboardTop(lines))
        }
        isBehind = false
        own(board.me.map(LeaderboardTopState.Line.init), at: version)
    }

    private mutating func handle(_ update: Bellhop.LeaderboardUpdate) {
        switch update {
        case .ownRank(let rank) where rank.challengeId == challengeId:
            let row = LeaderboardTopState.Line(
                userId: user ?? "", displayName: nil, score: Int(rank.score), rank: rank.rank, position: rank.position)
            own(row, at: StateVersion(number: rank.version, epoch: rank.epoch))
        case .leaderboardTop(let lines) where lines.challengeId == challengeId:
            let version = StateVersion(number: lines.version, epoch: lines.epoch)
            guard version != held, !version.replaces(held) else { return merge(update) }
            // A fetched board may be newer than the topic's first event.
            var older = LeaderboardTopState(challengeId: challengeId)
            _ = older.merge(update)
            (published, isLive) = (older, true)
        case .leaderboardChange(let change) where change.challengeId == challengeId:
            _ = published?.merge(update)
            // Events that the state already includes are ignored.
            if StateVersion(number: change.version, epoch: change.epoch).replaces(held) { merge(update) }
        default: break
        }
    }

    private mutating func merge(_ update: Bellhop.LeaderboardUpdate) {
        // The topic's own lines are the base of its changes. A line that entered and left in between is in no change.
        if let published, !published.isBehind, published.version ?? 0 > top.version ?? 0, published.epoch == top.epoch {
            top = published
        } else {
            _ = top.merge(update)
        }
        published = nil
        isBehind = top.isBehind
        guard !isBehind else { return }
        isLive = true
        // The lines are newer than the user's own row.
        guard let line = top.lines.first(where: { $0.userId == user }), let held else { return }
        own(line, at: held)
    }

    /// - Parameter row: nil for a user without a score.
    private mutating func own(_ row: LeaderboardTopState.Line?, at version: StateVersion) {
        guard version.replaces(me == nil ? nil : ownVersion) else { return }
        ownVersion = version
        me = row.map {
            OwnRow(
                userId: user, displayName: $0.displayName ?? me?.displayName, rank: $0.rank, position: $0.position,
                score: $0.score)
        }
    }

    /// The user's own row, wherever it is on the board.
    public struct OwnRow: Sendable, Hashable, Codable {
        let userId: String?
        public let displayName: String?
        public let rank: Int
        public let position: Int
        public let score: Int
    }

    public struct Snapshot: Sendable, Hashable {
        /// The top lines, in order.
        public let lines: [LeaderboardTopState.Line]
        /// The total number of entries on the board.
        public let entries: Int
        /// Nil for a user without a score.
        public let me: OwnRow?
        /// Whether a change was missed and is being fetched.
        public let isBehind: Bool
        public let isLive: Bool
        public let isLoaded: Bool
        public let problem: Bellhop.Problem?
    }

    public var snapshot: Snapshot {
        Snapshot(
            lines: top.lines, entries: top.entries, me: me, isBehind: isBehind, isLive: isLive, isLoaded: isLoaded,
            problem: Bellhop.Problem(problem))
    }

    private enum CodingKeys: CodingKey {
        case challengeId, user, lines, entries, version, epoch, me, isBehind, isLive, isLoaded, problem
    }

    public func encode(to encoder: any Encoder) throws {
        var state = encoder.container(keyedBy: CodingKeys.self)
        try state.encode(challengeId, forKey: .challengeId)
        try state.encode(user, forKey: .user)
        try state.encode(top.lines, forKey: .lines)
        try state.encode(top.entries, forKey: .entries)
        try state.encode(top.version, forKey: .version)
        try state.encode(top.epoch, forKey: .epoch)
        try state.encode(me, forKey: .me)
        try state.encode(isBehind, forKey: .isBehind)
        try state.encode(isLive, forKey: .isLive)
        try state.encode(isLoaded, forKey: .isLoaded)
        try state.encode(problem, forKey: .problem)
    }
}
