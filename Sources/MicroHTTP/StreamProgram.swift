/// Names an open stream: its shard, its place there, and which of the streams that had the place it is.
public struct StreamHandle: Hashable, Sendable {
    public let shard: UInt32
    /// Dense: places are used again.
    public let index: UInt32
    public let generation: UInt32
}

/// Why a stream is over.
public enum StreamCloseReason: Sendable {
    case peerClosed, reset, timedOut, overflow, requested, shutdown
}

/// What happens to a stream whose client reads too slowly.
public enum OverflowAction {
    /// What waits is thrown away, and this is sent instead.
    case discard(thenSend: SharedBytes?)
    case close
}

/// What an application runs on a shard. One for each shard; every call is made on the shard's thread, so it needs no
/// lock.
public protocol StreamProgram: AnyObject, SendableMetatype {
    associatedtype Message: Sendable
    func streamOpened(_ stream: StreamHandle, context: any Sendable)
    /// A message of `StreamShard.post`, in the order of posting.
    func received(_ message: Message)
    func streamClosed(_ stream: StreamHandle, reason: StreamCloseReason)
    func streamOverflowed(_ stream: StreamHandle) -> OverflowAction
    /// About four times a second while there are streams. Monotonic nanoseconds.
    func ticked(_ now: UInt64)
    /// The last chance to send each stream something.
    func shardWillStop()
}
