import Foundation

/// A write that waits to be sent.
public struct OutboxItem: Sendable, Hashable, Codable {
    /// The `Idempotency-Key`. It is set from the start, so that resending a write whose answer was lost does not
    /// execute it twice.
    public let key: String
    /// Position in the queue, as a text that sorts in the order of creation.
    public let order: String
    public let method: String
    public let path: String
    public let body: JSON?
    public let headers: [String: String]?
    /// Time of the first try, in milliseconds since 1970, from which on the write may have been executed. Nil if it was
    /// never sent.
    public internal(set) var tried: Int?
    /// The claims that decide what the tokens of its identity may do; nil if unknown.
    public internal(set) var identity: String?

    /// The name under which machines that did not make the write receive its answer.
    var answerName: String { "outbox-\(key)" }

    /// Time of creation, which the order begins with; nil if the order has another form.
    var createdAt: Date? {
        Int(order.prefix { $0 != "-" }, radix: 36).map { Moment.date($0 / 1000) }
    }

    /// Returns the parts of the path between these texts; nil if the path or the method has another form.
    ///
    /// - Parameter pattern: such as `/v1/bookings/*`. Each `*` stands for one segment, which is returned decoded.
    func match(_ method: String, _ pattern: String) -> [String]? {
        let wanted = pattern.split(separator: "/")
        let segments = path.split(separator: "/")
        guard method == self.method, wanted.count == segments.count else { return nil }
        var parts: [String] = []
        for (name, segment) in zip(wanted, segments) {
            guard name == "*" else {
                if name != segment { return nil }
                continue
            }
            guard let part = segment.removingPercentEncoding else { return nil }
            parts.append(part)
        }
        return parts
    }
}

/// A queue of writes that wait for the network, sent one after another, each executed once (R-VIS-NFR-2.3, R-CUT-N-3).
struct OutboxMachine: Sendable, Hashable {
    struct Limits: Sendable, Hashable {
        /// Bound on queued writes: a phone that stays offline must not collect writes without end.
        var itemsMax = 1000
        var firstMilliseconds = 1000
        var delayMillisecondsMax = 30_000
        var serverMillisecondsMax = 3_600_000
        /// The service keeps answers for 24 hours. After this time it is uncertain whether a tried write was executed,
        /// so it is not resent.
        var keyMillisecondsMax = 23 * 3_600_000
    }

    /// The result of a write. Status 0 means that it was not sent; the body's code says why.
    struct Outcome: Sendable, Hashable {
        let status: Int
        var headers: [String: String] = [:]
        var body: JSON = .null
    }

    enum Input: Sendable {
        /// Writes stored before a restart.
        case restored([OutboxItem])
        case add(OutboxItem)
        case network(isOnline: Bool)
        case connection(isLive: Bool)
        /// The item has been stored as tried.
        case marked(OutboxItem)
        case answer(key: String, Outcome, retryAfterMilliseconds: Int = 0)
        case timer
        /// The user signed out, and the caller takes the stored writes.
        case forget
    }

    enum Action: Sendable, Hashable {
        case timer(name: String, at: Int?)
        /// Store the item as tried before it is sent.
        case mark(OutboxItem)
        case request(OutboxItem)
        /// Remove the item from the storage.
        case remove(OutboxItem)
        case answered(OutboxItem, Outcome)
    }

    /// Queued writes, in order.
    private(set) var items: [OutboxItem] = []
    /// Writes of another identity are not sent.
    private let identity: String?
    /// What the device reports of its network. An open stream is better evidence.
    private var isOnline: Bool
    private var isLive = false
    private var isRestored: Bool
    /// The key of the write being sent.
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
                // If the key belongs to a write of an earlier start, its answer serves both, and only one stays stored.
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
            // A reopened stream proves that the service is reachable, so the back-off ends.
            self.isLive = isLive
            if isLive { (failures, retryAt) = (0, 0) }
            return next(now)
        case .marked(let item):
            // The write was discarded while it was being stored.
            guard sending == item.key else { return [.remove(item)] }
            items = items.map { $0.key == item.key ? item : $0 }
            return [OutboxMachine.timer(nil), .request(item)]
        case .answer(let key, let outcome, let wait): return answered(key, outcome, wait: wait, at: now, random: random)
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

    /// Returns whether the write has this identity. A write of another identity stays in the storage for that identity.
    private func isOwn(_ item: OutboxItem) -> Bool { item.identity == identity }

    private mutating func insert(_ added: [OutboxItem]) {
        let known = Set(items.map(\.key))
        // The bound does not apply here: a process that was killed while refusing a write leaves it on the disk, and
        // dropping it would leave it there for good.
        items = (items + added.filter { isOwn($0) && !known.contains($0.key) }).sorted { $0.order < $1.order }
    }

    /// Sends the first write in the queue, unless one is being sent.
    private mutating func next(_ now: Int) -> [Action] {
        // Writes from before a restart precede the writes since. Without a network nothing is tried: a tried write is only
        // resent within the time for which the service remembers its key.
        guard sending == nil, isOnline || isLive, isRestored else { return [] }
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
            // The try is stored before the write is sent: after a crash, only this note shows that it may have been
            // executed.
            var marked = item
            marked.tried = now
            return actions + [.mark(marked)]
        }
        return actions
    }

    private mutating func answered(
        _ key: String, _ outcome: Outcome, wait: Int, at now: Int, random: Double
    ) -> [Action] {
        guard sending == key, let index = items.firstIndex(where: { $0.key == key }) else { return [] }
        sending = nil
        let status = outcome.status
        guard status == 0 || status >= 500 || [401, 408, 425, 429].contains(status) else {
            // Executed, or refused for good: the app is notified, and the next write follows.
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
