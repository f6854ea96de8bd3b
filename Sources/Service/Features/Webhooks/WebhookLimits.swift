/// The limits of webhooks, each with its reason.
enum WebhookLimits {
    /// Requests that wait for the receiver at the same time, on each replica. If the receiver never answers, this many
    /// users' webhooks wait for the timeout, but no request of the service does.
    static let slots = 20
    /// Those of one tenant. The rest is for other tenants, whose webhooks would otherwise wait while the receiver is slow
    /// to answer those of one.
    static let tenantSlots = 16
    /// Waiting webhooks of all tenants. Above this number, the oldest become dead. Otherwise a receiver that is away
    /// would fill the disk.
    static let waitingMax = 100_000
    /// Stored dead webhooks. A longer list would not be read to its end.
    static let deadMax = 10_000
    /// How long dead webhooks are stored. Later they are unlikely to be read.
    static let deadSeconds: Int64 = 7 * 24 * 3600
    /// How long a sent notification is remembered, so that it can be withdrawn. No push service keeps a message longer
    /// than that for its phone.
    static let sentSeconds: Int64 = 30 * 24 * 3600
    /// How long after its timeout an attempt counts as lost, because its process was killed or the database was away.
    static let leaseSeconds: Int64 = 30
    /// Consecutive failures after which the receiver counts as down. Connections for a thousand users each second would
    /// keep it down.
    static let failuresMax = 16
    /// The pause between attempts while the receiver is down, and between queries for due webhooks. With a large
    /// backlog behind the tried webhooks, a query takes up to half a second.
    static let downPause: Duration = .seconds(5)
    /// The maximum clock difference between replicas. A row that is further in the future was written before the clock
    /// was set back.
    static let clockSkewSeconds: Int64 = 2
    /// The pause between two counts of the backlog, and between two passes of upkeep.
    static let upkeepPause: Duration = .seconds(10)
    /// Items of a page of dead webhooks.
    static let pageMax = 100
}
