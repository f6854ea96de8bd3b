import Database
import Domain
import MicroHTTP
import Realtime
import Rows
import Threads
import Values

/// What reaches a shard from other threads.
enum StreamMessage: Sendable {
    /// Committed events, in commit order.
    case events([EncodedEvent])
    /// A worker has read the membership keys of a stream's user.
    case keysRead(StreamHandle, Result<Set<String>, any Error>)
    /// A row of a membership has come or gone: whoever has one key has another, or has it no longer.
    case granted(MembershipKeyChange)
    /// A worker has read what a stream begins with.
    case opened(StreamHandle, Result<StreamStart, any Error>)
    /// A worker has read again what a stream missed while it was replayed to; nil: more than may be replayed.
    case loaded(StreamHandle, Result<[SharedBytes]?, any Error>)
    /// What was sent to a stream in an earlier batch has had its chance to leave.
    case flushed(StreamHandle)
    case revoked(Revocation)
    /// Memberships have changed: scopes that have one of these keys are to be made anew.
    case memberships(Set<MembershipUpdate.Holders>)
    /// Events were lost to this replica, or the log lost events itself: streams begin anew behind the given one.
    ///
    /// The ids go with the head: an id of one log with a number of the other would resume behind events that nobody got.
    case begun(head: Int64, ids: EventIDs)
    case states([EncodedState])
    case request(StreamRequest)
    case send(SharedBytes, to: StreamNames.Place)
    /// Every window ends now. Tests send it, and so need not wait for real time.
    case windowsEnd
}

/// One event, and the bytes that every stream receives.
final class EncodedEvent: Sendable {
    let event: StreamEvent
    let cursor: Cursor
    /// Of a row's change each stream receives its part.
    let isChange: Bool
    /// Of the delivery, from here to the sockets; nil where it is not traced.
    let span: OpenSpan?
    private let encoded = Locked<SharedBytes?>(nil)
    private let parsed: Locked<PublishedChange??>

    init(_ logged: LoggedEvent, ids: EventIDs, tracer: Tracer? = nil) {
        event = logged.event
        span = tracer.flatMap { tracer in logged.event.traceparent.flatMap(tracer.begin(behind:)) }
        cursor = ids.cursor(event.sequence)
        isChange = event.isChange
        parsed = Locked(logged.change.map { .some($0) })
    }

    /// Made for the first stream that receives it: most events are of users who have none open.
    var bytes: SharedBytes {
        encoded.withLock { encoded in
            if let encoded { return encoded }
            let bytes = SharedBytes(SSE.encode(event, at: cursor))
            encoded = bytes
            return bytes
        }
    }

    /// The row's change: of another replica's event read once, by the first shard with a stream that it may concern.
    var change: RowChange? {
        parsed.withLock { parsed in
            if let parsed { return parsed?.value }
            let change = RowChange(reading: event.data)
            parsed = .some(change.map(PublishedChange.init))
            return change
        }
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

    /// The same opening with the keys that the caller has now.
    func speaking(for caller: Caller) -> StreamOpener {
        if caller.scope.keys == self.caller.scope.keys, caller.omittedKeys == self.caller.omittedKeys { return self }
        return StreamOpener(caller: caller, topics: topics, lastEventID: lastEventID, lease: lease)
    }
}

/// What a stream subscribes to, all of it replaced at once; nil stays as it is.
struct SubscriptionDraft: Sendable {
    var topics: [String]?
    var tables: [TableSubscription]?
    /// Rows that changed after this event are sent as well: what was missed between two streams.
    var lastEventID: String?
    /// What was missed, read from the log.
    var replay: TableReplay?
}

/// Rows that changed while the client had no stream, as a stream's subscriptions ask for them.
struct TableReplay: Sendable {
    /// The newest event when they were read.
    let through: Int64
    let chunks: [SharedBytes]
}

/// What one stream was given since it was opened (ENG E-9): events, and their bytes as they are on the wire.
struct StreamFigures: Sendable, Hashable {
    var events = 0
    var bytes = 0

    mutating func add(_ events: Int, bytes: Int) {
        self.events += events
        self.bytes += bytes
    }
}

/// A stream as its owner may know it.
struct StreamDescription: Sendable {
    var topics: [String] = []
    /// Of these, what the question has added.
    var addedTopics: [String] = []
    var tables: [TableSubscription] = []
    var figures = StreamFigures()
    /// Bytes that wait for a client that reads slowly.
    var waitingBytes = 0
    /// Whom the stream speaks for. Stays within this process.
    var caller: Caller?
    /// Whether the replay ends before what the shard can still add to it, so that there would be a gap.
    var isReplayBehind = false
}

/// A question about an open stream, from its owner, answered by the shard.
struct StreamRequest: Sendable {
    typealias Answer = @Sendable (Result<StreamDescription, Failure>) -> Void

    enum Kind: Sendable {
        case describe
        case replace(SubscriptionDraft)
        case renew(Caller)
    }

    let stream: StreamNames.Place
    /// Only the stream's own user gets an answer; for others it does not exist.
    let asker: Caller
    let kind: Kind
    let answer: Answer
}

/// The public name of an open stream, which says where it is: no table of all streams is needed to find one.
///
/// Only the process that has the stream can read where: how many streams there are is nobody's business. Names are no
/// secret: whoever asks must be the stream's user.
struct StreamName: Sendable, Hashable {
    /// Another one for each process.
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

/// Makes the names of this process's streams, and finds the places that they name.
struct StreamNames: Sendable {
    /// Where a stream is, or was.
    struct Place: Sendable, Hashable {
        let shard: Int
        let slot: Int
        let generation: UInt32
    }

    /// Tells this process's stream names from those of the one before it, and of other replicas.
    let nonce = String(UInt32.random(in: .min ... .max), radix: 36)
    private let permutation = KeyedPermutation()

    /// Shards have 8 bits, of which settings allow 64; slots have 24, for a million streams at most.
    func name(of stream: StreamHandle) -> StreamName {
        let number = UInt64(stream.shard) << 56 | UInt64(stream.index) << 32 | UInt64(stream.generation)
        return StreamName(nonce: nonce, code: permutation.seal(number))
    }

    /// Nil for another process's stream.
    func place(of name: StreamName) -> Place? {
        guard name.nonce == nonce else { return nil }
        let number = name.number(permutation)
        return Place(
            shard: Int(number >> 56), slot: Int(number >> 32 & 0xFF_FFFF),
            generation: UInt32(truncatingIfNeeded: number))
    }
}

extension StreamNames.Place {
    init(_ stream: StreamHandle) {
        self.init(shard: Int(stream.shard), slot: Int(stream.index), generation: stream.generation)
    }
}
