/// The limits of the push feature, each with its reason.
enum PushOutboxLimits {
    /// Messages that wait for the providers' answers at the same time, on each replica. One HTTP/2 connection carries
    /// about as many; more would only wait in memory.
    static let slots = 320
    /// Slots of one tenant. The rest is for other tenants, whose messages would otherwise wait behind its backlog.
    static let tenantSlots = 256
    /// Messages that one user causes in a minute on each replica: one message to the largest conversation, whose members
    /// have the most devices. What exceeds it waits, and is combined by its subject. Otherwise one user with a script
    /// could keep all slots, use up what the providers accept, and let the phones of others ring without a pause.
    static let causedPerMinuteMax = 5_120
    /// Waiting messages of all tenants. Above this number, the oldest are deleted. Otherwise a provider that is away
    /// would fill the disk.
    static let waitingMax = 200_000
    /// How long a message is retried. A notification of yesterday no longer justifies waking its user.
    static let secondsToLive: Int64 = 24 * 3600
    /// How long a sent message is remembered, so that it can be withdrawn. No provider keeps one longer.
    static let sentSeconds: Int64 = 30 * 24 * 3600
    /// How long after its timeout an attempt counts as lost, because its process was killed or the database was away.
    static let leaseSeconds: Int64 = 30
    /// The longest timeout that the settings allow. Upkeep ends leases that could only end later.
    static let timeoutSecondsMax = 60
    /// The maximum clock difference between replicas. A row that is further in the future was written before the clock
    /// was set back.
    static let clockSkewSeconds: Int64 = 60
    /// The shortest time between two messages with the number alone for one device. Apple and Google slow down apps
    /// that send more.
    static let badgePauseSeconds: Int64 = 30
    /// Withdrawals that one message carries. Their ids fit the smallest payload.
    static let withdrawalsMax = 40
    /// The pause after an answer that an operator must mend. More attempts would only fill the provider's logs.
    static let misconfiguredSeconds: Int64 = 60
    /// With several replicas, how long each has to say that the user has a stream there. It is longer than their pause
    /// between two looks.
    static let presenceSeconds: Int64 = 3
    /// Rows that one transaction of upkeep changes. It locks their users, and PostgreSQL has room for some thousand locks.
    static let prunedAtOnceMax = 512
    /// Rows of one statement.
    static let rowsAtOnceMax = 128
}
