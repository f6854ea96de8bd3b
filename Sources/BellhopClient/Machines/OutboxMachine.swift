/// A write that waits to be sent.
public struct OutboxItem: Sendable, Hashable, Codable {
    /// The `Idempotency-Key`: from the start, so that one whose answer got lost is not done twice by being sent again.
    public let key: String
    /// Where it stands among the others: texts in the order of their making.
    public let order: String
    public let method: String
    public let path: String
    public let body: JSON?
    public let headers: [String: String]?
    /// Since when it may have been done, in milliseconds since 1970; nil: it has never left.
    public internal(set) var tried: Int?
    /// The claims that decide what the tokens of its identity may do; nil: unknown.
    public internal(set) var identity: String?
}

/// Writes that wait for the network, sent one after the other, each done once (R-VIS-NFR-2.3, R-CUT-N-3).
struct OutboxMachine: Sendable, Hashable {
    struct Limits: Sendable, Hashable {
        /// A phone that stays offline must not collect writes without end.
        var itemsMax = 1000
        var firstMilliseconds = 1000
        var delayMillisecondsMax = 30_000
        var serverMillisecondsMax = 3_600_000
        /// The service keeps answers for 24 hours. Who may have done a write longer ago cannot tell, and it is not sent
        /// again.
        var keyMillisecondsMax = 23 * 3_600_000
    }

    /// What a write was answered; status 0: it was not sent, and the body's code says why.
    struct Outcome: Sendable, Hashable {
        let status: Int
        var headers: [String: String] = [:]
        var body: JSON = .null
    }

    enum Input: Sendable {
        /// What was stored before a restart.
        case restored([OutboxItem])
        case add(OutboxItem)
        case network(isOnline: Bool)
        case connection(isLive: Bool)
        /// The item is stored as tried.
        case marked(OutboxItem)
        case answer(key: String, Outcome, retryAfterMilliseconds: Int = 0)
        case timer
        /// Its user has signed out, and whoever signed out takes what is stored.
        case forget
    }

    enum Action: Sendable, Hashable {
        case timer(name: String, at: Int?)
        /// To be stored before it leaves.
        case mark(OutboxItem)
        case request(OutboxItem)
        /// From the storage.
        case remove(OutboxItem)
        case answered(OutboxItem, Outcome)
    }

    /// In order.
    private(set) var items: [OutboxItem] = []
    /// Items of another identity are not sent.
    private let identity: String?
    private var isOnline: Bool
    private var isRestored: Bool
    /// The key of the one that is under way.
    private var sending: String?
    private var failures = 0
    private var retryAt = 0
    private let limits: Limits

    init(
        isOnline: Bool = true, isRestored: Bool = true, identity: String? = nil, limits: Limits = Limits()
    ) {
        self.identity = identity
        self.isOnline = isOnline
        self.isRestored = isRestored
        self.limits = limits
    }

    mutating func receive(_ input: Input, now: Int, random: Double) -> [Action] {
        switch input {
        case .restored(let items):
            insert(items)
            isRestored = true
            return next(now)
        case .add(let item):
            guard isOwn(item) else { return [] }
            if let known = items.first(where: { $0.key == item.key }) {
                // A write of an earlier start has that key: its answer is that of both, and one of them is stored.
                return known.order == item.order ? [] : [.remove(item)]
            }
            guard items.count < limits.itemsMax else {
                return OutboxMachine.dropped(item, Outcome(status: 0, body: ["code": "outbox.full"]))
            }
            insert([item])
            return next(now)
        case .network(let isOnline):
            self.isOnline = isOnline
            if isOnline { (failures, retryAt) = (0, 0) }
            return next(now)
        case .connection(let isLive):
            // A stream that is there again proves the way: what waits need not wait on.
            if isLive { (failures, retryAt) = (0, 0) }
            return next(now)
        case .marked(let item):
            // It was forgotten while it was being stored.
            guard sending == item.key else { return [.remove(item)] }
            items = items.map { $0.key == item.key ? item : $0 }
            return [OutboxMachine.timer(nil), .request(item)]
        case .answer(let key, let outcome, let wait): return answered(key, outcome, wait, now, random)
        case .timer: return next(now)
        case .forget:
            let outcome = Outcome(status: 0, body: ["code": "outbox.signed_out"])
            defer { (items, sending) = ([], nil) }
            return items.map { .answered($0, outcome) }
        }
    }

    private static func timer(_ at: Int?) -> Action { .timer(name: "outbox", at: at) }

    private static func dropped(_ item: OutboxItem, _ outcome: Outcome) -> [Action] {
        [.remove(item), .answered(item, outcome)]
    }

    /// A write that was made with other rights stays in the storage for them.
    private func isOwn(_ item: OutboxItem) -> Bool { item.identity == identity }

    private mutating func insert(_ added: [OutboxItem]) {
        let known = Set(items.map(\.key))
        // Also more than may wait: those of a process that was killed while it refused one are on the disk, and would be
        // left there.
        items = (items + added.filter { isOwn($0) && !known.contains($0.key) }).sorted { $0.order < $1.order }
    }

    /// The first in line, if nothing is under way.
    private mutating func next(_ now: Int) -> [Action] {
        // What was written before a restart goes before what was written since.
        guard sending == nil, isOnline, isRestored else { return [] }
        var actions: [Action] = []
        while let item = items.first {
            if let tried = item.tried, now - tried > limits.keyMillisecondsMax {
                items.removeFirst()
                actions += OutboxMachine.dropped(item, Outcome(status: 0, body: ["code": "outbox.uncertain"]))
                continue
            }
            if now < retryAt { return actions + [OutboxMachine.timer(retryAt)] }
            sending = item.key
            if item.tried != nil { return actions + [OutboxMachine.timer(nil), .request(item)] }
            // It is noted before it leaves: after a crash nobody else could tell that it may have been done.
            var marked = item
            marked.tried = now
            return actions + [.mark(marked)]
        }
        return actions
    }

    private mutating func answered(
        _ key: String, _ outcome: Outcome, _ wait: Int, _ now: Int, _ random: Double
    ) -> [Action] {
        guard sending == key, let index = items.firstIndex(where: { $0.key == key }) else { return [] }
        sending = nil
        let status = outcome.status
        guard status == 0 || status >= 500 || [401, 408, 425, 429].contains(status) else {
            // Done, or refused for good: the app is told, and those behind it are not held up.
            let item = items.remove(at: index)
            (failures, retryAt) = (0, 0)
            return OutboxMachine.dropped(item, outcome) + next(now)
        }
        let base = min(limits.firstMilliseconds << min(failures, 20), limits.delayMillisecondsMax)
        let own = min(Int(Double(base) * (0.8 + 0.4 * random)), limits.delayMillisecondsMax)
        failures += 1
        retryAt = now + max(own, min(wait, limits.serverMillisecondsMax))
        return next(now)
    }
}

extension OutboxMachine: Encodable {
    private enum CodingKeys: CodingKey { case items, sending, failures }
}
