/// The thresholds of `bellhop doctor`. Each comment names the problem beyond the threshold.
enum DoctorLimits {
    /// Free bytes on the database's disk. Below this, the write-ahead log alone, which is truncated to 32 MiB, may fill
    /// it.
    static let freeBytesMin = 64 << 20
    /// Below this, a day's events of a busy service may not fit (0.4 GB for a million).
    static let freeBytesLow = 1 << 30
    /// Free bytes for temporary files: the minimum for a backup, or a large sort.
    static let temporaryBytesLow = 64 << 20
    /// Streams that the descriptors allow. Below this, the open pages of one school can fill the service.
    static let streamsLow = 1000
    /// Bytes of SQLite's write-ahead log. Above this, no checkpoint succeeds, and reads slow down. The writer itself
    /// moves its pages at 48 MB.
    static let logBytesHigh = 256 << 20
    /// Median seconds of a flush to disk. Above this, a writer makes fewer than 50 commits per second.
    static let flushSecondsHigh = 0.02
    /// Seconds of the longest flush. Above this, requests occasionally wait noticeably.
    static let flushSecondsMax = 0.5
    /// Number of measured flushes. Fewer say little about the longest; more keep a slow disk busy.
    static let flushes = 20
    /// Median seconds of a round trip to PostgreSQL. Above this, each write, which needs several, takes tens of
    /// milliseconds. Then service and database are too far apart.
    static let roundTripSecondsHigh = 0.005
    /// Number of measured round trips. With fewer, a single late one decides.
    static let roundTrips = 20
    /// The allowed difference of two clocks, in seconds. Above this, timestamps of two machines appear in the wrong
    /// order.
    static let clockSecondsLow = 2.0
    /// Above this, tokens are refused as not yet valid, or live longer than they should.
    static let clockSecondsHigh = Double(Limits.clockSkewSeconds)
    /// Seconds within which a stream's first event arrives through all proxies. The service sends it at once.
    static let firstEventSeconds = 5.0
    /// The allowed delay of a heartbeat, in seconds.
    static let heartbeatSecondsLate = 3.0
    /// Seconds for which a stream is followed. Proxies that limit a whole response, with its heartbeats, cut it after 15
    /// (Envoy), 30 (Google's load balancer) or 60 seconds.
    static let wholeStreamSeconds = 65.0
    /// Bytes of a compressed stream. As many arrive only if the proxy sends each event on: an encoder that holds events
    /// has sent no more than the head of its format.
    static let compressedBytesMin = 64
    /// Bytes at the end of a stream in which the notice is looked for with which the service ends it.
    static let streamTailBytes = 1024
    /// Seconds that an address may take to answer.
    static let answerSeconds = 10
    /// Bytes of a stream's beginning that are read. Without this limit, a server that sends endlessly would fill the
    /// memory.
    static let streamBytesMax = 1 << 20
}
