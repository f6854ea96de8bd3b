/// The single source of an app's badge counts: whichever way counts arrive, the newest version wins.
///
/// A message that arrives without counts adds one at once. The expected effect of an own write is subtracted once the
/// write has succeeded. Both adjustments last only until the service sends counts, which include them.
public struct CountsMachine: FeatureMachine {
    /// The shown counts; null until the service has sent some.
    public private(set) var badges: JSON = .null
    public var counts: BadgeCounts? { BadgeCounts(badges) }
    public private(set) var user: String?
    private var confirmed: JSON = .null
    private var adjustments: [Adjustment] = []

    private struct Adjustment: Sendable, Encodable {
        let key: String
        let by: JSON
        var isShown: Bool
    }

    /// Beyond this number of adjustments without counts from the service, estimates are too inaccurate, and the oldest
    /// are dropped.
    private static let adjustmentsMax = 100
    private static let fetch = FeatureAction.fetch(path: "/v1/badges", as: "badges")

    public init(user: String? = nil) {
        self.user = user
    }

    public mutating func receive(_ input: FeatureInput, now: Int) -> [FeatureAction] {
        switch input {
        case .start(let user, let isLive):
            self.user = user ?? self.user
            // The open stream sent its counts before this machine existed, so they are fetched.
            return isLive ? [CountsMachine.fetch] : []
        case .user(let user, _): self = CountsMachine(user: user)
        case .event(let name, let data, _): handle(name, data)
        // Registers a write that will change the counts by this much.
        case .command("expect", let arguments):
            adjust(Adjustment(key: arguments["as"].string ?? "", by: arguments["by"], isShown: false))
        case .answer(let name, let status, let body, _):
            return answered(name, ClassifiedAnswer(status: status, body: body))
        default: break
        }
        return []
    }

    private mutating func handle(_ name: String, _ data: JSON) {
        if name == "stream:ready" { user = user ?? data["userId"].string }
        if name == "badges:update" { return merge(data) }
        if CountsMachine.isBadges(data["badges"]) { return merge(data["badges"]) }
        if name == "message:deleted" { drop(data["messageId"].string ?? "") }
        let message = data["message"]
        guard name == "message:created", let user, let id = message["id"].string, message["senderId"].string != user
        else { return }
        adjust(Adjustment(key: id, by: ["messages": 1], isShown: true))
    }

    private mutating func answered(_ name: String, _ answer: ClassifiedAnswer) -> [FeatureAction] {
        if name == "badges" || name == "reconcile" {
            guard answer.isTaken || answer.status == 304 else { return [] }
            // A 304 answers another client's cached state; without local counts they are fetched in full.
            if answer.status == 304, confirmed.isNull { return [CountsMachine.fetch] }
            // Counts fetched from the service replace all adjustments.
            adjustments.removeAll(where: \.isShown)
            show()
            merge(answer.body)
            return []
        }
        if !answer.isTaken || CountsMachine.isBadges(answer.body["badges"]) {
            drop(name)
            if answer.isTaken { merge(answer.body["badges"]) }
            return []
        }
        guard let index = adjustments.firstIndex(where: { $0.key == name }) else { return [] }
        adjustments[index].isShown = true
        show()
        return [CountsMachine.fetch]
    }

    private mutating func merge(_ offered: JSON) {
        guard CountsMachine.isBadges(offered), isNewer(confirmed, offered) else { return }
        var counts = offered.object?.filter {
            ["messages", "requests", "bell", "version", "epoch", "asOf"].contains($0.key)
        }
        counts?["total"] = .integer(Int64(CountsMachine.names.reduce(0) { $0 + (offered[$1].int ?? 0) }))
        confirmed = .object(counts ?? [:])
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
        badges = confirmed
        guard !confirmed.isNull else { return }
        var total = 0
        for name in CountsMachine.names {
            let shown = adjustments.filter(\.isShown).reduce(confirmed[name].int ?? 0) { $0 + ($1.by[name].int ?? 0) }
            badges = badges.with([name: .integer(Int64(max(0, shown)))])
            total += max(0, shown)
        }
        badges = badges.with(["total": .integer(Int64(total))])
    }

    private static let names = ["messages", "requests", "bell"]

    private static func isBadges(_ value: JSON) -> Bool {
        (names + ["version"]).allSatisfy { value[$0].int != nil }
    }
}
