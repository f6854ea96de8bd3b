/// Decides when to fetch the counts beside the stream (R-CNT-RECON-1 to R-CNT-RECON-5, R-CNT-G4, R-15).
///
/// Connected clients poll faster than disconnected ones, as the requirement demands. An unchanged count is a cheap 304.
struct ReconciliationMachine: Sendable, Hashable {
    struct Limits: Sendable, Hashable {
        var connectedMilliseconds = 10_000
        var disconnectedMilliseconds = 90_000
        var tabSwitchMilliseconds = 15_000
        /// Minimum time between two fetches: a flapping connection would otherwise poll at each return.
        var leastMilliseconds = 3000
    }

    enum Input: Sendable {
        case start
        case connection(isLive: Bool, isReconnected: Bool)
        case lifecycle(isForeground: Bool)
        /// A switch to another screen or tab within the app.
        case tabSwitch
        /// A write whose answer carried no counts (R-CNT-RECON-3).
        case force
        case timer
        /// - Parameter asked: time of the request; nil accepts an answer to any request.
        case answer(
            asked: Int?, status: Int, etag: String? = nil, body: JSON = .null, retryAfterMilliseconds: Int = 0)
        case user
    }

    enum Action: Sendable, Hashable {
        case timer(name: String, at: Int?)
        case fetch(path: String, headers: [String: String], asked: Int)
        /// Passes the answer to the counts machine.
        case reconciled(status: Int, body: JSON)
    }

    private static let never = Int.min / 2

    private var isConnected = false
    private var isForeground: Bool
    private var etag: String?
    private var askedAt = never
    /// Time of the last successful answer.
    private var syncedAt = never
    private var isAsking = false
    /// Requested while another fetch was running.
    private var isDue = false
    /// Earliest time of the next fetch, set by the service.
    private var notBefore = 0
    private let limits: Limits

    init(isForeground: Bool = true, limits: Limits = Limits()) {
        self.isForeground = isForeground
        self.limits = limits
    }

    mutating func receive(_ input: Input, now: Int) -> [Action] {
        switch input {
        case .start, .force: return soon(now)
        case .connection(let isLive, let isReconnected):
            guard isLive != isConnected || isReconnected else { return [] }
            isConnected = isLive
            return isLive ? soon(now) : later(now)
        case .lifecycle(let isForeground):
            guard isForeground != self.isForeground else { return [] }
            self.isForeground = isForeground
            return isForeground ? soon(now) : [timer(nil)]
        case .tabSwitch: return now - syncedAt >= limits.tabSwitchMilliseconds ? soon(now) : []
        case .timer: return ask(now)
        case .answer(let asked, let status, let etag, let body, let wait):
            // The user of this answer has signed out.
            if let asked, asked != askedAt { return [] }
            return answered(status, etag: etag, body: body, wait: wait, at: now)
        case .user:
            self = ReconciliationMachine(isForeground: isForeground, limits: limits)
            return soon(now)
        }
    }

    private func timer(_ at: Int?) -> Action { .timer(name: "poll", at: at) }

    private mutating func soon(_ now: Int) -> [Action] {
        guard isForeground else { return [] }
        if isAsking {
            isDue = true
            return []
        }
        let at = max(askedAt + limits.leastMilliseconds, notBefore)
        return at <= now ? ask(now) : [timer(at)]
    }

    private func later(_ now: Int) -> [Action] {
        guard isForeground, !isAsking else { return [] }
        let wait = isConnected ? limits.connectedMilliseconds : limits.disconnectedMilliseconds
        return [timer(max(askedAt + wait, now, notBefore))]
    }

    private mutating func ask(_ now: Int) -> [Action] {
        guard isForeground, !isAsking else { return [] }
        (isAsking, isDue, askedAt) = (true, false, now)
        let headers = etag.map { ["If-None-Match": $0] } ?? [:]
        return [timer(nil), .fetch(path: "/v1/badges", headers: headers, asked: now)]
    }

    private mutating func answered(
        _ status: Int, etag: String?, body: JSON, wait: Int, at now: Int
    ) -> [Action] {
        let wasDue = isDue
        (isAsking, isDue, notBefore) = (false, false, now + wait)
        if status == 200 || status == 304 { syncedAt = now }
        if status == 200 { self.etag = etag }
        let actions: [Action] = status == 200 ? [.reconciled(status: status, body: body)] : []
        return actions + (wasDue ? soon(now) : later(now))
    }
}

extension ReconciliationMachine: Encodable {
    private enum CodingKeys: String, CodingKey {
        case etag, syncedAt
        case isConnected = "connected"
        case isDue = "due"
    }
}
