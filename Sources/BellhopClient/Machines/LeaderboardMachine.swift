/// The top lines of a challenge's leaderboard, and the user's own row wherever it is on the board.
///
/// The topic sends all lines once and then the changes (``LeaderboardTop``). After a missed change the machine fetches
/// the lines again, and reports them as behind until they fit.
public struct LeaderboardMachine: FeatureMachine {
    public let challengeId: String
    public private(set) var user: String?
    public private(set) var top: LeaderboardTop
    /// The user's own row; null for a user without a score.
    public private(set) var me: JSON = .null
    public private(set) var isBehind = false
    public private(set) var isLive = false
    public var isLoaded: Bool { loading.isLoaded || top.version != nil }
    public var problem: JSON { loading.problem.isNull ? topic.problem : loading.problem }
    private var fetchedAt = -LeaderboardMachine.refetchMilliseconds
    private var loading = Loading()
    private var topic = WatchedTopic()

    /// Minimum time between two fetches of lines that do not fit: on a busy board, mismatches occur every second.
    private static let refetchMilliseconds = 5000

    public init(challengeId: String, user: String? = nil) {
        self.challengeId = challengeId
        self.user = user
        top = LeaderboardTop(challengeId: challengeId)
    }

    public mutating func receive(_ input: FeatureInput, now: Int) -> [FeatureAction] {
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
        if let body = step.body {
            take(fetched: body)
            fetchedAt = now
        }
        if case .event("stream:ready", let data, _) = input { user = user ?? data["userId"].string }
        if case .event("leaderboard:update", let data, _) = input, data["challengeId"].string == challengeId {
            let wasBehind = isBehind
            handle(data)
            let at = max(now, fetchedAt + LeaderboardMachine.refetchMilliseconds)
            if isBehind != wasBehind { actions.append(.timer(name: "leaderboard", at: isBehind ? at : nil)) }
        }
        if case .connection(false) = input { isLive = false }
        if !topic.isWanted { isLive = false }
        if isLive { topic.noteAccepted() }
        return actions
    }

    private var held: JSON {
        guard let version = top.version else { return .null }
        return ["version": .integer(Int64(version)), "epoch": .string(top.epoch ?? "")]
    }

    /// Applies a fetched board, unless the topic's lines are live and not behind.
    private mutating func take(fetched body: JSON) {
        if !isLive || isBehind, isNewer(held, body) { merge(body.with(["top": body["items"]])) }
        isBehind = false
        own(body["me"], at: body)
    }

    private mutating func handle(_ data: JSON) {
        guard !data["top"].isNull || !data["moved"].isNull else { return own(data, at: data) }
        guard isNewer(held, data) || !data["top"].isNull && data["version"].int == top.version else {
            // Events that the state already includes are ignored. A fetched board may be newer than the topic's first
            // event; the next change reveals whether one is missing.
            if !data["top"].isNull { isLive = true }
            return
        }
        merge(data)
        isBehind = top.isBehind
        guard !isBehind else { return }
        isLive = true
        updateOwnRow()
    }

    private mutating func merge(_ data: JSON) {
        _ = top.merge(ServerSentEvent(id: "", name: "leaderboard:update", data: data.text))
    }

    /// Updates the user's own row from the lines, if they are newer.
    private mutating func updateOwnRow() {
        guard let line = top.lines.first(where: { $0.userId == user }) else { return }
        own(LeaderboardMachine.json(line), at: held)
    }

    /// - Parameter row: null for a user without a score.
    private mutating func own(_ row: JSON, at version: JSON) {
        guard isNewer(me, version) else { return }
        guard !row.isNull else {
            me = .null
            return
        }
        me = [
            "userId": user.map(JSON.string) ?? .null, "rank": row["rank"], "position": row["position"],
            "score": row["score"], "version": version["version"], "epoch": version["epoch"],
            "displayName": row["displayName"].isNull ? me["displayName"] : row["displayName"],
        ]
    }

    private static func json(_ line: LeaderboardTop.Line) -> JSON {
        [
            "userId": .string(line.userId), "displayName": line.displayName.map(JSON.string) ?? .null,
            "score": .integer(Int64(line.score)), "rank": .integer(Int64(line.rank)),
            "position": .integer(Int64(line.position)),
        ]
    }

    private enum CodingKeys: CodingKey {
        case challengeId, user, lines, entries, version, epoch, me, isBehind, isLive, isLoaded, problem
    }

    public func encode(to encoder: any Encoder) throws {
        var state = encoder.container(keyedBy: CodingKeys.self)
        try state.encode(challengeId, forKey: .challengeId)
        try state.encode(user, forKey: .user)
        try state.encode(top.lines.map(LeaderboardMachine.json), forKey: .lines)
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
