/// All counts of a user as the service sends them, uncapped.
public struct BadgeCounts: Sendable, Hashable {
    public let messages: Int
    public let requests: Int
    public let bell: Int
    public let version: Int
    /// What versions count in: another one after the service's database was restored. Empty from a service that does not
    /// say.
    public let epoch: String

    public init(messages: Int, requests: Int, bell: Int, version: Int, epoch: String = "") {
        self.messages = messages
        self.requests = requests
        self.bell = bell
        self.version = version
        self.epoch = epoch
    }

    /// Nil where the document is no counts payload.
    public init?(_ json: JSON) {
        guard let messages = json["messages"].int, let requests = json["requests"].int, let bell = json["bell"].int,
            let version = json["version"].int
        else { return nil }
        self.init(
            messages: messages, requests: requests, bell: bell, version: version, epoch: json["epoch"].string ?? "")
    }

    public var total: Int { messages + requests + bell }
}

/// The one place an app reads its counts from: whatever way they come, the newest version wins (`CNT R-RT-3`,
/// `R-CACHE-2`), and another epoch always: what was seen in the one before may never have happened.
public struct BadgeState: Sendable, Hashable {
    public private(set) var counts: BadgeCounts?

    public init() {}

    /// Takes counts over unless they are older than the present ones; true if they changed anything.
    public mutating func merge(_ newer: BadgeCounts) -> Bool {
        if let counts, newer.epoch == counts.epoch, newer.version <= counts.version { return false }
        counts = newer
        return true
    }

    /// Takes over the counts that an event carries: `badges:update` itself, or `stream:ready` with its `badges`.
    public mutating func merge(_ event: ServerSentEvent) -> Bool {
        let json = event.json
        guard let counts = BadgeCounts(event.name == "badges:update" ? json : json["badges"]) else { return false }
        return merge(counts)
    }
}

/// When to reconcile counts with the service, as pure arithmetic (`CNT CONST-POLL`, `R-RECON-2`, `R-RECON-4/5`).
///
/// Connected clients poll faster than disconnected ones: that is what the requirement locks, and an unchanged count is a
/// 304 that costs next to nothing.
public struct PollSchedule: Sendable, Hashable {
    public static let connectedSeconds = 10.0
    public static let disconnectedSeconds = 90.0
    /// A tab switch reconciles where the last answer is older than this.
    public static let tabSwitchSeconds = 15.0

    public var isConnected = false
    public var isForeground = true
    private var lastSyncSeconds: Double?

    public init() {}

    public mutating func synced(atSeconds now: Double) {
        lastSyncSeconds = now
    }

    /// A new connection may have missed changes: the next reconciliation is due at once, then every ten seconds.
    public mutating func connected() {
        isConnected = true
        lastSyncSeconds = nil
    }

    /// Seconds until the next reconciliation is due; nil in the background, where nothing is polled.
    public func secondsUntilDue(nowSeconds now: Double) -> Double? {
        guard isForeground else { return nil }
        guard let lastSyncSeconds else { return 0 }
        let interval = isConnected ? PollSchedule.connectedSeconds : PollSchedule.disconnectedSeconds
        return max(0, lastSyncSeconds + interval - now)
    }

    public func isDueOnTabSwitch(nowSeconds now: Double) -> Bool {
        lastSyncSeconds.map { now - $0 >= PollSchedule.tabSwitchSeconds } ?? true
    }
}
