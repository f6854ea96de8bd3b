/// A shop's DJ queue in the service's order, with the user's own votes shown before they are answered
/// (``DJQueueState``).
public struct DJMachine: ShownMachine {
    public private(set) var queue: DJQueueState
    public private(set) var isLive = false
    public var isLoaded: Bool { loading.isLoaded }
    public var problem: JSON { loading.problem.isNull ? topic.problem : loading.problem }
    /// By the id of the track.
    private var pending: [String: Pending] = [:]
    private var count = 0
    private var loading = Loading()
    private var topic = WatchedTopic()

    /// The last unanswered vote on a track.
    private struct Pending: Sendable {
        let name: String
        let vote: DJQueueState.Vote
    }

    private struct VoteBody: Decodable { let vote: DJQueueState.Vote }
    private struct Changed: Decodable { let trackId: String }

    public init(shopId: String) {
        queue = DJQueueState(shopId: shopId)
    }

    private var path: String { "/v1/shops/\(queue.shopId.pathSegment)/dj" }

    public mutating func receive(_ input: FeatureInput<DJCommand>, now: Int) -> [FeatureAction] {
        if case .user(let user, let isSignedIn) = input {
            let topic = topic.forAnotherUser
            self = DJMachine(shopId: queue.shopId)
            self.topic = topic
            return begin(for: user, isSignedIn: isSignedIn, now: now)
        }
        let step = loading.advance(input, Loading.Plan(name: "dj", path: path), now: now)
        var actions = topic.advance(input, topic: "dj:\(queue.shopId)", now: now) + step.actions
        if step.isGone { queue = DJQueueState(shopId: queue.shopId) }
        if let answer = step.answer {
            _ = queue.merge(session: answer.body)
            showPending()
        }
        switch input {
        case .event(let event):
            if queue.merge(event.name, event.data), event.name == "dj:session" { isLive = true }
        case .restore:
            if let kept = input.restored(DJQueueState.Kept.self), loading.restore() {
                queue.restore(kept)
                showPending()
            }
        case .waiting(let items): for item in items { wait(for: item) }
        case .command(.vote(let id, let side)): actions += vote(side, on: id)
        case .command(.add(let track)):
            count += 1
            let body: JSON = [
                "trackId": .string(track.trackId), "trackName": .string(track.trackName),
                "artistName": .string(track.artistName), "albumArt": JSON(track.albumArt),
            ]
            actions.append(.send("POST", "\(path)/tracks", body, as: "add-\(count)"))
        case .answer(let name, let status, let body, _):
            let isVote = pending.values.contains { $0.name == name }
            if isVote || name.hasPrefix("vote-") || name.hasPrefix("add-") {
                actions += answered(name, ClassifiedAnswer(status: status, body: body))
            }
        case .connection(false): isLive = false
        default: break
        }
        if !topic.isSubscribed { isLive = false }
        if isLive { topic.noteAccepted() }
        return actions
    }

    public var kept: (any Encodable & Sendable)? { queue.kept }

    /// Shows the vote of a write that an earlier start made.
    private mutating func wait(for item: OutboxItem) {
        guard let parts = item.match("PUT", "/v1/shops/*/dj/tracks/*/vote"), parts[0] == queue.shopId,
            let vote = item.body?.model(VoteBody.self)?.vote
        else { return }
        pending[parts[1]] = Pending(name: item.answerName, vote: vote)
        queue.show(vote, on: parts[1])
    }

    /// Shows the unanswered votes, also on tracks that the queue did not have before.
    private mutating func showPending() {
        for (id, vote) in pending { queue.show(vote.vote, on: id) }
    }

    private mutating func vote(_ side: DJQueueState.Vote, on id: String) -> [FeatureAction] {
        guard let track = queue.tracks.first(where: { $0.trackId == id }), track.vote != side else { return [] }
        count += 1
        let name = "vote-\(count)"
        pending[id] = Pending(name: name, vote: side)
        queue.show(side, on: id)
        return [.send("PUT", "\(path)/tracks/\(id.pathSegment)/vote", ["vote": .string(side.rawValue)], as: name)]
    }

    private mutating func answered(_ name: String, _ answer: ClassifiedAnswer) -> [FeatureAction] {
        let id = pending.first { $0.value.name == name }?.key
        if let id {
            pending[id] = nil
            queue.withdraw(id)
        }
        guard answer.isTaken else {
            let data: JSON = [
                "shopId": .string(queue.shopId), "trackId": JSON(id), "problem": answer.problem,
            ]
            return [.publish(name: "dj:refused", data: data)]
        }
        _ = queue.merge(track: answer.body)
        // If the user voted again meanwhile, the later vote stays shown, whatever the answer to the earlier one.
        if let changed = answer.model(Changed.self)?.trackId, let later = pending[changed] {
            queue.show(later.vote, on: changed)
        }
        return []
    }

    public struct Snapshot: Sendable, Hashable {
        /// The queue, including the user's own votes.
        public let queue: DJQueueState
        public let isLive: Bool
        public let isLoaded: Bool
        public let problem: Bellhop.Problem?
    }

    public var snapshot: Snapshot {
        Snapshot(queue: queue, isLive: isLive, isLoaded: isLoaded, problem: Bellhop.Problem(problem))
    }

    private enum CodingKeys: CodingKey {
        case shopId, isActive, currentTrackId, tracks, isLive, isLoaded, problem, isSubscribed, pending
    }

    public func encode(to encoder: any Encoder) throws {
        var state = encoder.container(keyedBy: CodingKeys.self)
        try state.encode(queue.shopId, forKey: .shopId)
        try state.encode(queue.isActive, forKey: .isActive)
        try state.encode(queue.currentTrackId, forKey: .currentTrackId)
        try state.encode(queue.tracks.map(Shown.init), forKey: .tracks)
        try state.encode(isLive, forKey: .isLive)
        try state.encode(isLoaded, forKey: .isLoaded)
        try state.encode(problem, forKey: .problem)
        try state.encode(topic.isSubscribed, forKey: .isSubscribed)
        try state.encode(pending.mapValues(\.name), forKey: .pending)
    }

    /// A track as the vectors write it.
    private struct Shown: Encodable {
        let trackId, trackName, artistName, addedBy, addedAt: String
        let albumArt: String?
        let upvotes, downvotes, score: Int
        let userVote: DJQueueState.Vote

        init(_ track: DJQueueState.Track) {
            (trackId, trackName, artistName) = (track.trackId, track.trackName, track.artistName)
            (addedBy, addedAt, albumArt) = (track.addedBy, track.addedAt, track.albumArt)
            (upvotes, downvotes, score, userVote) = (track.upvotes, track.downvotes, track.score, track.vote)
        }
    }
}

/// The commands of the user or the app.
public enum DJCommand: Sendable, Hashable {
    case vote(trackId: String, vote: DJQueueState.Vote)
    case add(track: Bellhop.AddTrackBody)
}
