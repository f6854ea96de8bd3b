/// The single source of an app's badge counts: whichever way counts arrive, the newest version wins.
///
/// A message that arrives without counts adds one at once. The expected effect of an own write is subtracted once the
/// write has succeeded. Both adjustments last only until the service sends counts, which include them.
public struct CountsMachine: ShownMachine {
    /// The shown counts; nil until the service has sent some.
    public private(set) var badges: BadgeCounts?
    public private(set) var user: String?
    private var confirmed: BadgeCounts?
    private var adjustments: [Adjustment] = []

    public var snapshot: BadgeCounts? { badges }

    public struct Amounts: Sendable, Hashable, Codable {
        public var messages: Int?
        public var requests: Int?
        public var bell: Int?

        public init(messages: Int? = nil, requests: Int? = nil, bell: Int? = nil) {
            (self.messages, self.requests, self.bell) = (messages, requests, bell)
        }
    }

    private struct Adjustment: Sendable, Encodable {
        let key: String
        let by: Amounts
        var isShown: Bool
    }

    /// Beyond this number of adjustments without counts from the service, estimates are too inaccurate, and the oldest
    /// are dropped.
    private static let adjustmentsMax = 100
    private static let fetch = FeatureAction.fetch(path: "/v1/badges", as: "badges")

    public init(user: String? = nil) {
        self.user = user
    }

    public mutating func receive(_ input: FeatureInput<CountsCommand>, now _: Int) -> [FeatureAction] {
        switch input {
        case .start(let user, let isLive):
            self.user = user ?? self.user
            // The open stream sent its counts before this machine existed, so they are fetched.
            return isLive ? [CountsMachine.fetch] : []
        case .user(let user, _): self = CountsMachine(user: user)
        case .event(let event): handle(event)
        case .command(.expect(let name, let amounts)): adjust(Adjustment(key: name, by: amounts, isShown: false))
        case .answer(let name, let status, let body, _):
            return answered(name, ClassifiedAnswer(status: status, body: body))
        case .restore(let data):
            guard confirmed == nil else { break }
            merge((try? JSON(parsing: data)).flatMap { BadgeCounts($0["badges"]) })
        default: break
        }
        return []
    }

    public var kept: (any Encodable & Sendable)? { confirmed.map { ["badges": $0] } }

    private mutating func handle(_ event: FeatureEvent) {
        if case .streamReady(let ready) = event.typed { user = user ?? ready.userId }
        if event.name == "badges:update" { return merge(BadgeCounts(event.data)) }
        if let counts = BadgeCounts(event.data["badges"]) { return merge(counts) }
        if case .messageDeleted(let deleted) = event.typed { drop(deleted.messageId) }
        guard let message = NewMessage(event)?.message, let user, message.senderId != user else { return }
        adjust(Adjustment(key: message.id, by: Amounts(messages: 1), isShown: true))
    }

    private mutating func answered(_ name: String, _ answer: ClassifiedAnswer) -> [FeatureAction] {
        if name == "badges" || name == "reconcile" {
            guard answer.isTaken || answer.status == 304 else { return [] }
            // A 304 answers another client's cached state; without local counts they are fetched in full.
            if answer.status == 304, confirmed == nil { return [CountsMachine.fetch] }
            // Counts fetched from the service replace all adjustments.
            adjustments.removeAll(where: \.isShown)
            show()
            merge(BadgeCounts(answer.body))
            return []
        }
        let counts = BadgeCounts(answer.badges)
        if !answer.isTaken || counts != nil {
            drop(name)
            if answer.isTaken { merge(counts) }
            return []
        }
        guard let index = adjustments.firstIndex(where: { $0.key == name }) else { return [] }
        adjustments[index].isShown = true
        show()
        return [CountsMachine.fetch]
    }

    private mutating func merge(_ offered: BadgeCounts?) {
        guard let offered, offered.stateVersion.replaces(confirmed?.stateVersion) else { return }
        confirmed = offered
        // Adjustments of unanswered writes stay; the applied ones are included in these counts.
        adjustments.removeAll(where: \.isShown)
        show()
    }

    private mutating func adjust(_ adjustment: Adjustment) {
        guard !adjustments.contains(where: { $0.key == adjustment.key }) else { return }
        adjustments = (adjustments + [adjustment]).suffix(CountsMachine.adjustmentsMax)
        show()
    }

    private mutating func drop(_ key: String) {
        adjustments.removeAll { $0.key == key }
        show()
    }

    private mutating func show() {
        let shown = adjustments.filter(\.isShown).map(\.by)
        func adjusted(_ count: Int, _ amount: KeyPath<Amounts, Int?>) -> Int {
            max(0, shown.reduce(count) { $0 + ($1[keyPath: amount] ?? 0) })
        }
        badges = confirmed.map { held in
            BadgeCounts(
                messages: adjusted(held.messages, \.messages), requests: adjusted(held.requests, \.requests),
                bell: adjusted(held.bell, \.bell), version: held.version, epoch: held.epoch)
        }
    }
}

/// The commands of the user or the app.
public enum CountsCommand: Sendable, Hashable {
    /// Registers a write that will change the counts by this much.
    case expect(as: String, by: CountsMachine.Amounts)
}

extension BadgeCounts {
    fileprivate var stateVersion: StateVersion { StateVersion(number: version, epoch: epoch) }
}
