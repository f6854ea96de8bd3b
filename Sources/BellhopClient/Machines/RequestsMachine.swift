import Foundation

/// The requests to a user, or the ones that the user has made, newest first.
///
/// The user's own answers and withdrawals show at once, and are reverted if the service refuses them.
public struct RequestsMachine: ShownMachine {
    public let direction: Bellhop.ListRequestsDirection
    public private(set) var user: String? {
        didSet { list.rules.user = user }
    }
    /// The shown requests.
    public private(set) var items: [Bellhop.UserRequest] = []
    public private(set) var isLoaded = false
    public private(set) var hasMore = false
    public private(set) var problem: JSON = .null
    private var list: ListMachine<RequestsRules>
    /// Whether the user has seen the requests before the first page came.
    private var isSeeingPending = false

    public init(direction: Bellhop.ListRequestsDirection = .incoming, user: String? = nil) {
        (self.direction, self.user) = (direction, user)
        list = ListMachine(RequestsRules(direction: direction, user: user), ["direction": direction.rawValue])
    }

    public mutating func receive(_ input: FeatureInput<RequestsCommand>, now: Int) -> [FeatureAction] {
        if case .user(let user, let isSignedIn) = input {
            self = RequestsMachine(direction: direction, user: user)
            return begin(for: user, isSignedIn: isSignedIn, now: now)
        }
        if case .start(let user, _) = input { self.user = user ?? self.user }
        let step = list.advance(input, now: now)
        var actions = step.actions
        if let answer = step.answer {
            list.take(answer.page())
            ListMachine<RequestsRules>.applySince(step, to: &self, \.list) { $0.handle($1.event, now: $1.now) }
            show()
            if isSeeingPending { actions += see() }
            isSeeingPending = false
        }
        switch input {
        case .event(let event): handle(event, now: now)
        case .answer(let name, let status, let body, _):
            actions += answered(name, ClassifiedAnswer(status: status, body: body))
        case .command(let command): actions += self.command(command, now: now)
        case .restore: if let kept = input.restored(Kept.self) { _ = list.restore(kept.items) }
        default: break
        }
        show()
        return actions
    }

    /// The state to keep on the device.
    private struct Kept: Codable, Sendable {
        let items: [Bellhop.UserRequest]
    }

    public var kept: (any Encodable & Sendable)? { list.kept.map(Kept.init) }

    private mutating func handle(_ event: FeatureEvent, now: Int) {
        if case .streamReady(let ready) = event.typed { user = user ?? ready.userId }
        list.apply(event, now: now)
    }

    private mutating func answered(_ name: String, _ answer: ClassifiedAnswer) -> [FeatureAction] {
        if list.takeMore(name, answer) { return [] }
        guard name == "see" || name == "ask" else { return list.settle(name, answer) ?? [] }
        return answer.isTaken ? answer.badgesEvent : [list.refused([], answer)]
    }

    private mutating func command(_ command: RequestsCommand, now: Int) -> [FeatureAction] {
        switch command {
        case .settle(let id, let status):
            if let known = items.first(where: { $0.id == id }), known.status != .open { return [] }
            guard let status else { return list.send("withdraw", [id], nil, now: now) }
            let body: JSON = ["status": .string(status.rawValue)]
            return list.send("answer", [id], .init(status: status), body: body, now: now)
        case .see:
            isSeeingPending = !list.loading.isLoaded || list.loading.isKept
            return see()
        case .ask(let draft): return [.send("POST", "/v1/requests", JSON(model: draft), as: "ask")]
        case .more: return list.fetchMore()
        }
    }

    private func see() -> [FeatureAction] {
        guard let newest = items.first?.id else { return [] }
        return [.send("PATCH", "/v1/requests", ["seenUpTo": .string(newest)], as: "see")]
    }

    /// Overlays the unanswered changes on the state from the service.
    private mutating func show() {
        items = list.shown
        (isLoaded, problem, hasMore) = (list.loading.isLoaded, list.loading.problem, list.next != nil)
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

    private enum CodingKeys: CodingKey { case user, items, isLoaded, hasMore, problem, list }
}

/// The commands of the user or the app.
public enum RequestsCommand: Sendable, Hashable {
    case more
    /// Answers a request; without a status, withdraws it.
    case settle(id: String, status: Bellhop.UserRequest.Status?)
    /// Marks the requests to the user as seen, up to the newest one shown.
    case see
    case ask(draft: Bellhop.CreateRequestBody)
}

private struct RequestsRules: ListRules {
    typealias Data = RequestsList

    struct Change: Codable, Sendable { let status: Bellhop.UserRequest.Status }

    let direction: Bellhop.ListRequestsDirection
    var user: String?

    /// A request of the other direction is ignored. Answers are final: an older event must not open a request again.
    func joined(_ newer: Bellhop.UserRequest, _ held: Bellhop.UserRequest?) -> Bellhop.UserRequest? {
        if let held { return newer.status == .open && held.status != .open ? nil : newer }
        return (direction == .outgoing ? newer.fromUserId : newer.toUserId) == user ? newer : nil
    }

    func changed(_ item: Bellhop.UserRequest, by change: Change, at _: Date) -> Bellhop.UserRequest {
        guard item.status == .open else { return item }
        var answered = item
        answered.status = change.status
        return answered
    }
}
