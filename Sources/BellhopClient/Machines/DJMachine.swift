/// A shop's DJ queue in the service's order, with the user's own votes shown before they are answered
/// (``DJQueueState``).
public struct DJMachine: FeatureMachine {
    public private(set) var queue: DJQueueState
    public private(set) var isLive = false
    public var isLoaded: Bool { loading.isLoaded }
    public var problem: JSON { loading.problem.isNull ? topic.problem : loading.problem }
    private var pending: [String: Pending] = [:]
    private var count = 0
    private var loading = Loading()
    private var topic = WatchedTopic()

    /// The last unanswered vote on a track.
    private struct Pending: Sendable {
        let name: String
        let vote: DJQueueState.Vote
    }

    public init(shopId: String) {
        queue = DJQueueState(shopId: shopId)
    }

    private var path: String { "/v1/shops/\(queue.shopId.pathSegment)/dj" }

    public mutating func receive(_ input: FeatureInput, now: Int) -> [FeatureAction] {
        if case .user(let user, let isSignedIn) = input {
            let topic = topic.forAnotherUser
            self = DJMachine(shopId: queue.shopId)
            self.topic = topic
            return begin(for: user, isSignedIn: isSignedIn, now: now)
        }
        let step = loading.advance(input, Loading.Plan(name: "dj", path: path), now: now)
        var actions = topic.advance(input, topic: "dj:\(queue.shopId)", now: now) + step.actions
        if let body = step.body { _ = queue.merge(session: body) }
        switch input {
        case .event(let name, let data, _):
            let isTaken = queue.merge(ServerSentEvent(id: "", name: name, data: data.text))
            if isTaken, name == "dj:session" { isLive = true }
        case .command("vote", let arguments): actions += vote(arguments)
        case .command("add", let arguments):
            count += 1
            let track = arguments["track"]
            let body: JSON = [
                "trackId": track["trackId"], "trackName": track["trackName"], "artistName": track["artistName"],
                "albumArt": track["albumArt"],
            ]
            actions.append(.send("POST", "\(path)/tracks", body, as: "add-\(count)"))
        case .answer(let name, let status, let body, _):
            if name.hasPrefix("vote-") || name.hasPrefix("add-") {
                actions += answered(name, ClassifiedAnswer(status: status, body: body))
            }
        case .connection(false): isLive = false
        default: break
        }
        if !topic.isWanted { isLive = false }
        if isLive { topic.noteAccepted() }
        return actions
    }

    private mutating func vote(_ arguments: JSON) -> [FeatureAction] {
        guard let id = arguments["trackId"].string, let side = arguments["vote"].string.flatMap(DJQueueState.Vote.init),
            let track = queue.tracks.first(where: { $0.trackId == id }), track.vote != side
        else { return [] }
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
                "shopId": .string(queue.shopId), "trackId": id.map(JSON.string) ?? .null, "problem": answer.problem,
            ]
            return [.tell(name: "dj:refused", data: data)]
        }
        _ = queue.merge(track: answer.body)
        // If the user voted again meanwhile, the later vote stays shown, whatever the answer to the earlier one.
        if let changed = answer.body["trackId"].string, let later = pending[changed] {
            queue.show(later.vote, on: changed)
        }
        return []
    }

    private static func json(_ track: DJQueueState.Track) -> JSON {
        [
            "trackId": .string(track.trackId), "trackName": .string(track.trackName),
            "artistName": .string(track.artistName), "albumArt": track.albumArt.map(JSON.string) ?? .null,
            "addedBy": .string(track.addedBy), "addedAt": .string(track.addedAt),
            "upvotes": .integer(Int64(track.upvotes)), "downvotes": .integer(Int64(track.downvotes)),
            "score": .integer(Int64(track.score)), "userVote": .string(track.vote.rawValue),
        ]
    }

    private enum CodingKeys: CodingKey {
        case shopId, isActive, currentTrackId, tracks, isLive, isLoaded, problem, isWanted, pending
    }

    public func encode(to encoder: any Encoder) throws {
        var state = encoder.container(keyedBy: CodingKeys.self)
        try state.encode(queue.shopId, forKey: .shopId)
        try state.encode(queue.isActive, forKey: .isActive)
        try state.encode(queue.currentTrackId, forKey: .currentTrackId)
        try state.encode(queue.tracks.map(DJMachine.json), forKey: .tracks)
        try state.encode(isLive, forKey: .isLive)
        try state.encode(isLoaded, forKey: .isLoaded)
        try state.encode(problem, forKey: .problem)
        try state.encode(topic.isWanted, forKey: .isWanted)
        try state.encode(pending.mapValues(\.name), forKey: .pending)
    }
}
