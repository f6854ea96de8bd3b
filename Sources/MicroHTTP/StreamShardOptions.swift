/// The bounds of a shard's streams.
struct StreamShardOptions: Sendable {
    /// What may wait in the process for one slow reader. Without it a stalled client would cost memory without end; with
    /// much more, 10,000 stalled ones would cost gigabytes; with much less, a burst would cost healthy ones a resync.
    var bufferBytesMax = 65_536
    /// The longest silence on a stream; 0: no heartbeats. Proxies cut connections that are silent for 30 to 60 seconds,
    /// and a vanished client is only found out when something is sent to it.
    var heartbeatSeconds = 15
    /// What breaks the silence: a comment, which no client hands to its application.
    var heartbeat = Array(":\n\n".utf8)
    /// How long `StreamShard.close(_:)` waits for a slow reader to take what was sent before. Without it a stalled client
    /// would occupy its stream for ever.
    var closingSeconds = 5.0
    /// Whether each shard is bound to a core of its own. Two that are woken at once by a thread which stays busy may share
    /// one for milliseconds otherwise. A shard that the system does not let choose works all the same.
    var isPinned = false
    /// What heartbeats and patience are measured by.
    var clock = MonotonicClock.system
    /// Called once for each adopted descriptor after it was closed, from the shard's thread, or from the thread that
    /// calls `adopt` or `stop`.
    var released: @Sendable () -> Void = {}
}
