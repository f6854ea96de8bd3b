/// The limits of a shard's streams.
struct StreamShardOptions: Sendable {
    /// The backlog of one slow reader in the process. Without this limit, a stalled client would take unlimited memory.
    /// With a much larger value, 10,000 stalled clients would take gigabytes; with a much smaller one, a burst would
    /// force healthy clients to resync.
    var bufferBytesMax = 65_536
    /// The longest silence on a stream; 0 turns heartbeats off. Proxies close connections that are silent for 30 to 60
    /// seconds, and a vanished client is detected only when something is sent to it.
    var heartbeatSeconds = 15
    /// The heartbeat: a comment, which clients do not pass to their application.
    var heartbeat = Array(":\n\n".utf8)
    /// How long `StreamShard.close(_:)` waits for a slow reader to take the earlier data. Without this limit, a stalled
    /// client would occupy its stream forever.
    var closingSeconds = 5.0
    /// Whether each shard is pinned to its own core. Otherwise two shards that are woken at once by a busy thread may
    /// share a core for milliseconds. If the system does not allow pinning, the shard works anyway.
    var isPinned = false
    /// The clock for heartbeats and timeouts.
    var clock = MonotonicClock.system
    /// Called once for each adopted descriptor after it was closed, on the shard's thread, or on the thread that calls
    /// `adopt` or `stop`.
    var released: @Sendable () -> Void = {}
    #if DEBUG
        /// See ``ServerConfiguration/sendsToStream``.
        var sends: (@Sendable (UnsafeRawBufferPointer) -> Void)?
    #endif
}
