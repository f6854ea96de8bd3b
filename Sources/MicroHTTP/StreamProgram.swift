/// Names one open stream of one shard.
///
/// The index is dense and used again after the stream has closed, so an application may store its own state in an array;
/// the generation distinguishes the streams that had the same index. A handle of a closed stream is harmless: whatever is
/// sent to it is dropped.
public struct StreamHandle: Hashable, Sendable {
    public let shard: UInt32
    public let index: UInt32
    public let generation: UInt32
}

/// Why a stream is no more.
public enum StreamCloseReason: Sendable, Hashable {
    /// The client closed its end.
    case peerClosed
    /// The connection broke, or the client sent what no reader of a stream sends.
    case reset
    /// The client vanished: the kernel gave up on getting bytes acknowledged.
    case timedOut
    /// The client read too slowly, and the program chose to close.
    case overflow
    /// The program asked for it.
    case requested
    /// The shard stopped.
    case shutdown
}

/// What happens to a stream whose reader is too slow.
public enum OverflowAction: Sendable {
    /// Throw away all that waits, except the rest of an item that is partly sent; then send this.
    case discard(thenSend: SharedBytes?)
    case close
}

/// What an application runs on a shard.
///
/// There is one instance per shard, and every call comes on that shard's thread, so it needs no lock. No call may block:
/// all streams of the shard would wait. Calls never nest: `send` and `close` take note, and what follows from them is
/// called for after the present call has returned.
public protocol StreamProgram: AnyObject, SendableMetatype {
    associatedtype Message: Sendable

    /// A client is there, and has the head of its response.
    func streamOpened(_ stream: StreamHandle, context: any Sendable)
    /// Something that was posted, in order of posting, openings included.
    func received(_ message: Message)
    /// The stream's socket is closed. Once for every stream that was opened.
    func streamClosed(_ stream: StreamHandle, reason: StreamCloseReason)
    /// More waits for the client than may wait.
    func streamOverflowed(_ stream: StreamHandle) -> OverflowAction
    /// About four times a second while there are streams.
    /// - Parameter now: monotonic nanoseconds.
    func ticked(_ now: UInt64)
    /// When ``woken(_:)`` wants to be called, in monotonic nanoseconds; nil: not at all. Asked after each batch.
    var wakesAt: UInt64? { get }
    /// The moment of ``wakesAt`` has come.
    func woken(_ now: UInt64)
    /// The last chance to send something to each stream.
    func shardWillStop()
}

extension StreamProgram {
    public var wakesAt: UInt64? { nil }
    public func woken(_ now: UInt64) {}
}
