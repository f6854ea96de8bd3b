/// Decides when to open, abandon and retry the stream (R-CUT-N-1 to R-CUT-N-4, R-SCH-FR-003, R-VIS-Q2, R-VIS-NFR-2.2,
///
///
/// A pure function of its state and its input, like the feature machines. The JavaScript client must pass the same test
/// vectors.
public struct ConnectionMachine: Sendable, Hashable {
    /// State of the stream.
    public enum Status: String, Sendable, Hashable, Codable, CaseIterable {
        case connecting, live
        /// Waiting for the next try.
        case waiting
        /// The allowed number of tries has failed. The next try follows when the network or the foreground returns, or
        /// when the app requests it.
        case unreachable
        /// The device reports no network, and the last try got no answer. The report may be wrong, so tries continue
        /// slowly.
        case offline
        /// The service refused the stream, and a retry would get the same answer.
        case refused
        case closed
    }

    /// Why the stream is not live.
    public struct Reason: Sendable, Hashable, Codable {
        /// Stable code: `lost`, `timeout`, `silence`, a code of the token such as `token.failed`, or one of the service.
        public let code: String
        /// Status of the service's answer, if there was one.
        public let status: Int?
        /// A sentence to show to people.
        public let detail: String?

        public init(code: String, status: Int? = nil, detail: String? = nil) {
            self.code = code
            self.status = status
            self.detail = detail
        }
    }

    /// Timeouts and retry limits of a stream.
    public struct Limits: Sendable, Hashable {
        /// Maximum number of consecutive failures.
        public var triesMax = 10
        /// The first retry delay, until the stream's `retry:` sets another.
        public var firstMilliseconds = 1000
        public var delayMillisecondsMax = 30_000
        /// A server that requests a longer delay is misconfigured, and a client that complied would appear dead.
        public var serverMillisecondsMax = 3_600_000
        /// Maximum time until the stream is ready.
        public var connectMilliseconds = 10_000
        /// The service sends a heartbeat at least every 25 s; a connection that is silent longer than this is dead.
        public var silenceMilliseconds = 60_000
        /// A connection that breaks sooner counts as one more failure. Otherwise a flapping connection would be retried
        /// every second forever.
        public var stableMilliseconds = 10_000
        /// Minimum time between two tries caused by a returning network or foreground.
        public var wakeMilliseconds = 1000
        /// When the app returns to the foreground after this much silence (two heartbeats), the existing connection is
        /// not trusted.
        public var doubtMilliseconds = 35_000
        /// How long the stream stays open in the background; nil means no limit. The default is 30,000 on phones,
        /// tablets and watches, where an open stream costs battery, and nil elsewhere.
        public var backgroundMilliseconds = Device.backgroundMilliseconds

        public init() {}
    }

    enum Input: Sendable {
        case open
        case close
        /// The stream's `retry:` field.
        case retry(milliseconds: Int)
        case topics([String])
        /// The user's access changed, or the token did: refused topics are requested again.
        case scope
        case network(isOnline: Bool, isChanged: Bool)
        case lifecycle(isForeground: Bool)
        case timer(String)
        /// Input from the connection with that number.
        case from(attempt: Int, TransportEvent)
    }

    /// Input from a connection.
    enum TransportEvent: Sendable {
        case bytes(at: Int)
        case head(status: Int, problem: JSON = .null, retryAfterMilliseconds: Int = 0)
        case ready(streamId: String, topics: [String], userId: String? = nil, identity: String? = nil)
        /// The answer to a subscription request.
        case subscribed(
            asked: [String], topics: [String], status: Int, problem: JSON = .null, retryAfterMilliseconds: Int = 0)
        case closing(reason: String?, retryAfterMilliseconds: Int)
        /// A planned reconnection: the collected events are too large, or the stream's token could not be renewed.
        case again(isFresh: Bool)
        case ended(code: String, detail: String?)
    }

    enum Action: Sendable, Hashable {
        case timer(name: String, at: Int?)
        /// - Parameter isFresh: whether to use another token than the last one, which was refused.
        case connect(attempt: Int, topics: [String], isFresh: Bool)
        case disconnect
        case subscribe(attempt: Int, streamId: String, topics: [String])
    }

    public private(set) var status = Status.closed
    /// The requested topics.
    public private(set) var topics: [String]
    /// Number of consecutive failed tries.
    public private(set) var tries = 0
    /// Set by `stream:ready`.
    public private(set) var streamId: String?
    /// The topics that the stream is subscribed to.
    public private(set) var ready: [String] = []
    public private(set) var retryAt: Int?
    public private(set) var reason: Reason?
    /// Topics that the service refused, with the reason.
    public private(set) var refused: [String: Reason] = [:]
    /// Refused topics that are requested once more.
    private var again: Set<String> = []
    /// The topics of the last subscription request.
    private var asked: [String] = []
    /// Maximum number of new topics per request while bisecting for the refused one; nil means all.
    private var limit: Int?
    /// The stream was refused together with its topics, so it is opened without any.
    private var isBare = false
    /// Number of the connection; input from earlier connections is ignored.
    private(set) var attempt = 0
    private(set) var retryMilliseconds: Int?
    private var isOnline: Bool
    private var isForeground: Bool
    private var triedAt = Int.min / 2
    /// Time of the last received byte.
    private(set) var lastHeardAt = 0
    private var closing: Closing?
    /// No try before this time: the server asked for the delay.
    private var serverAt = 0
    /// The last token was refused once.
    private var isFresh = false
    /// The user, and the digest of what the token may do, that the stream must belong to; nil until known.
    private let user: String?
    private var identity: String?
    private let limits: Limits

    /// Contents of `stream:closing`.
    private struct Closing: Sendable, Hashable {
        let reason: String?
        let retryAfterMilliseconds: Int
    }

    init(
        topics: [String] = [], isOnline: Bool = true, isForeground: Bool = true, user: String? = nil,
        identity: String? = nil, limits: Limits = Limits()
    ) {
        self.topics = topics
        self.isOnline = isOnline
        self.isForeground = isForeground
        self.user = user
        self.identity = identity
        self.limits = limits
    }

    mutating func expect(_ identity: String?) { self.identity = identity }

    mutating func receive(_ input: Input, now: Int, random: Double) -> [Action] {
        switch input {
        case .open:
            (tries, isFresh, isBare, refused) = (0, false, false, [:])
            return open(now)
        case .close: return stop(.closed, nil)
        case .retry(let milliseconds):
            retryMilliseconds = milliseconds
            return []
        case .topics(let wanted):
            guard !ConnectionMachine.isSame(wanted, topics) else { return [] }
            topics = wanted
            refused = refused.filter { wanted.contains($0.key) }
            limit = nil
            return streamId == nil ? [] : settle(now)
        case .scope:
            guard streamId != nil, !refused.isEmpty else { return [] }
            again = Set(refused.keys)
            return settle(now)
        case .network(let isOnline, let isChanged): return network(isOnline, isChanged, now)
        case .lifecycle(let isForeground): return lifecycle(isForeground, now)
        case .timer(let name): return timer(name, now, random)
        case .from(let attempt, let transportEvent):
            // Input from an earlier connection is ignored.
            return attempt == self.attempt && isTrying ? handle(transportEvent, now, random) : []
        }
    }

    private var isTrying: Bool { status == .connecting || status == .live }

    private mutating func handle(_ transportEvent: TransportEvent, _ now: Int, _ random: Double) -> [Action] {
        switch transportEvent {
        case .bytes(let at):
            lastHeardAt = at
            return []
        case .head(let status, let problem, let wait):
            return head(status, problem: problem, wait: wait, at: now, random: random)
        case .ready(let id, let topics, let userId, let identity):
            // A stream of another user, or with other rights, is not used.
            let isOther = user ?? userId != userId ?? user || self.identity ?? identity != identity ?? self.identity
            if isOther { return stop(.refused, Reason(code: "stream.other")) }
            self.identity = identity ?? self.identity
            (streamId, ready, isBare, limit) = (id, topics, false, nil)
            again = Set(refused.keys)
            // A service that was reached does not count as unreachable, however often the connection breaks.
            tries = min(tries, max(0, limits.triesMax - 1))
            return [
                .timer(name: "silence", at: now + limits.silenceMilliseconds),
                .timer(name: "stable", at: now + limits.stableMilliseconds),
            ] + settle(now)
        case .subscribed(let asked, let topics, let status, let problem, let wait):
            // A newer request has its own answer.
            guard ConnectionMachine.isSame(asked, self.asked) else { return [] }
            guard status == 200 else {
                let reason = ConnectionMachine.refusal(status, problem)
                guard [400, 403, 422].contains(status), !asked.isEmpty else {
                    return fail(reason, now, random, serverMilliseconds: wait)
                }
                omitTopic(asked, reason, problem)
                return settle(now)
            }
            ready = topics
            refused = refused.filter { !topics.contains($0.key) }
            limit = limit.map { $0 * 2 }
            // If the service confirms the request but leaves a topic out, this connection does not request it again.
            return settle(now, mayAsk: asked.allSatisfy(topics.contains))
        case .closing(let reason, let wait):
            closing = Closing(reason: reason, retryAfterMilliseconds: wait)
            return []
        case .again(let isFresh):
            self.isFresh = isFresh
            return open(now)
        case .ended(let code, let detail):
            let reason = closing.map { Reason(code: "closed", detail: $0.reason) } ?? Reason(code: code, detail: detail)
            return fail(reason, now, random)
        }
    }

    // MARK: Retries

    private static let timers = ["retry", "connect", "silence", "stable"].map { Action.timer(name: $0, at: nil) }

    private mutating func open(_ now: Int) -> [Action] {
        let ended: [Action] = isTrying ? [.disconnect] : []
        attempt += 1
        (status, triedAt, lastHeardAt, streamId, ready, retryAt, closing) = (.connecting, now, now, nil, [], nil, nil)
        return ended + ConnectionMachine.timers[2...] + [
            .timer(name: "retry", at: nil), .timer(name: "connect", at: now + limits.connectMilliseconds),
            .connect(attempt: attempt, topics: opening, isFresh: isFresh),
        ]
    }

    /// The topics to open the stream with. Empty after a refusal, because the user's own events must always be
    /// delivered.
    private var opening: [String] { isBare ? [] : topics.filter { refused[$0] == nil } }

    private mutating func stop(_ status: Status, _ reason: Reason?) -> [Action] {
        let ended: [Action] = isTrying ? [.disconnect] : []
        (self.status, self.reason, streamId, ready, retryAt, isFresh) = (status, reason, nil, [], nil, false)
        return ended + ConnectionMachine.timers
    }

    private mutating func fail(
        _ reason: Reason, _ now: Int, _ random: Double, serverMilliseconds: Int? = nil
    ) -> [Action] {
        // The device reports no network, and the service did not answer: the next tries are slow, and do not count.
        let isOffline = !isOnline && reason.status == nil && closing == nil
        guard isOffline || tries < limits.triesMax else { return stop(.unreachable, reason) }
        if !isOffline { tries += 1 }
        // A server may ask for no delay at all; it gets a millisecond, which doubles.
        let first = Double(max(1, retryMilliseconds ?? limits.firstMilliseconds))
        var delay = isOffline ? Double(limits.delayMillisecondsMax) : first
        // Doubling stops at the longest delay; a shift could overflow unnoticed.
        for _ in 1..<max(tries, 1) where delay < Double(limits.delayMillisecondsMax) { delay *= 2 }
        let base = min(delay, Double(limits.delayMillisecondsMax))
        // Jitter of ±20%, so that clients of a restarting server do not all reconnect at the same instant.
        let own = min(max(1, Int(base * (0.8 + 0.4 * min(max(random, 0), 1)))), limits.delayMillisecondsMax)
        let asked = serverMilliseconds ?? closing?.retryAfterMilliseconds ?? 0
        serverAt = now + min(asked, limits.serverMillisecondsMax)
        let (at, wasFresh) = (max(now + own, serverAt), isFresh)
        let actions = stop(isOffline ? .offline : .waiting, reason)
        (retryAt, isFresh) = (at, wasFresh)
        return actions + [.timer(name: "retry", at: at)]
    }

    private mutating func head(
        _ status: Int, problem: JSON, wait: Int, at now: Int, random: Double
    ) -> [Action] {
        let reason = ConnectionMachine.refusal(status, problem)
        switch status {
        case 200:
            (lastHeardAt, isFresh) = (now, false)
            return []
        case 204: return stop(.closed, reason)
        case 401:
            // The first 401 is retried immediately with another token; a second one backs off.
            if isFresh { return fail(reason, now, random, serverMilliseconds: wait) }
            isFresh = true
            return open(now)
        case 400..<500 where ![408, 425, 429].contains(status):
            guard !opening.isEmpty else { return stop(.refused, reason) }
            // One of the topics may be the reason: the stream opens without topics and then requests them.
            (isBare, isFresh) = (true, false)
            return open(now)
        default: return fail(reason, now, random, serverMilliseconds: wait)
        }
    }

    private static func refusal(_ status: Int, _ problem: JSON) -> Reason {
        let refusal = Refusal(problem)
        return Reason(code: refusal.code ?? "http.\(status)", status: status, detail: refusal.detail)
    }

    // MARK: Topics

    /// Updates the status, and replaces the stream's topics if they differ from the requested ones. The connection is
    /// live once it has every requested topic, except refused ones (R-CNT-13.1). A live connection stays live while a
    /// further topic is requested, up to the time limit for connecting.
    private mutating func settle(_ now: Int, mayAsk: Bool = true) -> [Action] {
        let has = ready.filter { $0 != "personal" }
        let due = topics.filter { $0 != "personal" && (refused[$0] == nil || again.contains($0)) }
        let missing = due.filter { !has.contains($0) }
        let late = missing.dropFirst(limit ?? missing.count)
        let wanted = due.filter { !late.contains($0) }
        let isLive = missing.allSatisfy { refused[$0] != nil }
        if isLive { (status, reason) = (.live, nil) }
        let timer = Action.timer(name: "connect", at: isLive ? nil : now + limits.connectMilliseconds)
        if missing.isEmpty, has.count == wanted.count {
            limit = nil
            return [timer]
        }
        asked = wanted
        guard mayAsk, let streamId else { return [timer] }
        return [timer, .subscribe(attempt: attempt, streamId: streamId, topics: wanted)]
    }

    /// Marks the topics that the service names as refused. If it names no topic, halves the number of new topics to
    /// find the refused one.
    private mutating func omitTopic(_ asked: [String], _ reason: Reason, _ problem: JSON) {
        let pointers = Refusal(problem).errors.compactMap(\.pointer)
        var out = asked.indices.filter { pointers.contains("/topics/\($0)") }.map { asked[$0] }
        if out.isEmpty {
            let missing = asked.filter { !ready.contains($0) }
            out = missing.isEmpty ? asked : missing
            if out.count > 1 {
                if missing.isEmpty { ready = [] }
                limit = out.count / 2
                return
            }
        }
        for topic in out { refused[topic] = reason }
        again.subtract(out)
    }

    private static func isSame(_ one: [String], _ other: [String]) -> Bool {
        one.count == other.count && one.allSatisfy(other.contains)
    }

    // MARK: Device state

    /// Whether only the app can leave this state.
    private var isSettled: Bool { status == .closed || status == .refused }

    private mutating func network(_ isOnline: Bool, _ isChanged: Bool, _ now: Int) -> [Action] {
        let isNew = isChanged || isOnline != self.isOnline
        self.isOnline = isOnline
        let isPaused = !isForeground && reason?.code == "background"
        // On another network the old connection is dead, and no error reports it. Without a network a new try fails at
        // once, unless the report is wrong, as with some virtual networks.
        return isNew && !isSettled && !isPaused ? wake(now) : []
    }

    private mutating func lifecycle(_ isForeground: Bool, _ now: Int) -> [Action] {
        self.isForeground = isForeground
        guard isForeground else {
            return limits.backgroundMilliseconds.map { [.timer(name: "background", at: now + $0)] } ?? []
        }
        let actions: [Action] = limits.backgroundMilliseconds == nil ? [] : [.timer(name: "background", at: nil)]
        let isDoubtful = status == .live && now - lastHeardAt > limits.doubtMilliseconds
        guard !isSettled, !isTrying || isDoubtful else { return actions }
        return actions + wake(now)
    }

    /// tries immediately and resets the failure count. There is at most one try per second, however often the
    /// network comes and goes. Never tries before the server's `Retry-After` has passed.
    private mutating func wake(_ now: Int) -> [Action] {
        (tries, isFresh) = (0, false)
        let soonest = max(triedAt + limits.wakeMilliseconds, serverAt)
        // An earlier scheduled try is not postponed.
        let at = min(soonest, retryAt ?? soonest)
        if now >= at { return open(now) }
        let actions = stop(.waiting, reason)
        retryAt = at
        return actions + [.timer(name: "retry", at: at)]
    }

    private mutating func timer(_ name: String, _ now: Int, _ random: Double) -> [Action] {
        switch name {
        case "retry": return status == .waiting || status == .offline ? open(now) : []
        case "connect": return isTrying ? fail(Reason(code: "timeout"), now, random) : []
        case "stable":
            if streamId != nil { tries = 0 }
            return []
        case "silence":
            guard streamId != nil else { return [] }
            let at = lastHeardAt + limits.silenceMilliseconds
            return now < at ? [.timer(name: name, at: at)] : fail(Reason(code: "silence"), now, random)
        case "background":
            guard !isForeground, isTrying || status == .waiting || status == .offline else { return [] }
            return stop(.waiting, Reason(code: "background"))
        default: return []
        }
    }
}

extension ConnectionMachine: Encodable {
    private enum CodingKeys: String, CodingKey {
        case status, attempt, tries, streamId, ready, retryAt, reason, refused, identity
        case lastHeardAt = "heardAt"
        case isFresh = "fresh"
    }
}
