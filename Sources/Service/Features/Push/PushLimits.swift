/// The limits of the push feature, each with its reason.
enum PushOutboxLimits {
    /// Messages that wait for a provider's answers at the same time, on each replica. One HTTP/2 connection carries about
    /// as many; more would only wait in memory.
    static let slots = 320
    /// Slots of one tenant. The rest is for other tenants, whose messages would otherwise wait behind its backlog.
    static let tenantSlots = 256
    /// Messages that one user causes in a minute on each replica: one message to the largest conversation, whose members
    /// have the most devices. What exceeds it waits, and is combined by its subject. Otherwise one user with a script
    /// could keep all slots, use up what the providers accept, and let the phones of others ring without a pause.
    static let causedPerMinuteMax = 5_120
    /// The shortest time between two messages with the number alone for one device. Apple and Google slow down apps
    /// that send more.
    static let badgePauseSeconds: Int64 = 30
    /// Withdrawals of one message. Their tags fit the smallest payload, unless apps choose long ids: then there are fewer.
    static let withdrawalsMax = 40
    /// Devices to which a request itself adds messages. For more, it adds one message for each user, which the sender
    /// distributes. Otherwise a message to a large conversation would keep the writer busy for the time of many requests.
    static let directMax = 64
    /// The users to whose devices the sender distributes messages in one transaction.
    static let distributedAtOnceMax = 8
}
