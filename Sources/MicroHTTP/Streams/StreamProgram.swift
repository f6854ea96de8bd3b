/// The handle of one open stream of one shard.
///
/// The index is dense and reused after the stream has closed, so an application may keep its own state in an array. The
/// generation distinguishes streams with the same index. A handle of a closed stream is harmless: whatever is sent to
/// it is dropped.
public struct StreamHandle: Hashable, Sendable {
    public let shard: UInt32
    public let index: UInt32
    public let generation: UInt32
}

/// The reason why a stream ended.
public enum StreamCloseReason: Sendable, Hashable {
    /// The client closed its end.
    case peerClosed
    /// The connection broke, or the client sent unexpected data.
    case reset
    /// The client vanished: the kernel stopped waiting for acknowledgements.
    case timedOut
    /// The client read too slowly, and the program chose to close.
    case overflow
    /// The program requested it.
    case requested
    /// The shard stopped.
    case shutdown
}

/// The action for a stream with a slow reader.
public enum OverflowAction: Sendable {
    /// Discard the backlog, except the rest of a partly sent item; then send this.
    case discard(thenSend: SharedBytes?)
    case close
}

/// The application's code on a shard.
///
/// There is one instance per shard, and every call comes on that shard's thread, so it needs no lock. No call may
/// block, because all streams of the shard would wait. Calls never nest: `send` and `close` only record, and the
/// resulting calls come after the current call has returned.
public protocol StreamProgram: AnyObject, SendableMetatype {
    associatedtype Message: Sendable

    /// Called when a client has connected and received the head of its response.
    func streamOpened(_ stream: StreamHandle, context: any Sendable)
    /// Called for each posted message, in posting order, which includes openings.
    func received(_ message: Message)
    /// Called once for every opened stream, when its socket is closed.
    func streamClosed(_ stream: StreamHandle, reason: StreamCloseReason)
    /// Called when the client's backlog exceeds the limit.
    func streamOverflowed(_ stream: StreamHandle) -> OverflowAction
    /// Called about four times a second while there are streams.
    /// - Parameter now: The time in monotonic nanoseconds.
    func ticked(_ now: UInt64)
    /// The time of the next call of ``woken(_:)``, in monotonic nanoseconds, or nil. Read after each batch.
    var wakesAt: UInt64? { get }
    /// Called at the time of ``wakesAt``.
    func woken(_ now: UInt64)
    /// Called as the last opportunity to send something to each stream.
    func shardWillStop()
}

extension StreamProgram {
    public var wakesAt: UInt64? { nil }
    public func woken(_: UInt64) {}
}
