/// The bounds of the service, each with what breaks without it. Bounds of one feature stand in its own folder.
enum Limits {
    /// Bytes of a request's body. A request is in memory as a whole; what a user sends is small.
    static let bodyBytesMax = 64 * 1024
    /// Bodies up to this size are read where they arrive; larger ones would stall a reactor, which serves thousands.
    static let inlineBodyBytesMax = 8 * 1024
    /// Bytes of a token. Without it, a caller could make each check hash kilobytes, and the cache take megabytes.
    static let tokenBytesMax = 8 * 1024
    /// Verified tokens that are remembered, about 1 KiB each. Without it, a flood of valid tokens grows the process.
    static let verifiedTokensMax = 65_536
    /// Keys of their scopes together, about 100 bytes each. Without it, tokens of callers with thousands of memberships
    /// take gigabytes.
    static let verifiedKeysMax = 1_000_000
    /// Keys of one scope. Each is a bind in every query and an entry in the hub.
    static let scopeKeysMax = 512
    /// How far an issuer's clock may be ahead of ours (RFC 7519 allows "a small leeway").
    static let clockSkewSeconds: Int64 = 30
    /// The longest life of a token, which is also how long revocations are stored at least: or a revoked token would come
    /// alive again.
    static let tokenDays = 90
    /// When to come back to a replica that is cut off; a proxy finds another one sooner.
    static let revocationsRetrySeconds = 5
    /// Keys of one key set. An issuer has a few; each costs memory and time at every refresh.
    static let signingKeysMax = 64
    /// Keys of a set that are left out and named in the log, with the reason. Without it a set of a megabyte would be a
    /// line of a megabyte.
    static let skippedKeysLoggedMax = 8
    /// Bytes of a key set's document.
    static let keySetBytesMax = 1 << 20
    /// Key sets are fetched at most this often for unknown key ids, or forged ids would make us attack the issuer.
    static let keyFetchPauseSeconds: Int64 = 10
    /// A key set is fetched anew after this time, so that a withdrawn key stops working.
    static let keySetLifetimeSeconds: Int64 = 600
    /// How long the issuer may take to answer.
    static let keyFetchTimeoutSeconds = 5.0

    /// Users whose rate is watched. When there are more, those whose minute is over are forgotten.
    static let rateBucketsMax = 100_000
    /// The window of the rate limit (CNT G4).
    static let rateWindowSeconds: Int64 = 60
    /// Callers who have used less than this part of their limit are not shared with other replicas: most never do.
    static let rateSharedFraction = 10

    /// Events that one request of a user may make before they are counted, and the part of a minute's that each of its
    /// requests stands for (`rateLimitUser`). Without it the rate limit lets one user write 150,000 events a minute, a
    /// message to 256 members at a time, and everybody's log is full of them. 19 such messages a minute are left.
    static let eventsPerRequest = 32
    /// The same of their bytes, as they are sent to streams: some 17 messages of 4,000 bytes to 256 members.
    static let eventBytesPerRequest = 64 * 1024

    /// Numbers from the first to the last event of one record of the log: whoever reads the log up to a number looks so
    /// much further for records that begin before it. A message to 256 members, the most, has their counts 256 behind.
    static let recordSpanMax = 512

    /// Badge versions that are known without asking the database.
    static let badgeVersionsMax = 200_000

    /// How long the answer to an Idempotency-Key is stored.
    static let idempotencySeconds: Int64 = 24 * 3600
    /// Bytes of an Idempotency-Key. It is part of a primary key, and stored for a day.
    static let idempotencyKeyBytesMax = 255

    /// Items of a list's page, if the request names none.
    static let pageDefault = 20

    /// When to come back where the disk is full or the database's file is gone: somebody has to do something first.
    static let storageRetrySeconds = 30

    /// Rows that one step of tidying removes: everybody who writes waits for it.
    static let prunedAtOnceMax = 1000
    /// Facts of one transaction. A reaction that answers its own fact would never end.
    static let factsMax = 10_000

    /// Requests that wait for a worker. Behind them clients get a 503, which is sooner than their own timeout.
    static let workersQueueMax = 4096

    /// Messages that may wait for one shard before no more changes of tables are taken. A message has 16 KiB of events at
    /// most; without the bound a feed that outruns the streams would fill the memory with what waits for them.
    static let shardInboxMax = 4096

    /// How long connections are waited for, at the end, on which a request may be on its way: longer than any way across
    /// the world. Without it a client whose connection is closed at that moment cannot know whether its request was done.
    static let lastRequestSeconds = 1.0

    /// Bytes of a request id that a client may choose; a longer one is replaced.
    static let requestIdBytesMax = 64
}
