/// How often clients may ask (CNT D-CNT-2, CONST-POLL).
enum PollIntervals {
    /// With an open stream, as a safety net.
    static let connectedSeconds = 10
    static let disconnectedSeconds = 90
    /// A tab that comes to the front asks again if its counts are older.
    static let tabSwitchStaleSeconds = 15
}

/// What clients of streams are told in `/v1/config`, and streams go by.
enum StreamConstants {
    /// What EventSource waits before it reconnects.
    static let retryMilliseconds = 1000
    /// Topics of one stream (SCH A-003, ENG E-4). Each costs memory in the hub and a read of its state at opening.
    static let topicsMax = 100
    /// Bytes of a request that replaces subscriptions: as many filtered ids as one stream may have.
    static let subscriptionsBytesMax = 1 << 20
}

/// What feeds of table changes are told in `/v1/config`, and deliveries go by.
enum ChangeConstants {
    /// How long the id of a change is known. Senders try again for some hours; one that does so for days has been told
    /// of a failure each time.
    static let duplicatesKnownSeconds: Int64 = 72 * 3600
}
