import Domain
import MicroHTTP
import Realtime

/// What reaches a shard from other threads.
enum StreamMessage: Sendable {
    /// Committed events, in commit order.
    case events([EncodedEvent])
    /// A worker has read what a stream begins with; nil: it could not.
    case opened(StreamHandle, StreamStart?)
    /// A worker has read again what a stream missed while it was replayed to; nil: too much, or it could not.
    case loaded(StreamHandle, [SharedBytes]?)
    /// What was sent to a stream in an earlier batch has had its chance to leave.
    case flushed(StreamHandle)
    case revoked(Revocation)
    /// Events were lost to this replica, or the log lost events itself: streams begin anew behind the given one.
    case begun(head: Int64)
    case states([EncodedState])
    case request(StreamRequest)
    case send(SharedBytes, to: StreamName)
}

/// One event in the bytes that every stream gets.
final class EncodedEvent: Sendable {
    let event: StreamEvent
    let bytes: SharedBytes

    init(_ event: StreamEvent, epoch: String) {
        self.event = event
        self.bytes = SharedBytes(SSE.encode(event, epoch: epoch))
    }
}

/// One state in the bytes that the user's streams get.
final class EncodedState: Sendable {
    let state: OwnState
    let bytes: SharedBytes

    init(_ state: OwnState) {
        self.state = state
        var bytes: [UInt8] = []
        SSE.append(state.name, data: state.data, to: &bytes)
        self.bytes = SharedBytes(bytes)
    }
}

/// What a stream is opened with: made on a reactor, carried through MicroHTTP to the shard.
final class StreamOpener: Sendable {
    let caller: Caller
    let topics: [String]
    let lastEventID: String?
    let lease: StreamLease?

    init(caller: Caller, topics: [String], lastEventID: String?, lease: StreamLease?) {
        self.caller = caller
        self.topics = topics
        self.lastEventID = lastEventID
        self.lease = lease
    }
}

/// A question about an open stream, from its owner, answered by the shard.
struct StreamRequest: Sendable {
    enum Kind: Sendable {
        case describe
        /// Answers with the topics that the stream did not have before.
        case replaceTopics([String])
        case renew(Caller)
    }

    let stream: StreamName
    /// Only the stream's own user gets an answer; for others it does not exist.
    let asker: Caller
    let kind: Kind
    let answer: @Sendable (Result<[String], Failure>) -> Void
}

/// The public name of an open stream, which says where it is: no table of all streams is needed to find one.
///
/// The nonce tells streams of an earlier process apart. Names are no secret: whoever asks must be the stream's user.
struct StreamName: Sendable, Hashable {
    let nonce: String
    let shard: Int
    let index: Int
    let generation: Int

    var text: String { "\(nonce)-\(shard)-\(index)-\(generation)" }

    init(nonce: String, handle: StreamHandle) {
        self.nonce = nonce
        shard = Int(handle.shard)
        index = Int(handle.index)
        generation = Int(handle.generation)
    }

    init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 4, let shard = Int(parts[1]), let index = Int(parts[2]), let generation = Int(parts[3]),
            shard >= 0, index >= 0, generation >= 0
        else { return nil }
        self.nonce = String(parts[0])
        self.shard = shard
        self.index = index
        self.generation = generation
    }

    func names(_ handle: StreamHandle) -> Bool {
        shard == Int(handle.shard) && index == Int(handle.index) && generation == Int(handle.generation)
    }
}
