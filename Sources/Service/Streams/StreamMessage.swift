import Database
import MicroHTTP
import Realtime
import Rows
import Threads
import Values

/// A message to a shard from other threads.
enum StreamMessage: Sendable {
    /// Committed events, in commit order.
    case events([EncodedEvent])
    /// A worker has read the granted keys of a stream's user.
    case keysRead(StreamHandle, Result<Set<String>, any Error>)
    /// A row that grants keys was inserted or deleted, so that a key is granted to, or revoked from, the holders of
    /// another key.
    case grantChanged(KeyGrantChange)
    /// A worker has read the beginning of a stream.
    case opened(StreamHandle, Result<StreamStart, any Error>)
    /// A worker has read the events that a stream missed during its replay; nil if they exceed the replay limit.
    case loaded(StreamHandle, Result<[SharedBytes]?, any Error>)
    /// The data that was queued for a stream in an earlier batch has been flushed as much as possible.
    case flushed(StreamHandle)
    case revoked(Revocation)
    /// Memberships have changed to the given ones: scopes that have one of these keys must be recomputed.
    case memberships(Set<MembershipUpdate.Holders>, KnownMemberships)
    /// This replica missed events, or the log itself lost some. Streams restart after the given event.
    ///
    /// The ids are passed with the head. An id of one log with a number of the other would resume after events that no
    /// client received.
    case restart(head: Int64, ids: EventIDs, KnownMemberships)
    case states([EncodedState])
    case request(StreamRequest)
    case send(SharedBytes, to: StreamNames.Location)
    /// Ends every window now. Tests send it, so that they need not wait for real time.
    case endWindows
}

/// One event, with the bytes that every stream receives.
final class EncodedEvent: Sendable {
    let event: StreamEvent
    let cursor: Cursor
    /// Whether it is a row change. Each stream receives its own part of one.
    let isChange: Bool
    /// The span of the delivery, from here to the sockets; nil if it is not traced.
    let span: OpenSpan?
    /// The values that are derived from the event at its first use.
    private struct Derived {
        var bytes: SharedBytes?
        /// Nil as long as the event is not parsed.
        var change: PublishedChange??
    }

    private let derived: Locked<Derived>

    init(_ logged: LoggedEvent, ids: EventIDs, tracer: Tracer? = nil) {
        event = logged.event
        span = tracer.flatMap { tracer in logged.event.traceparent.flatMap(tracer.begin(behind:)) }
        cursor = ids.cursor(event.sequence)
        isChange = event.isChange
        derived = Locked(Derived(change: logged.change.map { .some($0) }))
    }

    /// Encoded for the first stream that receives the event. Most events are for users without an open stream.
    var bytes: SharedBytes {
        derived.withLock { derived in
            if let bytes = derived.bytes { return bytes }
            let bytes = SharedBytes(SSE.encode(event, at: cursor))
            derived.bytes = bytes
            return bytes
        }
    }

    /// The row change. The first shard with an affected stream parses it, once, if another replica wrote it.
    var change: PublishedChange? {
        derived.withLock { derived in
            if let change = derived.change { return change }
            let change = RowChange(reading: event.data).map { PublishedChange($0) }
            derived.change = .some(change)
            return change
        }
    }
}

/// One state, with the bytes that the user's streams receive.
final class EncodedState: Sendable {
    let state: OwnState
    let bytes: SharedBytes

    init(_ state: OwnState) {
        self.state = state
        bytes = SharedBytes(SSE.encode(state.name, data: state.data))
    }
}

/// The data for opening a stream. It is created on a reactor, and passed through MicroHTTP to the shard.
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

    /// Returns the same opening with the caller's current keys.
    func renewed(for caller: Caller) -> StreamOpener {
        if caller.scope.keys == self.caller.scope.keys, caller.omittedKeys == self.caller.omittedKeys { return self }
        return StreamOpener(caller: caller, topics: topics, lastEventID: lastEventID, lease: lease)
    }
}

/// The new subscriptions of a stream, all replaced at once; nil leaves a part unchanged.
struct SubscriptionDraft: Sendable {
    var topics: [String]?
    var tables: [TableSubscription]?
    /// Rows that changed after this event are sent too: the changes that were missed between two streams.
    var lastEventID: String?
    /// The missed changes, read from the log.
    var replay: TableReplay?
}

/// Row changes that a client missed while it had no stream, in the form of the new stream's subscriptions.
struct TableReplay: Sendable {
    /// The last event up to which changes were read. Later ones are delivered by the shard.
    let through: Int64
    let chunks: [SharedBytes]
}

/// The delivery figures of one stream since its opening (R-ENG-E-9): events, and their bytes on the wire.
struct StreamFigures: Sendable, Hashable {
    var events = 0
    var bytes = 0

    mutating func add(_ events: Int, bytes: Int) {
        self.events += events
        self.bytes += bytes
    }
}

/// The description of a stream for its owner.
struct StreamDescription: Sendable {
    var topics: [String] = []
    /// The topics that the request has added.
    var addedTopics: [String] = []
    var tables: [TableSubscription] = []
    var figures = StreamFigures()
    /// Bytes that wait for a slow client.
    var waitingBytes = 0
    /// The user of the stream, and the last event that its shard had handled when the user had these keys. They do not
    /// leave this process.
    var caller: Caller?
    var head: Int64 = 0
    /// Whether there is a gap between the end of the replay and the changes that the shard still has.
    var isReplayBehind = false
}

/// A request about an open stream, from its owner, answered by the shard.
struct StreamRequest: Sendable {
    typealias Completion = @Sendable (Result<StreamDescription, Failure>) -> Void

    enum Kind: Sendable {
        case describe
        case replace(SubscriptionDraft)
        case renew(Caller)
    }

    let stream: StreamNames.Location
    /// Only the stream's own user gets an answer; for other users the stream does not exist.
    let asker: Caller
    var kind: Kind
    /// A later shard refuses the request; nil for a request of this process, which waits for its answer.
    let until: Timestamp?
    var answer: Completion

    static let late = Failure.unavailable(
        "A request of another replica arrived too late: the replica is slow, or the replicas' clocks differ.")

    /// Returns a part of the request.
    func asking(_ kind: Kind, answer: @escaping Completion) -> StreamRequest {
        var part = self
        (part.kind, part.answer) = (kind, answer)
        return part
    }
}

/// The public name of an open stream. It encodes the stream's location, so that no table of all streams is needed.
///
/// Only the process that owns the stream can decode the location, so names do not reveal the number of streams. Names
/// are not secret: a requester must be the stream's user.
struct StreamName: Sendable, Hashable {
    /// Different for each process.
    let nonce: String
    private let code: OpaqueID

    fileprivate init(nonce: String, code: OpaqueID) { (self.nonce, self.code) = (nonce, code) }

    var text: String { "\(nonce)-\(code.text)" }

    init?(_ text: String) {
        let parts = text.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        guard parts.count == 2, let code = OpaqueID(parts[1]) else { return nil }
        self.init(nonce: String(Substring(parts[0])), code: code)
    }

    fileprivate func number(_ permutation: KeyedPermutation) -> UInt64 { permutation.open(code) }
}

/// The encoder and decoder of the names of this process's streams.
struct StreamNames: Sendable {
    /// The current or former location of a stream.
    struct Location: Sendable, Hashable {
        let shard: Int
        let slot: Int
        let generation: UInt32
    }

    /// Distinguishes the stream names of this process from the names of earlier processes and other replicas.
    let nonce = String(UInt32.random(in: .min ... .max), radix: 36)
    private let permutation = KeyedPermutation()

    /// Shards have 8 bits; the settings allow 64 shards. Slots have 24 bits, for at most a million streams.
    func name(of stream: StreamHandle) -> StreamName {
        let number = UInt64(stream.shard) << 56 | UInt64(stream.index) << 32 | UInt64(stream.generation)
        return StreamName(nonce: nonce, code: permutation.seal(number))
    }

    /// Returns the location; nil for a stream of another process.
    func location(of name: StreamName) -> Location? {
        guard name.nonce == nonce else { return nil }
        let number = name.number(permutation)
        return Location(
            shard: Int(number >> 56), slot: Int(number >> 32 & 0xFF_FFFF),
            generation: UInt32(truncatingIfNeeded: number))
    }
}

extension StreamNames.Location {
    init(_ stream: StreamHandle) {
        self.init(shard: Int(stream.shard), slot: Int(stream.index), generation: stream.generation)
    }
}
