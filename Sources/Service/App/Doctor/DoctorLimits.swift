/// From where on `bellhop doctor` finds something, each with what is the matter there.
enum DoctorLimits {
    /// Bytes free on the database's disk. Below, its write-ahead log alone, which is cut back to 32 MiB, may fill it.
    static let freeBytesMin = 64 << 20
    /// Below, a day's events of a busy service may not fit (0.4 GB for a million).
    static let freeBytesLow = 1 << 30
    /// Bytes free for temporary files: what a backup, or a large sort, needs at least.
    static let temporaryBytesLow = 64 << 20
    /// Bytes of SQLite's write-ahead log. Above, no checkpoint gets through, and reads slow down: the writer itself moves
    /// its pages at 160 MB.
    static let logBytesHigh = 256 << 20
    /// Median seconds of a flush to disk. Above, a writer makes fewer than 50 commits a second.
    static let flushSecondsHigh = 0.02
    /// The longest of them. Above, requests wait noticeably now and then.
    static let flushSecondsMax = 0.5
    /// How many are measured. Fewer say little of the longest; more keep a slow disk busy.
    static let flushes = 20
    /// Median seconds of a question to PostgreSQL and back. Above, each write, of several questions, takes tens of
    /// milliseconds: service and database do not stand together.
    static let roundTripSecondsHigh = 0.005
    /// How many are measured. With fewer, one that was late decides.
    static let roundTrips = 20
    /// Seconds that two clocks may differ. Above, moments of two machines are in the wrong order for people to see.
    static let clockSecondsLow = 2.0
    /// Above, tokens are refused as not yet valid, or live longer than they should.
    static let clockSecondsHigh = Double(Limits.clockSkewSeconds)
    /// Seconds within which a stream's first event, which the service sends at once, arrives through all proxies.
    static let firstEventSeconds = 5.0
    /// Seconds that a heartbeat may be later than it should be.
    static let heartbeatSecondsLate = 3.0
    /// How long an address may take to answer.
    static let answerSeconds = 10
    /// Bytes of a stream's beginning that are looked through. Without it, a server that sends without end fills the memory.
    static let streamBytesMax = 1 << 20
}
