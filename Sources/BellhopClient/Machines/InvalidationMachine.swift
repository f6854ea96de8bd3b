/// Decides which queries an app has to refetch.
///
/// The service sends the stale keys. The machine ignores the client's own changes and reports each key at most once per
/// second. Invisible queries are only marked as stale, and refetched when they become visible.
public struct InvalidationMachine: ShownMachine {
    /// A query key such as `["leaderboard", "c1"]`; it matches all keys that begin with it.
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
    /// Whether there has been no stream for longer than data may be old.
    public private(set) var isStale = false
    public var staleKeys: [Key] { queries.filter(\.isStale).map(\.key) }
    private var queries: [Query] = []
    private var windows: [Key: Window] = [:]
    private var mutations: [Mutation] = []
    private var isForeground = true
    /// Keys that became stale in the background.
    private var missed: [Key] = []
    private var refreshedAt: Int?

    private static let windowMilliseconds = 1000
    /// Maximum age of data while no stream reports changes (R-SCH-NFR-003).
    private static let staleMilliseconds = 300_000
    /// How long the echo of an own change is expected, if the event does not identify its author (R-SCH-FR-005, R-24).
    private static let echoMilliseconds = 2000
    /// A user does not make more own changes than this within two seconds.
    private static let mutationsMax = 1000
    /// The maximum number of keys that the service sends a stream in one window. Beyond it, everything is refetched.
    private static let keysMax = 512

    public init(clientId: String? = nil, scopeKeys: [Key] = [["profile"], ["classes"]]) {
        self.clientId = clientId
        self.scopeKeys = scopeKeys
    }

    public mutating func receive(_ input: FeatureInput<InvalidationCommand>, now: Int) -> [FeatureAction] {
        switch input {
        case .start(_, let isLive), .connection(let isLive): return connection(isLive, now: now)
        case .lifecycle(let isForeground): return lifecycle(isForeground, now: now)
        case .event(let event): return handle(event, now: now)
        case .timer("stale"): return becomeStale(now: now)
        case .timer("window"): return closeWindows(now: now)
        case .user:
            let (queries, isForeground) = (queries, isForeground)
            self = InvalidationMachine(clientId: clientId, scopeKeys: scopeKeys)
            (self.queries, self.isForeground) = (queries, isForeground)
            return refetch([], reason: "user", now: now)
        case .command(.mutated(let table, let id)): note(Mutation(table: table, recordId: id, at: now))
        case .command(.watchQuery(let id, let key, let isVisible)): return watch(id, key, isVisible: isVisible)
        case .command(.unwatchQuery(let id)): queries.removeAll { $0.id == id }
        // A forced refetch by the user skips the window, the echo filter and the visibility check (R-SCH-FR-020).
        case .command(.refetch(let key)): return refetch(key, reason: "forced", now: now)
        default: break
        }
        return []
    }

    // MARK: Input from the app

    private mutating func note(_ mutation: Mutation) {
        let recent = mutations.filter { mutation.at - $0.at < InvalidationMachine.echoMilliseconds }
        mutations = (recent + [mutation]).suffix(InvalidationMachine.mutationsMax)
    }

    private mutating func watch(_ id: String, _ key: Key, isVisible: Bool) -> [FeatureAction] {
        let wasStale = queries.first { $0.id == id }?.isStale ?? false
        queries.removeAll { $0.id == id }
        queries.append(Query(id: id, key: key, isVisible: isVisible, isStale: wasStale && !isVisible))
        // It became stale while it was not visible.
        return wasStale && isVisible ? [InvalidationMachine.refetchEvent([id], reason: "shown")] : []
    }

    private mutating func refetch(_ key: Key, reason: String, now: Int) -> [FeatureAction] {
        let meant = queries.indices.filter { queries[$0].key.starts(with: key) }
        for index in meant { queries[index].isStale = false }
        refreshedAt = now
        let keys: JSON = [.array(key.map(JSON.string))]
        let stale = FeatureAction.publish(
            name: "query:stale", data: ["keys": keys, "reason": .string(reason), "isForced": true])
        return meant.isEmpty
            ? [stale] : [stale, InvalidationMachine.refetchEvent(meant.map { queries[$0].id }, reason: reason)]
    }

    // MARK: Input from the stream

    private mutating func connection(_ isLive: Bool, now: Int) -> [FeatureAction] {
        if isLive == self.isLive, isLive || refreshedAt != nil { return [] }
        (self.isLive, isStale, refreshedAt) = (isLive, false, now)
        return [.timer(name: "stale", at: isLive ? nil : now + InvalidationMachine.staleMilliseconds)]
    }

    private mutating func lifecycle(_ isForeground: Bool, now: Int) -> [FeatureAction] {
        let wasForeground = self.isForeground
        self.isForeground = isForeground
        guard isForeground, !wasForeground else { return [] }
        // Without a stream, the shown data may have aged past the limit.
        if !isLive, now - (refreshedAt ?? now) >= InvalidationMachine.staleMilliseconds { return becomeStale(now: now) }
        let seen = queries.indices.filter { queries[$0].isStale && queries[$0].isVisible }
        for index in seen { queries[index].isStale = false }
        // The keys are reported again: an app that fetches by keys did not fetch in the background.
        let stale = missed.isEmpty ? [] : [staleEvent(missed, reason: "foreground")]
        missed = []
        let ids = seen.map { queries[$0].id }
        return stale + (ids.isEmpty ? [] : [InvalidationMachine.refetchEvent(ids, reason: "foreground")])
    }

    /// Remembers stale keys; if there are too many, replaces them with the key that matches everything.
    private mutating func miss(_ keys: [Key]) {
        missed += keys.filter { !missed.contains($0) }
        if missed.contains([]) || missed.count > InvalidationMachine.keysMax { missed = [[]] }
    }

    private func staleEvent(_ keys: [Key], reason: String) -> FeatureAction {
        .publish(
            name: "query:stale",
            data: [
                "keys": .array(keys.map { .array($0.map(JSON.string)) }), "reason": .string(reason),
                "isForeground": .bool(isForeground),
            ])
    }

    private mutating func handle(_ event: FeatureEvent, now: Int) -> [FeatureAction] {
        if case .queryInvalidate(let invalidation) = event.typed {
            return isEcho(invalidation, now: now) ? [] : offer(invalidation.keys, reason: event.name, now: now)
        }
        switch event.name {
        // Changes before the stream opened were not delivered, so everything is stale.
        case "stream:ready":
            (isLive, isStale, refreshedAt) = (true, false, now)
            return offer([[]], reason: event.name, now: now)
        case "stream:resync": return offer([[]], reason: event.name, now: now)
        case "stream:scope":
            return offer(scopeKeys, reason: event.name, now: now) + [.publish(name: "scope:changed", data: event.data)]
        default: return []
        }
    }

    /// Returns true only if all causes are own changes. A cause by another client or an unknown one needs a refetch.
    private func isEcho(_ invalidation: Bellhop.QueryInvalidate, now: Int) -> Bool {
        guard invalidation.causesComplete, !invalidation.causes.isEmpty else { return false }
        return invalidation.causes.allSatisfy { cause in
            if let origin = cause.originId { return origin == clientId }
            return mutations.contains { mutation in
                mutation.table == cause.table && mutation.recordId == cause.recordId
                    && now - mutation.at < InvalidationMachine.echoMilliseconds
            }
        }
    }

    /// Throttles each key on the leading edge, with one trailing repeat if the key was offered again within its window.
    ///
    /// The window has a fixed length: if each event extended it, a key that changes constantly would never be reported.
    private mutating func offer(_ keys: [Key], reason: String, now: Int) -> [FeatureAction] {
        var due: [Key] = []
        let isAll = windows.count + keys.count > InvalidationMachine.keysMax
        for key in isAll ? [[]] : keys {
            // After the key for everything was reported, other keys wait for the end of its window.
            if let open = [windows[key], windows[[]]].compactMap(\.self).first(where: { now < $0.endsAt }) {
                windows[key] = Window(endsAt: open.endsAt, isWaiting: true)
            } else {
                windows[key] = Window(endsAt: now + InvalidationMachine.windowMilliseconds, isWaiting: false)
                due.append(key)
            }
        }
        return publish(due, reason: reason) + [windowTimer]
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
        return publish(due, reason: "query:invalidate") + (windows.isEmpty ? [] : [windowTimer])
    }

    private mutating func becomeStale(now: Int) -> [FeatureAction] {
        guard !isLive else { return [] }
        isStale = true
        guard isForeground else { return [] }
        refreshedAt = now
        return publish([[]], reason: "stale") + [.timer(name: "stale", at: now + InvalidationMachine.staleMilliseconds)]
    }

    private mutating func publish(_ keys: [Key], reason: String) -> [FeatureAction] {
        guard !keys.isEmpty else { return [] }
        let published: [Key] = keys.contains([]) ? [[]] : keys
        let meant = queries.indices.filter { index in published.contains { queries[index].key.starts(with: $0) } }
        let seen = meant.filter { queries[$0].isVisible && isForeground }
        for index in meant { queries[index].isStale = !seen.contains(index) }
        if isForeground { missed = [] } else { miss(published) }
        let stale = staleEvent(published, reason: reason)
        return seen.isEmpty
            ? [stale] : [stale, InvalidationMachine.refetchEvent(seen.map { queries[$0].id }, reason: reason)]
    }

    private static func refetchEvent(_ ids: [String], reason: String) -> FeatureAction {
        .publish(name: "query:refetch", data: ["ids": .array(ids.map(JSON.string)), "reason": .string(reason)])
    }

    public struct Snapshot: Sendable, Hashable {
        public let isLive: Bool
        /// Whether there has been no stream for longer than data may be old.
        public let isStale: Bool
        public let staleKeys: [Key]
    }

    public var snapshot: Snapshot { Snapshot(isLive: isLive, isStale: isStale, staleKeys: staleKeys) }

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

/// The commands of the user or the app.
public enum InvalidationCommand: Sendable, Hashable {
    /// Notes an own change, whose echo is ignored.
    case mutated(table: String, recordId: String)
    case watchQuery(id: String, key: InvalidationMachine.Key, isVisible: Bool)
    case unwatchQuery(id: String)
    /// Refetches all queries whose keys begin with this one.
    case refetch(key: InvalidationMachine.Key)
}
