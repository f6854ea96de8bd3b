/// The limits of the service, each with its reason. Limits of a single feature are in its folder.
enum Limits {
    /// Bytes of a request's body. A request is in memory as a whole, and requests of users are small.
    static let bodyBytesMax = 64 * 1024
    /// Bodies up to this size are parsed on the reactor. Larger ones would stall it, and it serves thousands of
    /// connections.
    static let inlineBodyBytesMax = 8 * 1024
    /// The bytes of request bodies that one user may have in memory at a time: four subscription requests of the maximum
    /// length. Without this limit, the connections of one user could take hundreds of megabytes.
    static let userBodiesBytesMax = 4 << 20
    /// The same for one backend, or the feed: eight of the longest deliveries of rows.
    static let backendBodiesBytesMax = 64 << 20
    /// The same for all senders whose token or signature is not verified yet: four of the longest deliveries. Verifying
    /// a signature needs the whole body, so without this limit any client could fill the memory.
    static let unknownBodiesBytesMax = 32 << 20
    /// The same for all senders together. Without this limit, many users that send at once could fill the memory.
    static let bodiesBytesMax = 256 << 20
    /// Invalid parts that a problem lists. Without this limit, a body of unknown members is answered with five times
    /// its bytes. It is above the 100 topics and 20 subscriptions that one request may have refused, because clients go
    /// on without the refused ones.
    static let problemErrorsMax = 128
    /// Bytes of a token by default. Without it, a caller could make each check hash kilobytes, and the cache take
    /// megabytes. Proxies take about as much.
    static let tokenBytes = 8 * 1024
    /// Bytes of a token that the setting allows: those of an issuer that lists 200 groups.
    static let tokenBytesMax = 16 * 1024
    /// Cached verified tokens, about 1 KiB each. Without this limit, a flood of valid tokens grows the process.
    static let verifiedTokensMax = 65_536
    /// Keys of all cached scopes, about 100 bytes each. Without this limit, tokens of callers with thousands of
    /// memberships take gigabytes.
    static let verifiedKeysMax = 1_000_000
    /// Keys of one scope. Each is a bind in every query and an entry in the hub.
    static let scopeKeysMax = 512
    /// How far an issuer's clock may be ahead of ours (RFC 7519 allows "a small leeway").
    static let clockSkewSeconds: Int64 = 30
    /// The longest lifetime of a token, and the minimum retention of revocations. Otherwise a revoked token would
    /// become valid again.
    static let tokenDays = 90
    /// Seconds after which to retry a replica that is cut off. A proxy finds another replica sooner.
    static let revocationsRetrySeconds = 5
    /// Service keys in the settings. All are compared with each token that is not known yet. Without this limit, forged
    /// tokens would cost more than their reading.
    static let serviceKeysMax = 100
    /// Bytes of a service key. 32 hexadecimal digits are 128 random bits, which nobody can guess.
    static let serviceKeyBytes = 32...512
    /// Keys of one key set. An issuer has a few; each costs memory and time at every refresh.
    static let signingKeysMax = 64
    /// Skipped keys of a set that are named in the log, with the reason. Without this limit, a set of a megabyte would
    /// become a log line of a megabyte.
    static let skippedKeysLoggedMax = 8
    /// Bytes of a key set's document.
    static let keySetBytesMax = 1 << 20
    /// The minimum interval between fetches of a key set for unknown key ids. Without it, forged ids would make the
    /// service attack the issuer.
    static let keyFetchPauseSeconds: Int64 = 10
    /// A key set is fetched again after this time, so that a withdrawn key stops working.
    static let keySetLifetimeSeconds: Int64 = 600
    /// How long the issuer may take to answer.
    static let keyFetchTimeoutSeconds = 5

    /// Users that the audit log names for one request; further rows are counted. Without this limit, a request that
    /// writes for every member of a large conversation would write as many entries.
    static let auditedUsersMax = 256

    /// Open connections to the address of `/metrics`. A few monitoring systems ask there. Without this limit, a flood of
    /// connections takes descriptors from clients.
    static let metricsConnectionsMax = 64

    /// The longest time for which the effects of a user are dated later: as long as a push message is worth sending.
    static let paceSecondsMax: Int64 = 24 * 3600
    /// Users whose rate is tracked. Above this number, users whose minute is over are dropped.
    static let rateBucketsMax = 100_000
    /// The tenants that a metric names, those with the largest values.
    static let tenantsInMetricsMax = 10
    /// The window of the rate limit (R-CNT-G4).
    static let rateWindowSeconds: Int64 = 60
    /// Callers that have used less than this fraction of their limit are not shared with other replicas. Most callers
    /// never use more.
    static let rateSharedFraction = 10

    /// Bytes of filters that count as a further request; fewer are part of the request itself. Without this limit, a
    /// user's 300 requests a minute could make the service read 300 MB of filters.
    static let filterBytesPerRequest = 8 * 1024

    /// Events that one request of a user may publish without being counted, and each request's share of a user's events
    /// per minute (`rateLimitUser`). Without this limit, one user could write 150,000 events a minute by messages to
    /// 256 members, and fill the log of all users. With it, 19 such messages a minute are possible.
    static let eventsPerRequest = 32
    /// The same limit for the bytes of events as sent to streams: some 17 messages of 4,000 bytes to 256 members.
    static let eventBytesPerRequest = 64 * 1024

    /// A user may reach one other user a minute for each of this number of requests in the limit (`rateLimitUser`): 60 by
    /// default. A user is reached by a notification, as a new member of a conversation, or by a new follower. Without this
    /// limit, one user could add 76,500 others to conversations in a minute, or send 300 notifications. The first request
    /// of a minute may reach more, so that a conversation of 256 members can be created.
    static let requestsPerReachedUser = 5

    /// The maximum difference between the numbers of the first and the last event of one record of the log. A reader of
    /// the log up to a number must look this much further for records that begin before it. A message to 256 members,
    /// the largest case, has their counts 256 numbers later.
    static let recordSpanMax = 512

    /// Badge versions that are known without a query.
    static let badgeVersionsMax = 200_000

    /// How long the answer to an Idempotency-Key is stored.
    static let idempotencySeconds: Int64 = 24 * 3600
    /// Bytes of an Idempotency-Key. It is part of a primary key, and stored for a day.
    static let idempotencyKeyBytesMax = 255

    /// Items of a list's page if the request names no number.
    static let pageDefault = 20

    /// Seconds after which to retry if the disk is full or the database's file is gone. An operator has to act first.
    static let storageRetrySeconds = 30

    /// Rows that one step of pruning removes. All writes wait for it.
    static let prunedAtOnceMax = 1000
    /// Facts of one transaction, which fails if it has more. All writes wait for it, and a reaction that answers its own
    /// fact would never end.
    static let factsMax = 10_000

    /// Requests that wait for a worker. Further clients get a 503, which arrives before their own timeout.
    static let workersQueueMax = 4096
    /// The same for one user. Without this limit, one user's connections could fill the queue, and all users would get
    /// the 503.
    static let workersQueueOfUserMax = 256

    /// Messages that may wait for one shard before changes of tables are refused. A message has at most 16 KiB of
    /// events. Without this limit, a feed that is faster than the streams would fill the memory with waiting messages.
    static let shardInboxMax = 4096

    /// How long a stopping service waits for connections on which a request may be on its way. It is longer than any
    /// network path. Without it, a client whose connection is closed at that moment could not know whether its request
    /// was processed.
    static let lastRequestSeconds = 1.0

    /// Bytes of a request id that a client may choose; a longer one is replaced.
    static let requestIdBytesMax = 64
}
