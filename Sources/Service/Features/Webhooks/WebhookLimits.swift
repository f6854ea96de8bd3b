/// The bounds of webhooks, each with what breaks without it.
enum WebhookLimits {
    /// Requests that wait for the receiver at the same time, on each replica. One that never answers has as many users wait
    /// for the timeout, and no request of the service.
    static let slots = 16
    /// Webhooks that wait, of all tenants. Above it the oldest are dead: a receiver that is away would fill the disk.
    static let waitingMax = 100_000
    /// Dead ones that are stored: a list that nobody reads to its end.
    static let deadMax = 10_000
    /// How long they are stored: somebody reads them in that time, or nobody does.
    static let deadSeconds: Int64 = 7 * 24 * 3600
    /// How long it is known that a notification was sent, so that it can be withdrawn. Longer than that no push service
    /// has a message wait for its phone.
    static let sentSeconds: Int64 = 30 * 24 * 3600
    /// How long after its timeout an attempt counts as lost: then its process was killed, or the database was away.
    static let leaseSeconds: Int64 = 30
    /// Failures in a row from which the receiver counts as down: a thousand users' worth of connections, each second, would
    /// keep it there.
    static let failuresMax = 16
    /// The pause between attempts then, and between looks for what is due: with all that waits behind what was tried, a
    /// look takes as long as half a second.
    static let downPause: Duration = .seconds(5)
    /// Replicas' clocks differ by so much at most: more, and a row from the future was written before the clock was set
    /// back.
    static let clockSkewSeconds: Int64 = 2
    /// The pause between two counts of what waits, and between two passes of upkeep.
    static let upkeepPause: Duration = .seconds(10)
    /// Items of a page of dead ones.
    static let pageMax = 100
}
