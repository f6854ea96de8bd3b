/// The requests to a user, or the ones that the user has made, newest first.
///
/// The user's own answers and withdrawals show at once, and are reverted if the service refuses them.
public struct RequestsMachine: ShownMachine {
    public let direction: Bellhop.ListRequestsDirection
    public private(set) var user: String?
    /// The shown requests.
    public private(set) var items: [Bellhop.UserRequest] = []
    public private(set) var isLoaded = false
    public private(set) var hasMore = false
    public private(set) var problem: JSON = .null
    private var stored: [Bellhop.UserRequest] = []
    private var pending: [Pending] = []
    private var next: String?
    private var count = 0
    /// Whether the user has seen the requests before the first page came.
    private var isSeeingPending = false
    private var loading = Loading()

    /// An unanswered change.
    private struct Pending: Sendable, Encodable {
        let name: String
        let id: String
        /// Nil for a withdrawal.
        let status: Bellhop.UserRequest.Status?
    }

    private struct AnswerBody: Decodable { let status: Bellhop.UserRequest.Status? }

    private struct Confirmed: Decodable { let request: Bellhop.UserRequest? }

    /// The number of requests that a device keeps: one page.
    private static let keptMax = 50
    /// Only the newest requests of a long list are kept in memory.
    private static let storedMax = 500

    public init(direction: Bellhop.ListRequestsDirection = .incoming, user: String? = nil) {
        (self.direction, self.user) = (direction, user)
    }

    private var path: String { "/v1/requests?direction=\(direction.rawValue.pathSegment)&limit=50" }

    public mutating func receive(_ input: FeatureInput<RequestsCommand>, now: Int) -> [FeatureAction] {
        if case .user(let user, let isSignedIn) = input {
            self = RequestsMachine(direction: direction, user: user)
            return begin(for: user, isSignedIn: isSignedIn, now: now)
        }
        if case .start(let user, _) = input { self.user = user ?? self.user }
        let plan = Loading.Plan(
            name: "list", path: path, events: ["request:created", "request:updated", "request:removed"])
        let step = loading.advance(input, plan, now: now)
        var actions = step.actions
        if step.isGone { stored = [] }
        if let answer = step.answer {
            let page = answer.page(of: Bellhop.UserRequest.self)
            (stored, next) = (page.items, page.next)
            for event in step.since { handle(event.event) }
            show()
            if isSeeingPending { actions += see() }
            isSeeingPending = false
        }
        switch input {
        case .event(let event): handle(event)
        case .answer(let name, let status, let body, _):
            actions += answered(name, ClassifiedAnswer(status: status, body: body))
        case .command(let command): actions += self.command(command)
        case .restore: if let kept = input.restored(Kept.self), loading.restore() { stored = kept.items }
        case .waiting(let items): for item in items { wait(for: item) }
        default: break
        }
        show()
        return actions
    }

    // MARK: Kept state

    /// The state to keep on the device.
    private struct Kept: Codable, Sendable {
        let items: [Bellhop.UserRequest]
    }

    public var kept: (any Encodable & Sendable)? {
        loading.isLoaded ? Kept(items: Array(stored.prefix(RequestsMachine.keptMax))) : nil
    }

    /// Shows the change of a write that an earlier start made.
    private mutating func wait(for item: OutboxItem) {
        let withdrawn = item.match("DELETE", "/v1/requests/*")
        guard let id = (withdrawn ?? item.match("PATCH", "/v1/requests/*"))?.first else { return }
        let status = withdrawn == nil ? item.body?.model(AnswerBody.self)?.status : nil
        pending.append(Pending(name: item.answerName, id: id, status: status))
    }

    // MARK: Input from the service

    private mutating func handle(_ event: FeatureEvent) {
        switch event.typed {
        case .streamReady(let ready): user = user ?? ready.userId
        case .requestCreated(let request), .requestUpdated(let request): put(request)
        case .requestRemoved(let request): stored.removeAll { $0.id == request.id }
        default: break
        }
    }

    /// Adds a request, or replaces it. A request of the other direction is ignored.
    private mutating func put(_ request: Bellhop.UserRequest) {
        guard let held = stored.first(where: { $0.id == request.id }) else {
            guard (direction == .outgoing ? request.fromUserId : request.toUserId) == user else { return }
            stored = Array(([request] + stored).sorted { $0.id > $1.id }.prefix(RequestsMachine.storedMax))
            return
        }
        // Answers are final: an older event must not open a request again.
        if request.status == .open, held.status != .open { return }
        stored = stored.map { $0.id == request.id ? request : $0 }
    }

    private mutating func answered(_ name: String, _ answer: ClassifiedAnswer) -> [FeatureAction] {
        if let next, name == "more:\(next)", answer.isTaken {
            let page = answer.page(of: Bellhop.UserRequest.self)
            let ids = Set(stored.map(\.id))
            stored = Array((stored + page.items.filter { !ids.contains($0.id) }).prefix(RequestsMachine.storedMax))
            self.next = stored.count < RequestsMachine.storedMax ? page.next : nil
            return []
        }
        let index = pending.firstIndex { $0.name == name }
        guard index != nil || name == "see" || name == "ask" else { return [] }
        let change = index.map { pending.remove(at: $0) }
        let isWithdrawn = change != nil && change?.status == nil
        // Withdrawn on another device.
        let isGone = isWithdrawn && answer.status == 404
        guard answer.isTaken || isGone else {
            return [.publish(name: "requests:refused", data: ["id": JSON(change?.id), "problem": answer.problem])]
        }
        if let request = answer.model(Confirmed.self)?.request {
            put(request)
        } else if isWithdrawn {
            stored.removeAll { $0.id == change?.id }
        }
        return isGone ? [] : answer.badgesEvent
    }

    // MARK: Commands of the user

    private mutating func command(_ command: RequestsCommand) -> [FeatureAction] {
        switch command {
        case .settle(let id, let status): return settle(id, status)
        case .see:
            isSeeingPending = !loading.isLoaded || loading.isKept
            return see()
        case .ask(let draft): return [.send("POST", "/v1/requests", JSON(model: draft), as: "ask")]
        case .more: return next.map { [.fetch(path: "\(path)&cursor=\($0.pathSegment)", as: "more:\($0)")] } ?? []
        }
    }

    private func see() -> [FeatureAction] {
        guard let newest = items.first?.id else { return [] }
        return [.send("PATCH", "/v1/requests", ["seenUpTo": .string(newest)], as: "see")]
    }

    /// Answers or withdraws a request.
    private mutating func settle(_ id: String, _ status: Bellhop.UserRequest.Status?) -> [FeatureAction] {
        if let known = items.first(where: { $0.id == id }), known.status != .open { return [] }
        count += 1
        let name = "settle-\(count)"
        pending.append(Pending(name: name, id: id, status: status))
        let place = "/v1/requests/\(id.pathSegment)"
        guard let status else { return [.send("DELETE", place, as: name)] }
        return [.send("PATCH", place, ["status": .string(status.rawValue)], as: name)]
    }

    /// Overlays the unanswered changes on the state from the service.
    private mutating func show() {
        items = pending.reduce(stored) { items, change in
            guard let status = change.status else { return items.filter { $0.id != change.id } }
            return items.map { item in
                guard item.id == change.id, item.status == .open else { return item }
                var answered = item
                answered.status = status
                return answered
            }
        }
        (isLoaded, problem, hasMore) = (loading.isLoaded, loading.problem, next != nil)
    }

    public struct Snapshot: Sendable, Hashable {
        /// Newest first.
        public let items: [Bellhop.UserRequest]
        /// Whether there are older requests.
        public let hasMore: Bool
        public let isLoaded: Bool
        public let problem: Bellhop.Problem?
    }

    public var snapshot: Snapshot {
        Snapshot(items: items, hasMore: hasMore, isLoaded: isLoaded, problem: Bellhop.Problem(problem))
    }

    private enum CodingKeys: CodingKey { case user, items, isLoaded, hasMore, problem, stored, pending }
}
