/// Which queries an app has to fetch again.
///
/// The service says which keys are stale; here the client's own changes are left out, a key is said once in a second at
/// most, and what nobody looks at is only noted as stale until somebody does.
public struct InvalidationMachine: FeatureMachine {
    /// Such as `["leaderboard", "c1"]`; it means all that begin with it.
    public typealias Key = [String]

    private struct Query: Sendable, Hashable, Encodable {
        let id: String
        let key: Key
        var isVisible: Bool
        var isStale: Bool
    }

    private struct Window: Sendable, Hashable, Encodable {
        var endsAt: Int
        var isWaiting: Bool
    }

    private struct Mutation: Sendable, Hashable, Encodable {
        let table: String
        let recordId: String
        let at: Int
    }

    public let clientId: String?
    public let scopeKeys: [Key]
    public private(set) var isLive = false
    /// Without a stream for longer than data may be old.
    public private(set) var isStale = false
    public var staleKeys: [Key] { queries.filter(\.isStale).map(\.key) }
    private var queries: [Query] = []
    private var windows: [Key: Window] = [:]
    private var mutations: [Mutation] = []
    private var isForeground = true
    /// The keys that went stale in the background.
    private var missed: [Key] = []
    private var refreshedAt: Int?

    private static let windowMilliseconds = 1000
    /// As old as data may be where no stream says that it has changed (R-SCH-NFR-003).
    private static let staleMilliseconds = 300_000
    /// How long an echo of an own change is expected where it does not say who made it (R-SCH-FR-005, R-24).
    private static let echoMilliseconds = 2000
    /// More own changes than that within two seconds are no user's.
    private static let mutationsMax = 1000
    /// As many keys as the service tells a stream of in one window; more, and everything is fetched again.
    private static let keysMax = 512

    public init(clientId: String? = nil, scopeKeys: [Key] = [["profile"], ["classes"]]) {
        self.clientId = clientId
        self.scopeKeys = scopeKeys
    }

    public mutating func receive(_ input: FeatureInput, now: Int) -> [FeatureAction] {
        switch input {
        case .start(_, let isLive), .connection(let isLive): return connect(isLive, now: now)
        case .lifecycle(let isForeground): return look(isForeground, now: now)
        case .event(let name, let data, _): return hear(name, data, now: now)
        case .timer("stale"): return becomeStale(now: now)
        case .timer("window"): return closeWindows(now: now)
        case .user:
            let (queries, isForeground) = (queries, isForeground)
            self = InvalidationMachine(clientId: clientId, scopeKeys: scopeKeys)
            (self.queries, self.isForeground) = (queries, isForeground)
            return refetch([], reason: "user", now: now)
        case .command("mutated", let row): note(row, now: now)
        case .command("watch-query", let query): return watch(query)
        case .command("unwatch-query", let query): queries.removeAll { $0.id == query["id"].string }
        // By the user's own hand: no window, no echo, and whether it is visible is not asked (R-SCH-FR-020).
        case .command("refetch", let wish): return refetch(wish["key"].strings, reason: "forced", now: now)
        default: break
        }
        return []
    }

    // MARK: What the app says

    private mutating func note(_ row: JSON, now: Int) {
        let id = row["recordId"].string ?? row["recordId"].int.map(String.init) ?? ""
        let recent = mutations.filter { now - $0.at < InvalidationMachine.echoMilliseconds }
        let mutation = Mutation(table: row["table"].string ?? "", recordId: id, at: now)
        mutations = (recent + [mutation]).suffix(InvalidationMachine.mutationsMax)
    }

    private mutating func watch(_ json: JSON) -> [FeatureAction] {
        let id = json["id"].string ?? ""
        let isVisible = json["isVisible"].bool ?? true
        let wasStale = queries.first { $0.id == id }?.isStale ?? false
        queries.removeAll { $0.id == id }
        queries.append(
            Query(id: id, key: json["key"].strings, isVisible: isVisible, isStale: wasStale && !isVisible))
        // It went stale while nobody looked.
        return wasStale && isVisible ? [InvalidationMachine.tellRefetch([id], reason: "shown")] : []
    }

    private mutating func refetch(_ key: Key, reason: String, now: Int) -> [FeatureAction] {
        let meant = queries.indices.filter { queries[$0].key.starts(with: key) }
        for index in meant { queries[index].isStale = false }
        refreshedAt = now
        let keys: JSON = [.array(key.map(JSON.string))]
        let stale = FeatureAction.tell(
            name: "query:stale", data: ["keys": keys, "reason": .string(reason), "isForced": true])
        return meant.isEmpty
            ? [stale] : [stale, InvalidationMachine.tellRefetch(meant.map { queries[$0].id }, reason: reason)]
    }

    // MARK: What the stream says

    private mutating func connect(_ isLive: Bool, now: Int) -> [FeatureAction] {
        if isLive == self.isLive, isLive || refreshedAt != nil { return [] }
        (self.isLive, isStale, refreshedAt) = (isLive, false, now)
        return [.timer(name: "stale", at: isLive ? nil : now + InvalidationMachine.staleMilliseconds)]
    }

    private mutating func look(_ isForeground: Bool, now: Int) -> [FeatureAction] {
        let wasForeground = self.isForeground
        self.isForeground = isForeground
        guard isForeground, !wasForeground else { return [] }
        // Without a stream what is shown is as old as the time that has passed.
        if !isLive, now - (refreshedAt ?? now) >= InvalidationMachine.staleMilliseconds { return becomeStale(now: now) }
        let seen = queries.indices.filter { queries[$0].isStale && queries[$0].isVisible }
        for index in seen { queries[index].isStale = false }
        // Told again: an app that fetches by keys fetched nothing in the background.
        let stale = missed.isEmpty ? [] : [tellStale(missed, reason: "foreground")]
        missed = []
        let ids = seen.map { queries[$0].id }
        return stale + (ids.isEmpty ? [] : [InvalidationMachine.tellRefetch(ids, reason: "foreground")])
    }

    /// The key of everything takes the place of too many.
    private mutating func miss(_ keys: [Key]) {
        missed += keys.filter { !missed.contains($0) }
        if missed.contains([]) || missed.count > InvalidationMachine.keysMax { missed = [[]] }
    }

    private func tellStale(_ keys: [Key], reason: String) -> FeatureAction {
        .tell(
            name: "query:stale",
            data: [
                "keys": .array(keys.map { .array($0.map(JSON.string)) }), "reason": .string(reason),
                "isForeground": .bool(isForeground),
            ])
    }

    private mutating func hear(_ name: String, _ data: JSON, now: Int) -> [FeatureAction] {
        switch name {
        case "query:invalidate":
            return isEcho(data, now: now)
                ? [] : offer((data["keys"].array ?? []).map(\.strings), reason: name, now: now)
        // What happened before the stream was there was told to nobody.
        case "stream:ready":
            (isLive, isStale, refreshedAt) = (true, false, now)
            return offer([[]], reason: name, now: now)
        case "stream:resync": return offer([[]], reason: name, now: now)
        case "stream:scope":
            return offer(scopeKeys, reason: name, now: now) + [.tell(name: "scope:changed", data: data)]
        default: return []
        }
    }

    /// Only where nothing but own changes is behind it: one cause of somebody else, or one that is not known, is news.
    private func isEcho(_ data: JSON, now: Int) -> Bool {
        guard data["causesComplete"].bool == true, let causes = data["causes"].array, !causes.isEmpty else {
            return false
        }
        return causes.allSatisfy { cause in
            if let origin = cause["originId"].string { return origin == clientId }
            return mutations.contains { mutation in
                mutation.table == cause["table"].string && mutation.recordId == cause["recordId"].string
                    && now - mutation.at < InvalidationMachine.echoMilliseconds
            }
        }
    }

    /// Each key at once, and then no more in its window, whose end says it once more if it was told again meanwhile.
    ///
    /// The window is fixed: one that every event prolonged would starve a key that never rests.
    private mutating func offer(_ keys: [Key], reason: String, now: Int) -> [FeatureAction] {
        var due: [Key] = []
        let isAll = windows.count + keys.count > InvalidationMachine.keysMax
        for key in isAll ? [[]] : keys {
            // While everything has just been said to be stale, a key waits for the end of that window.
            if let open = [windows[key], windows[[]]].compactMap(\.self).first(where: { now < $0.endsAt }) {
                windows[key] = Window(endsAt: open.endsAt, isWaiting: true)
            } else {
                windows[key] = Window(endsAt: now + InvalidationMachine.windowMilliseconds, isWaiting: false)
                due.append(key)
            }
        }
        return tell(due, reason: reason) + [windowTimer]
    }

    private var windowTimer: FeatureAction { .timer(name: "window", at: windows.values.map(\.endsAt).min()) }

    private mutating func closeWindows(now: Int) -> [FeatureAction] {
        let over = windows.filter { now >= $0.value.endsAt }
        var due: [Key] = []
        for (key, window) in over.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
            windows[key] = nil
            guard window.isWaiting else { continue }
            due.append(key)
            windows[key] = Window(endsAt: now + InvalidationMachine.windowMilliseconds, isWaiting: false)
        }
        return tell(due, reason: "query:invalidate") + (windows.isEmpty ? [] : [windowTimer])
    }

    private mutating func becomeStale(now: Int) -> [FeatureAction] {
        guard !isLive else { return [] }
        isStale = true
        guard isForeground else { return [] }
        refreshedAt = now
        return tell([[]], reason: "stale") + [.timer(name: "stale", at: now + InvalidationMachine.staleMilliseconds)]
    }

    private mutating func tell(_ keys: [Key], reason: String) -> [FeatureAction] {
        guard !keys.isEmpty else { return [] }
        let told: [Key] = keys.contains([]) ? [[]] : keys
        let meant = queries.indices.filter { index in told.contains { queries[index].key.starts(with: $0) } }
        let seen = meant.filter { queries[$0].isVisible && isForeground }
        for index in meant { queries[index].isStale = !seen.contains(index) }
        if isForeground { missed = [] } else { miss(told) }
        let stale = tellStale(told, reason: reason)
        return seen.isEmpty
            ? [stale] : [stale, InvalidationMachine.tellRefetch(seen.map { queries[$0].id }, reason: reason)]
    }

    private static func tellRefetch(_ ids: [String], reason: String) -> FeatureAction {
        .tell(name: "query:refetch", data: ["ids": .array(ids.map(JSON.string)), "reason": .string(reason)])
    }

    private enum CodingKeys: CodingKey { case isLive, isStale, staleKeys, queries, mutations, windows }

    public func encode(to encoder: any Encoder) throws {
        var state = encoder.container(keyedBy: CodingKeys.self)
        try state.encode(isLive, forKey: .isLive)
        try state.encode(isStale, forKey: .isStale)
        try state.encode(staleKeys, forKey: .staleKeys)
        try state.encode(queries, forKey: .queries)
        try state.encode(mutations, forKey: .mutations)
        let named = windows.map { (JSON.array($0.key.map(JSON.string)).text, $0.value) }
        try state.encode(Dictionary(named, uniquingKeysWith: { first, _ in first }), forKey: .windows)
    }
}
