/// When the stream is opened, given up and tried again (R-CUT-N-1 to R-CUT-N-4, R-SCH-FR-003, R-VIS-Q2, R-VIS-NFR-2.2,
///
///
/// A pure function of its state and of what has happened, like the machines of the features, and held to the same vectors
/// as JavaScript's.
public struct ConnectionMachine: Sendable, Hashable {
    /// Where the stream stands.
    public enum Status: String, Sendable, Hashable, Codable, CaseIterable {
        case connecting, live
        /// For the next try.
        case waiting
        /// As many tries as allowed have failed: the next one is made when the network or the foreground returns, or
        /// when the app asks for it.
        case unreachable
        /// The device has no network.
        case offline
        /// The service answered, and trying again would get the same answer.
        case refused
        case closed
    }

    /// Why the stream is not live.
    public struct Reason: Sendable, Hashable, Codable {
        /// Stable: `lost`, `timeout`, `silence`, `offline`, or the service's own.
        public let code: String
        /// Of the service's answer, where there was one.
        public let status: Int?
        /// A sentence for people.
        public let detail: String?

        public init(code: String, status: Int? = nil, detail: String? = nil) {
            self.code = code
            self.status = status
            self.detail = detail
        }
    }

    /// How a stream behaves on a bad network.
    public struct Limits: Sendable, Hashable {
        /// Tries that may fail in a row.
        public var triesMax = 10
        /// The first wait, until the stream's `retry:` names another.
        public var firstMilliseconds = 1000
        public var delayMillisecondsMax = 30_000
        /// A server that asks for more is misconfigured, and a client that obeyed would look dead.
        public var serverMillisecondsMax = 3_600_000
        /// How long it may take until the stream is ready.
        public var connectMilliseconds = 10_000
        /// A service sends a heartbeat at least every 25 s; one that is silent longer than this is gone.
        public var silenceMilliseconds = 60_000
        /// A connection that breaks sooner counts as one more failure, or one that flaps would be tried every second for
        /// ever.
        public var stableMilliseconds = 10_000
        /// The least time between two tries that a returning network or foreground causes.
        public var wakeMilliseconds = 1000
        /// A return to the foreground after so long a silence, two heartbeats, does not trust the connection it finds.
        public var doubtMilliseconds = 35_000
        /// How long the stream stays open in the background; nil: for ever. The default is 30,000 on phones, tablets and
        /// watches, where an open stream costs battery, and nil elsewhere.
        public var backgroundMilliseconds = Device.backgroundMilliseconds

        public init() {}
    }

    enum Input: Sendable {
        case open
        case close
        /// The stream's `retry:`.
        case retry(milliseconds: Int)
        case topics([String])
        /// The user may hear of something else now, or has another token: what was refused is asked for again.
        case scope
        case network(isOnline: Bool, isChanged: Bool)
        case lifecycle(isForeground: Bool)
        case timer(String)
        /// Of the connection with that number.
        case from(attempt: Int, Heard)
    }

    /// What comes from a connection.
    enum Heard: Sendable {
        case bytes(at: Int)
        case head(status: Int, problem: JSON = .null, retryAfterMilliseconds: Int = 0)
        case ready(streamId: String, topics: [String], userId: String? = nil, tenant: String? = nil)
        /// The answer to `subscribe`.
        case subscribed(
            asked: [String], topics: [String], status: Int, problem: JSON = .null, retryAfterMilliseconds: Int = 0)
        case closing(reason: String?, retryAfterMilliseconds: Int)
        /// By plan: what has been collected is large, or the stream's token could not be renewed.
        case again(isFresh: Bool)
        case ended(code: String, detail: String?)
    }

    enum Action: Sendable, Hashable {
        case timer(name: String, at: Int?)
        /// - Parameter isFresh: with another token than the last one, which was refused.
        case connect(attempt: Int, topics: [String], isFresh: Bool)
        case disconnect
        case subscribe(attempt: Int, streamId: String, topics: [String])
    }

    public private(set) var status = Status.closed
    /// Those asked for.
    public private(set) var topics: [String]
    /// Tries that failed in a row.
    public private(set) var tries = 0
    /// From `stream:ready` on.
    public private(set) var streamId: String?
    /// The topics that the stream has.
    public private(set) var ready: [String] = []
    public private(set) var retryAt: Int?
    public private(set) var reason: Reason?
    /// Topics that the service refused, and why.
    public private(set) var refused: [String: Reason] = [:]
    /// Those of them that are asked for once more.
    private var again: Set<String> = []
    /// The topics of the last `subscribe`.
    private var asked: [String] = []
    /// How many new topics are asked for at once, while it is not known which one is refused; nil: all.
    private var limit: Int?
    /// The stream was refused with its topics: it is opened without any.
    private var isBare = false
    /// The number of the connection; what an earlier one still says is not heard.
    private(set) var attempt = 0
    private(set) var retryMilliseconds: Int?
    private var isOnline: Bool
    private var isForeground: Bool
    private var triedAt = Int.min / 2
    /// The last byte.
    private(set) var lastHeardAt = 0
    private var closing: Closing?
    /// No try before this: the server asked for it.
    private var serverAt = 0
    /// The last token was refused once.
    private var isFresh = false
    /// The user and the tenant that a stream must be of; nil: not known yet.
    private let user: String?
    private var tenant: String?
    /// The claims that decide what the token may do; nil: unknown.
    private let identity: String?
    private let limits: Limits

    /// What `stream:closing` said.
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
        case .from(let attempt, let heard):
            // From the present connection, or nobody waits for it any more.
            return attempt == self.attempt && isTrying ? hear(heard, now, random) : []
        }
    }

    private var isTrying: Bool { status == .connecting || status == .live }

    private mutating func hear(_ heard: Heard, _ now: Int, _ random: Double) -> [Action] {
        switch heard {
        case .bytes(let at):
            lastHeardAt = at
            return []
        case .head(let status, let problem, let wait): return head(status, problem, wait, now, random)
        case .ready(let id, let topics, let userId, let tenant):
            // A stream of somebody else, or of another tenant, is nobody's here.
            if let user, let userId, user != userId { return stop(.refused, Reason(code: "stream.other")) }
            if let known = self.tenant, let tenant, known != tenant {
                return stop(.refused, Reason(code: "stream.other"))
            }
            if isForeign(tenant) { return stop(.refused, Reason(code: "stream.other")) }
            self.tenant = tenant ?? self.tenant
            (streamId, ready, isBare, limit) = (id, topics, false, nil)
            again = Set(refused.keys)
            // What was reached is not unreachable, however often it breaks.
            tries = min(tries, max(0, limits.triesMax - 1))
            return [
                .timer(name: "silence", at: now + limits.silenceMilliseconds),
                .timer(name: "stable", at: now + limits.stableMilliseconds),
            ] + settle(now)
        case .subscribed(let asked, let topics, let status, let problem, let wait):
            // What was asked for since has an answer of its own.
            guard ConnectionMachine.isSame(asked, self.asked) else { return [] }
            guard status == 200 else {
                let reason = ConnectionMachine.refusal(status, problem)
                guard [400, 403, 422].contains(status), !asked.isEmpty else {
                    return fail(reason, now, random, serverMilliseconds: wait)
                }
                leaveOut(asked, reason, problem)
                return settle(now)
            }
            ready = topics
            refused = refused.filter { !topics.contains($0.key) }
            limit = limit.map { $0 * 2 }
            // What it says to have given and has not is not asked for on this connection again.
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

    // MARK: Trying

    private static let timers = ["retry", "connect", "silence", "stable"].map { Action.timer(name: $0, at: nil) }

    private mutating func open(_ now: Int) -> [Action] {
        guard isOnline else { return stop(.offline, Reason(code: "offline")) }
        let ended: [Action] = isTrying ? [.disconnect] : []
        attempt += 1
        (status, triedAt, lastHeardAt, streamId, ready, retryAt, closing) = (.connecting, now, now, nil, [], nil, nil)
        return ended + ConnectionMachine.timers[2...] + [
            .timer(name: "retry", at: nil), .timer(name: "connect", at: now + limits.connectMilliseconds),
            .connect(attempt: attempt, topics: opening, isFresh: isFresh),
        ]
    }

    /// The topics that a stream is opened with: none after a refusal, since what is the user's own must always come.
    private var opening: [String] { isBare ? [] : topics.filter { refused[$0] == nil } }

    private mutating func stop(_ status: Status, _ reason: Reason?) -> [Action] {
        let ended: [Action] = isTrying ? [.disconnect] : []
        (self.status, self.reason, streamId, ready, retryAt, isFresh) = (status, reason, nil, [], nil, false)
        return ended + ConnectionMachine.timers
    }

    private mutating func fail(
        _ reason: Reason, _ now: Int, _ random: Double, serverMilliseconds: Int? = nil
    ) -> [Action] {
        guard tries < limits.triesMax else { return stop(.unreachable, reason) }
        tries += 1
        let first = Double(retryMilliseconds ?? limits.firstMilliseconds)
        var delay = first
        // Doubled no further than to the longest, which a shift could pass without being seen.
        for _ in 1..<tries where delay < Double(limits.delayMillisecondsMax) { delay *= 2 }
        let base = min(delay, Double(limits.delayMillisecondsMax))
        // A fifth more or less, so that the clients of a server that restarts do not come back in the same instant.
        let own = min(Int(base * (0.8 + 0.4 * min(max(random, 0), 1))), limits.delayMillisecondsMax)
        let asked = serverMilliseconds ?? closing?.retryAfterMilliseconds ?? 0
        serverAt = now + min(asked, limits.serverMillisecondsMax)
        let (at, wasFresh) = (max(now + own, serverAt), isFresh)
        let actions = stop(.waiting, reason)
        (retryAt, isFresh) = (at, wasFresh)
        return actions + [.timer(name: "retry", at: at)]
    }

    private mutating func head(
        _ status: Int, _ problem: JSON, _ wait: Int, _ now: Int, _ random: Double
    ) -> [Action] {
        let reason = ConnectionMachine.refusal(status, problem)
        switch status {
        case 200:
            (lastHeardAt, isFresh) = (now, false)
            return []
        case 204: return stop(.closed, reason)
        case 401:
            // Once at once with another token; what refuses that one too is waited for.
            if isFresh { return fail(reason, now, random, serverMilliseconds: wait) }
            isFresh = true
            return open(now)
        case 400..<500 where ![408, 425, 429].contains(status):
            guard !opening.isEmpty else { return stop(.refused, reason) }
            // One of the topics may be the reason: the stream opens without any, and then each is asked for.
            (isBare, isFresh) = (true, false)
            return open(now)
        default: return fail(reason, now, random, serverMilliseconds: wait)
        }
    }

    private static func refusal(_ status: Int, _ problem: JSON) -> Reason {
        Reason(code: problem["code"].string ?? "http.\(status)", status: status, detail: problem["detail"].string)
    }

    // MARK: Topics

    /// Which of its claims names the tenant is the service's setting; the tenant stands in one of them, unless it is
    /// `default`.
    private func isForeign(_ tenant: String?) -> Bool {
        guard let identity, identity.hasPrefix("{"), let tenant, tenant != "default" else { return false }
        return !identity.contains(JSON.string(tenant).text)
    }

    /// Live is who has the topics asked for (R-CNT-13.1), but for the refused ones; the stream's are replaced where it
    /// has others. Who is live stays so while one more topic is on its way, for as long as a connection may take.
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

    /// Leaves out what the service names. Where it names nothing, half of what is new is tried.
    private mutating func leaveOut(_ asked: [String], _ reason: Reason, _ problem: JSON) {
        let pointers = (problem["errors"].array ?? []).compactMap { $0["pointer"].string }
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

    // MARK: The device

    /// What only the app can end.
    private var isSettled: Bool { status == .closed || status == .refused }

    private mutating func network(_ isOnline: Bool, _ isChanged: Bool, _ now: Int) -> [Action] {
        let wasOnline = self.isOnline
        self.isOnline = isOnline
        guard !isSettled else { return [] }
        guard isOnline else { return stop(.offline, Reason(code: "offline")) }
        let isPaused = !isForeground && reason?.code == "background"
        // On another network the old connection is dead, and nothing will say so.
        return (isChanged || !wasOnline) && !isPaused ? wake(now) : []
    }

    private mutating func lifecycle(_ isForeground: Bool, _ now: Int) -> [Action] {
        self.isForeground = isForeground
        guard isForeground else {
            return limits.backgroundMilliseconds.map { [.timer(name: "background", at: now + $0)] } ?? []
        }
        let actions: [Action] = limits.backgroundMilliseconds == nil ? [] : [.timer(name: "background", at: nil)]
        let isDoubtful = status == .live && now - lastHeardAt > limits.doubtMilliseconds
        guard !isSettled, isOnline, !isTrying || isDoubtful else { return actions }
        return actions + wake(now)
    }

    /// an immediate try, counted anew; but one a second, however often the network comes and goes, and none
    /// before a server that asked for patience wants it.
    private mutating func wake(_ now: Int) -> [Action] {
        (tries, isFresh) = (0, false)
        let soonest = max(triedAt + limits.wakeMilliseconds, serverAt)
        // Nor does it put off a try that is nearer.
        let at = min(soonest, retryAt ?? soonest)
        if now >= at { return open(now) }
        let actions = stop(.waiting, reason)
        retryAt = at
        return actions + [.timer(name: "retry", at: at)]
    }

    private mutating func timer(_ name: String, _ now: Int, _ random: Double) -> [Action] {
        switch name {
        case "retry": return status == .waiting ? open(now) : []
        case "connect": return isTrying ? fail(Reason(code: "timeout"), now, random) : []
        case "stable":
            if streamId != nil { tries = 0 }
            return []
        case "silence":
            guard streamId != nil else { return [] }
            let at = lastHeardAt + limits.silenceMilliseconds
            return now < at ? [.timer(name: name, at: at)] : fail(Reason(code: "silence"), now, random)
        case "background":
            guard !isForeground, isTrying || status == .waiting else { return [] }
            return stop(.waiting, Reason(code: "background"))
        default: return []
        }
    }
}

extension ConnectionMachine: Encodable {
    private enum CodingKeys: String, CodingKey {
        case status, attempt, tries, streamId, ready, retryAt, reason, refused
        case lastHeardAt = "heardAt"
        case isFresh = "fresh"
    }
}
