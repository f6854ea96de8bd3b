/// The limits of streams, each with its reason.
enum StreamLimits {
    /// Topics of one stream (R-SCH-A-003, R-ENG-E-4). Each costs memory in the hub and a read of its state at opening.
    /// Published in `/v1/config`.
    static let topicsMax = 100
    /// A scope with more keys than this is a wide one. `stream:scope` does not list all keys of a wide scope, whose
    /// bytes would fill the queue of a stream.
    static let listedKeysMax = 512
    /// Keys of all wide scopes of this process's streams, about 150 bytes each: 150 MB. Without this limit, a few
    /// hundred streams of users with 10,000 memberships fill the memory. A stream that finds no room is answered like
    /// one that reconnects too early.
    static let wideKeysMax = 1_000_000
    /// Bytes of one topic: a prefix, a colon and an id of at most 128 bytes.
    static let topicBytesMax = 160
    /// Events replayed to one resuming stream. It is also the number of row changes that are checked again for one of
    /// its keys, because the stream may have broken before their window ended. Beyond it, fetching everything again is
    /// cheaper for both sides. A few thousand such clients at once (after a restart) would occupy the log's readers for
    /// minutes.
    static let replayEventsMax = 1000
    /// Bytes of one replay, which wait in memory until the client has read them.
    static let replayBytesMax = 1024 * 1024
    /// Bytes of one piece of a replay; the next follows when it has left the process. The last piece and the queue of
    /// live events together must fit the socket's buffer of 64 KiB. Otherwise a replay would look like a slow client.
    static let chunkBytesMax = 16 * 1024
    /// Bytes of a request that replaces subscriptions: the maximum number of filtered ids of one stream. Published.
    static let subscriptionsBytesMax = 1 << 20
    /// JSON values of such a request. The largest valid one has some 11,000: 100 subscriptions that select 100 columns
    /// each. Without this limit, a mebibyte of small objects costs 100 ms of a processor.
    static let subscriptionsValuesMax = 12_288
    /// Bytes of events that a shard handles before it sends. The rows of one delivery are committed at once. If all
    /// were queued at once, a receiver of each of 1,000 would look like a slow client before the first was sent.
    static let pieceBytesMax = 16 * 1024
    /// Records whose counts are in one `engagement_update`, about 50 bytes each. Without this limit, a stream that
    /// watches a whole table would collect all of it.
    static let countsPerEventMax = 1000
    /// Bytes of the most recent changes that a shard caches. A stream that has read its missed changes needs the
    /// changes of the last few milliseconds. Without the cache, it would read forever behind a feed that never pauses.
    static let recentChangesBytesMax = 512 * 1024
    /// Rounds of reading missed rows while new ones arrive. After them, the client is asked to resync.
    static let replayRoundsMax = 4
    /// A second overflow within this time ends the stream. Its client cannot keep up, and repeated full fetches would
    /// make it even slower.
    static let overflowPauseSeconds: UInt64 = 30
    /// The lifetime of a ticket. It is long enough to open a stream over a bad network, and short enough that a ticket
    /// found in a log has expired.
    static let ticketSeconds: Int64 = 30
    /// The time over which reconnections after a shutdown are spread. Otherwise all clients would reconnect in the same
    /// instant.
    static let shutdownSpreadMilliseconds = 5000
    /// The pause of EventSource before it reconnects. Published in `/v1/config`.
    static let retryMilliseconds = 1000
}
