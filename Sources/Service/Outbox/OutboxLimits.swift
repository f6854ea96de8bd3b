/// The limits of the outbox, each with its reason.
enum OutboxLimits {
    /// How long a message is retried. A notification of yesterday no longer justifies waking its user.
    static let secondsToLive: Int64 = 24 * 3600
    /// How long a sent message is remembered, so that it can be withdrawn. No push service keeps one longer for its
    /// phone.
    static let sentSeconds: Int64 = 30 * 24 * 3600
    /// How long dead messages are stored. Later they are unlikely to be read.
    static let deadSeconds: Int64 = 7 * 24 * 3600
    /// Stored dead messages. A longer list would not be read to its end.
    static let deadMax = 10_000
    /// Waiting webhooks of all tenants. Above this number, the oldest ones of the tenant with the most become dead.
    /// Otherwise a receiver that is away would fill the disk.
    static let webhooksWaitingMax = 100_000
    /// Waiting push messages of all tenants. Above this number, the oldest ones of the tenant with the most are deleted.
    static let pushWaitingMax = 200_000
    /// How long after its timeout an attempt counts as lost, because its process was killed or the database was away.
    static let leaseSeconds: Int64 = 30
    /// The maximum clock difference between replicas. A row that was written later than that was written before the
    /// clock was set back.
    static let clockSkewSeconds: Int64 = 2
    /// The pause after an answer that an operator must mend. More attempts would only fill the receiver's logs.
    static let misconfiguredSeconds = 60.0
    /// Consecutive failures after which a route counts as down. Requests for thousands of users each second would keep
    /// its receiver down.
    static let failuresMax = 16
    /// The pause between attempts while a route is down.
    static let downPause: Duration = .seconds(5)
    /// How long a message waits for replicas that do not answer whether its user has a stream there. It is longer than
    /// their pause between two looks.
    static let presenceSeconds: Int64 = 3
    /// Notices of other replicas that wait for the sender, which takes them in each round. A sender that waits for the
    /// database takes none, and they would fill the memory: each has up to 8,000 bytes.
    static let presenceNoticesMax = 1_024
    /// Routes of one look. There are a few, because receivers come from the settings.
    static let routesMax = 64
    /// Rows of one statement.
    static let rowsAtOnceMax = 128
    /// Rows that one transaction of upkeep changes. It locks their users, and PostgreSQL has room for some thousand locks.
    static let prunedAtOnceMax = 512
    /// The pause between two passes of upkeep.
    static let upkeepPause: Duration = .seconds(10)
    /// The pause between two counts, as a multiple of the time that a count took. So counts cost at most half a percent
    /// of a core, however long the outbox is.
    static let countPauseFactor = 200
    /// Different reasons of failures. A receiver's word is counted as "other" beyond them.
    static let reasonsMax = 200
}
