/// Loads a feature's state: at the start, again when the stream opens (changes between the two were not delivered), and
/// after a gap in the stream.
///
/// Events that arrive during the fetch are kept and applied to the answer, because the answer may be older than they
/// are.
struct Loading: Sendable, Hashable {
    /// The path to fetch, and the events to apply to its answer.
    struct Plan {
        let name: String
        let path: String
        var events: Set<String> = []
    }

    struct Event: Sendable, Hashable {
        let event: FeatureEvent
        let now: Int
    }

    /// The result of an input.
    struct Step {
        var actions: [FeatureAction] = []
        /// The body of an answer that has arrived.
        var answer: ClassifiedAnswer?
        /// Events since the request.
        var since: [Event] = []
        var isFetched: Bool { !actions.isEmpty && answer == nil && !isTimer }
        /// Whether the service refuses the state that the device has kept.
        var isGone = false
        fileprivate var isTimer = false
    }

    /// If more events than this arrive during one fetch, the answer is useless, and the state is fetched again.
    static let sinceMax = 500

    private(set) var isLoaded = false
    private(set) var isLoading = false
    private(set) var problem: JSON = .null
    private var isAgain = false
    private(set) var isCovered = false
    /// Whether the state is the one that the device has kept since an earlier start.
    private(set) var isKept = false
    /// Whether the service does not have the feature. It may have it when a stream opens again.
    private var isOff: Bool { problem["code"].string == "feature.off" }
    private var failures = 0
    private var since: [Event] = []
    /// The number of events since the request.
    var sinceCount: Int { since.count }

    mutating func advance<OwnCommand>(_ input: FeatureInput<OwnCommand>, _ plan: Plan, now: Int) -> Step {
        switch input {
        case .start(_, let isLive):
            isCovered = isLive
            return begin(plan)
        case .timer(plan.name): return begin(plan)
        case .refresh: if !isOff { return begin(plan) }
        case .event(let event):
            let isGap = event.name == "stream:resync" || (event.name == "stream:ready" && !isCovered)
            if isOff ? event.name == "stream:ready" : isGap {
                isCovered = true
                return begin(plan)
            }
            if isLoading, plan.events.contains(event.name) { keep(Event(event: event, now: now)) }
        case .answer(plan.name, let status, let body, let retryAfterSeconds):
            guard isLoading else { break }
            return answered(
                ClassifiedAnswer(status: status, body: body, retryAfterSeconds: retryAfterSeconds), plan, now: now)
        default: break
        }
        return Step()
    }

    /// Notes that a state of an earlier start shows, until the service answers. Returns false if it has answered.
    mutating func restore() -> Bool {
        guard !isLoaded else { return false }
        (isLoaded, isKept) = (true, true)
        return true
    }

    /// Returns the actions that fetch the state again.
    mutating func refresh(_ plan: Plan) -> [FeatureAction] { isOff ? [] : begin(plan).actions }

    private mutating func begin(_ plan: Plan) -> Step {
        if isLoading {
            isAgain = true
            return Step()
        }
        (isLoading, isAgain, since) = (true, false, [])
        return Step(actions: [.fetch(path: plan.path, as: plan.name)])
    }

    private mutating func keep(_ event: Event) {
        guard since.count < Loading.sinceMax else {
            (isAgain, since) = (true, [])
            return
        }
        since.append(event)
    }

    private mutating func answered(_ answer: ClassifiedAnswer, _ plan: Plan, now: Int) -> Step {
        let again: [FeatureAction] = isAgain ? [.fetch(path: plan.path, as: plan.name)] : []
        let seenEvents = since
        (isLoading, isAgain, since) = (isAgain, false, [])
        if answer.isTaken {
            (isLoaded, isKept, failures, problem) = (true, false, 0, .null)
            return Step(actions: again, answer: answer, since: seenEvents)
        }
        if !again.isEmpty { return Step(actions: again) }
        problem = answer.problem
        if answer.isFinal {
            failures = 0
            // The user may no longer see it.
            guard isKept, [403, 404, 410].contains(answer.status) else { return Step() }
            (isLoaded, isKept) = (false, false)
            return Step(isGone: true)
        }
        failures += 1
        // While the device is offline, no events are delivered until the stream opens.
        if answer.status == 0 { isCovered = false }
        let at =
            now + ClassifiedAnswer.waitMilliseconds(failures: failures, retryAfterSeconds: answer.retryAfterSeconds)
        return Step(actions: [.timer(name: plan.name, at: at)], isTimer: true)
    }
}

/// An answer, with the classification that machines share.
struct ClassifiedAnswer {
    let status: Int
    let body: JSON
    var retryAfterSeconds: Int?

    var isTaken: Bool { (200..<300).contains(status) }

    /// Whether a retry would get the same refusal.
    var isFinal: Bool { (400..<500).contains(status) && ![401, 408, 425, 429].contains(status) }

    var refusal: Refusal { Refusal(body) }

    /// The refusal as an app may report it: the service's stable code and its sentence.
    var problem: JSON {
        let code = refusal.code ?? (status == 0 ? "unreachable" : "unknown")
        return ["status": JSON(status), "code": .string(code), "detail": .string(refusal.detail ?? "")]
    }

    /// Forwards the answer's counts to the counts machine, the only place that shows them (R-CNT-RECON-3).
    var badgesEvent: [FeatureAction] {
        badges.isNull ? [] : [.publish(name: "badges:update", data: badges)]
    }

    var badges: JSON { body["badges"] }

    /// The refusal with its place in the request.
    var placedProblem: JSON {
        refusal.pointer.map { problem.with(["pointer": .string($0)]) } ?? problem
    }

    /// Decodes the body; nil if it has another form.
    func model<Model: Decodable>(_ type: Model.Type = Model.self) -> Model? { body.model(type) }

    func page<Item: Decodable>(of _: Item.Type = Item.self) -> LoadedPage<Item> {
        body.model() ?? LoadedPage()
    }

    /// Returns 2, 4, 8 … 60 s, or the service's `Retry-After` if that is longer (an hour at most).
    static func waitMilliseconds(failures: Int, retryAfterSeconds: Int?) -> Int {
        let own = failures >= 6 ? 60 : 1 << failures
        return max(own, min(retryAfterSeconds ?? 0, 3600)) * 1000
    }
}

/// A page of a list.
struct LoadedPage<Item: Decodable>: Decodable {
    private let list: LoadedItems<Item>?
    let next: String?
    var items: [Item] { list?.items ?? [] }

    private enum CodingKeys: String, CodingKey { case list = "items", next }

    init(list: LoadedItems<Item>? = nil, next: String? = nil) { (self.list, self.next) = (list, next) }
}

/// Items, without the ones that a newer service writes in another form.
struct LoadedItems<Item: Decodable>: Decodable {
    let items: [Item]

    private struct Lenient: Decodable {
        let item: Item?

        init(from decoder: any Decoder) throws { item = try? Item(from: decoder) }
    }

    init(from decoder: any Decoder) throws {
        items = try decoder.singleValueContainer().decode([Lenient].self).compactMap(\.item)
    }
}

/// A shared topic that stays subscribed while it is watched and a little longer, so that a screen is up to date when
/// the user returns to it.
struct WatchedTopic: Sendable, Hashable {
    static let lingerMilliseconds = 30_000
    private(set) var isSubscribed = false
    /// Why the service refused the topic; cleared by the topic's next event.
    private(set) var problem: JSON = .null

    /// The data of `topic:refused`.
    private struct Refused: Decodable {
        let topic: String
        let problem: JSON?
    }

    /// A copy for another user, without the refusal.
    var forAnotherUser: WatchedTopic {
        var other = self
        other.problem = .null
        return other
    }

    /// Notes an event of the topic, which shows that it is not refused.
    mutating func noteAccepted() { problem = .null }

    mutating func advance<OwnCommand>(_ input: FeatureInput<OwnCommand>, topic: String, now: Int) -> [FeatureAction] {
        switch input {
        case .event(let event):
            guard event.name == "topic:refused", let refusal = event.data.model(Refused.self), refusal.topic == topic
            else { return [] }
            problem = JSON.object(["code": "unknown", "detail": ""]).with(refusal.problem?.object ?? [:])
            return []
        case .start:
            isSubscribed = true
            return [.subscribe(topics: [topic])]
        case .watch(true):
            let subscribing: [FeatureAction] = isSubscribed ? [] : [.subscribe(topics: [topic])]
            isSubscribed = true
            return [.timer(name: "linger", at: nil)] + subscribing
        case .watch(false):
            return isSubscribed ? [.timer(name: "linger", at: now + WatchedTopic.lingerMilliseconds)] : []
        case .timer("linger"):
            (isSubscribed, problem) = (false, .null)
            return [.subscribe(topics: [])]
        default: return []
        }
    }
}

/// The version of a state, within an epoch.
struct StateVersion: Sendable, Hashable {
    let number: Int
    var epoch = ""

    /// Returns whether a state of this version replaces the held one.
    func replaces(_ held: StateVersion?) -> Bool {
        guard let held, held.epoch == epoch else { return true }
        return number > held.number
    }
}

extension Bellhop.Problem {
    /// Decodes a problem from the form that machines use; nil if the JSON is not a problem.
    init?(_ json: JSON) {
        let refusal = Refusal(json)
        guard let status = refusal.status else { return nil }
        let detail = refusal.detail ?? ""
        self.init(
            status: status, code: refusal.code.map(Code.init(rawValue:)), detail: detail,
            errors: refusal.pointer.map { [Place(pointer: $0, detail: detail)] } ?? [], allowed: refusal.allowed ?? [])
    }
}
