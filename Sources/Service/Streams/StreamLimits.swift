/// The bounds of streams, each with what breaks without it.
enum StreamLimits {
    /// Topics of one stream (SCH A-003, ENG E-4). Each costs memory in the hub and a read of its state at opening.
    /// Published in `/v1/config`.
    static let topicsMax = 100
    /// Keys up to which a scope is no wide one; a wide one's are not all listed in `stream:scope`, whose bytes would fill
    /// the queue of a stream.
    static let listedKeysMax = 512
    /// Keys of all wide scopes of this process's streams, about 150 bytes each: 150 MB. Without it a few hundred streams
    /// of users with 10,000 memberships fill the memory; a stream that finds no room is answered as one that comes too
    /// early.
    static let wideKeysMax = 1_000_000
    /// Bytes of one topic: a prefix, a colon and an id of at most 128 bytes.
    static let topicBytesMax = 160
    /// Events replayed to one resuming stream, and changes of rows that are looked at again for one of its keys, because
    /// it may have broken before their window ended. Beyond it, fetching everything again is cheaper for both sides, and
    /// a few thousand such clients at once (after a restart) would occupy the log's readers for minutes.
    static let replayEventsMax = 1000
    /// Bytes of one replay, which wait in memory until the client has read them.
    static let replayBytesMax = 1024 * 1024
    /// Bytes of one piece of a replay; the next follows when it has left the process. With the queue of live events
    /// behind the last piece it must fit the socket's buffer of 64 KiB, or a replay would look like a slow client.
    static let chunkBytesMax = 16 * 1024
    /// Bytes of a request that replaces subscriptions: as many filtered ids as one stream may have. Published.
    static let subscriptionsBytesMax = 1 << 20
    /// Bytes of events that a shard handles without sending in between. Rows of one delivery are committed at once; if
    /// they were all queued at once, whoever receives each of 1,000 would look like a slow client before the first was
    /// sent.
    static let pieceBytesMax = 16 * 1024
    /// Records whose counts are in one `engagement_update`, about 50 bytes each. Without it, a stream that watches a whole
    /// table would gather all of it.
    static let countsPerEventMax = 1000
    /// Bytes of the last changes that a shard caches. A stream that has read what it missed needs those of a few
    /// milliseconds; without them it would read for ever behind a feed that never rests.
    static let recentChangesBytesMax = 512 * 1024
    /// Rounds of reading missed rows while new ones come; after them the client is asked to resync.
    static let replayRoundsMax = 4
    /// A second overflow within this time ends the stream: its client cannot keep up, and having it fetch
    /// everything each time would make it slower still.
    static let overflowPauseSeconds: UInt64 = 30
    /// A ticket's life: long enough to open a stream over a bad network, short enough that one found in a log is dead.
    static let ticketSeconds: Int64 = 30
    /// Reconnection after a shutdown is spread over this time, or all clients would come back in the same instant.
    static let shutdownSpreadMilliseconds = 5000
    /// What EventSource waits before it reconnects. Published in `/v1/config`.
    static let retryMilliseconds = 1000
}
