/// The wait in a shop, updated by its topic. Without the topic the last state stays, and ``isLive`` is false.
public struct QueueMachine: ShownMachine {
    public let shopId: String
    /// The state as `GET /v1/shops/{id}/queue` returns it; nil until it is known.
    public private(set) var status: Bellhop.QueueStatus?
    public private(set) var isLive = false
    public var isLoaded: Bool { status != nil }
    public var problem: JSON { loading.problem.isNull ? topic.problem : loading.problem }
    private var loading = Loading()
    private var topic = WatchedTopic()

    public init(shopId: String) {
        self.shopId = shopId
    }

    public mutating func receive(_ input: FeatureInput<Never>, now: Int) -> [FeatureAction] {
        if case .user(let user, let isSignedIn) = input {
            let topic = topic.forAnotherUser
            self = QueueMachine(shopId: shopId)
            self.topic = topic
            return begin(for: user, isSignedIn: isSignedIn, now: now)
        }
        let plan = Loading.Plan(name: "queue", path: "/v1/shops/\(shopId.pathSegment)/queue")
        let wasKept = loading.isKept
        let step = loading.advance(input, plan, now: now)
        let actions = topic.advance(input, topic: "queue:\(shopId)", now: now) + step.actions
        // The service's clock may be behind the kept status, after a restore of its database.
        if step.isGone || (step.answer != nil && wasKept && !isLive) { status = nil }
        if let status = step.answer?.model(Bellhop.QueueStatus.self) { take(status) }
        // The topic sends the current state; an event from before the stream broke is not current.
        if case .event(let event) = input, case .queueUpdate(let status) = event.typed, status.shopId == shopId {
            take(status)
            isLive = true
            topic.noteAccepted()
        }
        if let kept = input.restored(Kept.self), loading.restore() { status = status ?? kept.status }
        if case .connection(false) = input { isLive = false }
        if !topic.isSubscribed { isLive = false }
        return actions
    }

    /// The state to keep on the device.
    private struct Kept: Codable, Sendable {
        let status: Bellhop.QueueStatus
    }

    public var kept: (any Encodable & Sendable)? { status.map(Kept.init) }

    private mutating func take(_ newer: Bellhop.QueueStatus) {
        if let status, newer.updatedAt < status.updatedAt { return }
        status = newer
    }

    public struct Snapshot: Sendable, Hashable {
        public let status: Bellhop.QueueStatus?
        /// Whether the topic is live; otherwise the status is the last one received.
        public let isLive: Bool
        public let isLoaded: Bool
        public let problem: Bellhop.Problem?
    }

    public var snapshot: Snapshot {
        Snapshot(status: status, isLive: isLive, isLoaded: isLoaded, problem: Bellhop.Problem(problem))
    }

    private enum CodingKeys: CodingKey { case shopId, status, isLive, isLoaded, problem, isSubscribed }

    public func encode(to encoder: any Encoder) throws {
        var state = encoder.container(keyedBy: CodingKeys.self)
        try state.encode(shopId, forKey: .shopId)
        try state.encode(status, forKey: .status)
        try state.encode(isLive, forKey: .isLive)
        try state.encode(isLoaded, forKey: .isLoaded)
        try state.encode(problem, forKey: .problem)
        try state.encode(topic.isSubscribed, forKey: .isSubscribed)
    }
}
